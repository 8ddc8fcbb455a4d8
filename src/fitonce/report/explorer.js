/* The explorer: exact leave-one-out results of every row from an embedded eigendecomposition. No dependency, no request. */
(() => {
  "use strict";

  // ---- the table of rows: sorting, filtering, selection ------------------------------------------------------------

  const byId = (id) => document.getElementById(id);
  const table = byId("rows");
  const rowOf = new Map();
  if (table) {
    const body = table.tBodies[0];
    for (const tr of body.rows) rowOf.set(Number(tr.dataset.row), tr);
    const collator = new Intl.Collator(undefined, { numeric: true });
    table.tHead.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const th = button.closest("th");
      const ascending = th.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const column = th.cellIndex;
      const keyOf = (tr) => tr.cells[column].dataset.value ?? tr.cells[column].textContent;
      const numeric = th.dataset.kind === "number";
      const compare = (a, b) => {
        if (!numeric) return collator.compare(a.key, b.key);
        const x = Number.parseFloat(a.key), y = Number.parseFloat(b.key);
        return Number.isNaN(x) ? (Number.isNaN(y) ? 0 : 1) : Number.isNaN(y) ? -1 : x - y;
      };
      const rows = [...body.rows].map((tr) => ({ tr, key: keyOf(tr) })).sort(compare);
      if (!ascending) rows.reverse();
      body.append(...rows.map((row) => row.tr));
    });
    const filter = byId("only-wrong");
    if (filter) filter.addEventListener("change", () => {
      for (const tr of body.rows) tr.hidden = filter.checked && tr.dataset.wrong !== "1";
    });
  }

  const root = byId("explorer");
  if (!root) return;
  const data = JSON.parse(byId("explorer-data").textContent);

  // ---- numbers -----------------------------------------------------------------------------------------------------

  function bytes(text) {
    const binary = atob(text);
    const result = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) result[i] = binary.charCodeAt(i);
    return result.buffer;
  }
  const floats = (text) => (text === null || text === undefined ? null : new Float64Array(bytes(text)));

  const n = data.n, t = data.t, codes = data.codes;
  const lite = !data.Y;
  const classes = data.classes || [];
  const c = classes.length;
  const Y = lite ? null : floats(data.Y), Q0 = floats(data.Q0), scale = floats(data.scale), weights = floats(data.weights), X = floats(data.X);
  const landmarks = floats(data.landmarks), points = landmarks || X, m = points ? points.length / 2 : 0;
  let totalWeight = n;
  if (weights) { totalWeight = 0; for (const w of weights) totalWeight += w; }

  /* The decomposition of one width, unpacked when first needed. */
  function unpacked(width) {
    if (width.ready) return width;
    const r = width.rank, steps = floats(width.step), packed = new Int32Array(bytes(width.V)), V = new Float64Array(n * r);
    for (let i = 0; i < n; i++) for (let j = 0, k = i * r; j < r; j++, k++) V[k] = packed[k] * steps[j];
    for (const name of ["eigenvalues", "z", "rest", "outside", "z0", "rest0", "KQ0"]) width[name] = floats(width[name]);
    width.V = V;
    width.columns = (name, count) => {          // (r, count) row-major as contiguous columns
      const array = width[name], result = [];
      for (let k = 0; k < count; k++) result.push(Float64Array.from({ length: r }, (_, j) => array[j * count + k]));
      return result;
    };
    for (const name of ["expansion", "centre"]) width[name] = floats(width[name]);
    width.zs = width.columns("z", t);
    width.z0s = Q0 && width.z0 ? width.columns("z0", 1)[0] : null;
    width.ready = true;
    return width;
  }

  function times(phi, z) {
    const result = new Float64Array(phi.length);
    for (let j = 0; j < phi.length; j++) result[j] = phi[j] * z[j];
    return result;
  }

  /* out[i*stride + k] = V_i · x */
  function product(V, r, x, out, stride, k) {
    for (let i = 0, base = 0, at = k; i < n; i++, base += r, at += stride) {
      let sum = 0;
      for (let j = 0; j < r; j++) sum += V[base + j] * x[j];
      out[at] = sum;
    }
  }

  /* diag(V phi Vᵀ) */
  function diagonal(V, r, phi, out) {
    for (let i = 0, base = 0; i < n; i++, base += r) {
      let sum = 0;
      for (let j = 0; j < r; j++) { const v = V[base + j]; sum += v * v * phi[j]; }
      out[i] = sum;
    }
  }

  const room = {};
  const buffer = (name, size) => (room[name] && room[name].length === size ? room[name] : (room[name] = new Float64Array(size)));

  /* Residuals r (n, t), diagonals, held-out residuals and (where a plane is drawn) dual coefficients, at one mu. */
  function smooth(width, mu) {
    const { V, rank: r, eigenvalues: lambda, rest, outside } = unpacked(width);
    const residual = buffer("residual", n * t), o = buffer("o", n), rho = buffer("rho", n * t);
    const alpha = data.dual || X ? buffer("alpha", n * t) : null;
    const phi = new Float64Array(r);
    if (!data.dual) {
      for (let j = 0; j < r; j++) phi[j] = mu / (lambda[j] + mu);
      diagonal(V, r, phi, o);
      for (let i = 0; i < n; i++) o[i] += outside[i];
      for (let k = 0; k < t; k++) product(V, r, times(phi, width.zs[k]), residual, t, k);
      for (let i = 0; i < n * t; i++) residual[i] += rest[i];
      for (let i = 0; i < n; i++) for (let k = 0; k < t; k++) rho[i * t + k] = residual[i * t + k] / o[i];
      if (alpha) {
        // directions with λ = 0 but for rounding predict nothing, and would come in multiplied by 1/μ
        let most = 0;
        for (let j = 0; j < r; j++) most = Math.max(most, Math.abs(lambda[j]));
        for (let j = 0; j < r; j++) phi[j] = Math.abs(lambda[j]) > 2.2e-16 * n * most ? 1 / (lambda[j] + mu) : 0;
        for (let k = 0; k < t; k++) product(V, r, times(phi, width.zs[k]), alpha, t, k);
      }
      return { residual, o, rho, alpha, b: null, d: null };
    }
    const T = phi, F = new Float64Array(r), R = new Float64Array(r);
    for (let j = 0; j < r; j++) {
      const q = lambda[j] * lambda[j] + mu;
      T[j] = mu / q; F[j] = lambda[j] / q; R[j] = 1 / q;
    }
    const b = buffer("b", n), d = buffer("d", n);
    diagonal(V, r, T, o); diagonal(V, r, F, b); diagonal(V, r, R, d);
    for (let k = 0; k < t; k++) {
      product(V, r, times(T, width.zs[k]), residual, t, k);
      product(V, r, times(F, width.zs[k]), alpha, t, k);
    }
    for (let i = 0; i < n * t; i++) residual[i] += rest[i];
    for (let i = 0; i < n; i++) { o[i] += outside[i]; d[i] += outside[i] / mu; }
    if (Q0) {
      const E = buffer("E", n), W = buffer("W", n), EY = new Float64Array(t);
      product(V, r, times(T, width.z0s), E, 1, 0);
      product(V, r, times(F, width.z0s), W, 1, 0);
      let S = 0;
      for (let i = 0; i < n; i++) {
        E[i] += width.rest0[i];
        S += Q0[i] * E[i];
        for (let k = 0; k < t; k++) EY[k] += E[i] * Y[i * t + k];
      }
      for (let i = 0; i < n; i++) {
        for (let k = 0; k < t; k++) {
          residual[i * t + k] -= E[i] * EY[k] / S;
          alpha[i * t + k] -= W[i] * EY[k] / S;
        }
        o[i] -= E[i] * E[i] / S; b[i] -= E[i] * W[i] / S; d[i] += W[i] * W[i] / S;
      }
    }
    for (let i = 0; i < n; i++) {
      const den = o[i] * d[i] + b[i] * b[i];
      for (let k = 0; k < t; k++) rho[i * t + k] = (d[i] * residual[i * t + k] + b[i] * alpha[i * t + k]) / den;
    }
    return { residual, o, rho, alpha, b, d };
  }

  /* Inverse of a symmetric positive definite matrix in place, by Cholesky; a pivot lost to rounding is kept off zero. */
  function invert(A, m) {
    let size = 0;
    for (let j = 0; j < m; j++) size = Math.max(size, A[j * m + j]);
    const least = size * 1e-16 || 1e-300;
    for (let j = 0; j < m; j++) {
      let pivot = A[j * m + j];
      for (let k = 0; k < j; k++) pivot -= A[j * m + k] * A[j * m + k];
      const root = Math.sqrt(Math.max(pivot, least));
      A[j * m + j] = root;
      for (let i = j + 1; i < m; i++) {
        let sum = A[i * m + j];
        for (let k = 0; k < j; k++) sum -= A[i * m + k] * A[j * m + k];
        A[i * m + j] = sum / root;
      }
    }
    for (let j = 0; j < m; j++) {               // the inverse of the factor, in its place
      A[j * m + j] = 1 / A[j * m + j];
      for (let i = j + 1; i < m; i++) {
        let sum = 0;
        for (let k = j; k < i; k++) sum -= A[i * m + k] * A[k * m + j];
        A[i * m + j] = sum / A[i * m + i];
      }
    }
    for (let i = 0; i < m; i++) for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let k = i; k < m; k++) sum += A[k * m + i] * A[k * m + j];
      A[j * m + i] = sum;
    }
    for (let i = 0; i < m; i++) for (let j = 0; j < i; j++) A[i * m + j] = A[j * m + i];
  }

  function sizesOf() {
    const sizes = new Float64Array(c);
    for (let i = 0; i < n; i++) sizes[codes[i]] += scale ? scale[i] * scale[i] : 1;
    return sizes;
  }
  const sizes = codes && c ? sizesOf() : null;

  /* (ν, Q⁻¹, dof, offsets) of the LDA rule from a residual scatter; Q is overwritten. */
  function rule(Q, nu, offsets) {
    let total = 0, present = 0;
    for (let j = 0; j < c; j++) { total += nu[j]; if (nu[j] > 1e-9) present++; }
    const dof = Math.max(total - present, 0);
    for (let j = 0; j < c; j++) for (let k = 0; k < c; k++) {
      if (nu[j] > 1e-9 && nu[k] > 1e-9) Q[j * c + k] += nu[j] * nu[k] / total;
      else Q[j * c + k] = j === k ? 1 : 0;
    }
    invert(Q, c);
    for (let j = 0; j < c; j++) {
      if (nu[j] <= 1e-9) { offsets[j] = -Infinity; continue; }
      const prior = data.priors ? data.priors[j] : nu[j] / total;
      offsets[j] = -0.5 * dof * (Q[j * c + j] - 1 / nu[j]) + Math.log(prior);
    }
    return { total, dof };
  }

  function residualScatter(residual) {
    const R = new Float64Array(c * c);
    for (let i = 0; i < n; i++) {
      const s = scale ? scale[i] : 1, row = codes[i] * c;
      for (let k = 0; k < c; k++) R[row + k] += s * residual[i * c + k];
    }
    for (let j = 0; j < c; j++) for (let k = 0; k < j; k++) R[j * c + k] = R[k * c + j] = 0.5 * (R[j * c + k] + R[k * c + j]);
    return R;
  }

  /* The same without a factorisation per row, for many classes: with B = (R + ννᵀ/n)⁻¹, q = Br and G = B + qqᵀ/(o - r·q) the inverse for
     the sizes ν of all rows, those ν₁ = ν - w e of the others give M = PᵀGP + 11ᵀ/n₁, P = I - ν₁1ᵀ/n₁. Since Gν = 1, a row costs O(c²). */
  function shortScores(s, P, R) {
    const scores = buffer("scores", n * c), B = Float64Array.from(R), offsets = new Float64Array(c);
    const { total } = rule(B, sizes, offsets), { residual: r, o } = s;
    const q = new Float64Array(c), u = new Float64Array(c), v = new Float64Array(c);
    for (let i = 0; i < n; i++) {
      const at = i * c, e = codes[i], w = scale ? scale[i] * scale[i] : 1, n1 = total - w, dof = Math.max(n1 - c, 0);
      const size = (j) => sizes[j] - (j === e ? w : 0);
      let rq = 0, qu = 0, nuv = 0;
      for (let j = 0; j < c; j++) u[j] = P[at + j] - size(j) / n1;
      for (let j = 0; j < c; j++) {
        let a = 0, b = 0;
        for (let k = 0, from = j * c; k < c; k++, from++) { a += B[from] * r[at + k]; b += B[from] * u[k]; }
        q[j] = a; v[j] = b; rq += a * r[at + j]; qu += a * u[j];
      }
      const gain = 1 / (o[i] - rq);
      for (let j = 0; j < c; j++) { v[j] += q[j] * qu * gain; nuv += size(j) * v[j]; }
      const Gee = B[e * c + e] + q[e] * q[e] * gain, middle = (n1 - w * (1 - w * Gee)) / n1;
      for (let j = 0; j < c; j++) {
        const Gjj = B[j * c + j] + q[j] * q[j] * gain, along = 1 - w * (B[e * c + j] + q[e] * q[j] * gain);
        const Mjj = Gjj - along / n1 - (along - middle) / n1 + 1 / n1;
        const prior = data.priors ? data.priors[j] : size(j) / n1;
        scores[at + j] = dof * (v[j] - nuv / n1 - 0.5 * (Mjj - 1 / size(j))) + Math.log(prior);
      }
    }
    return scores;
  }

  /* Held-out class scores (n, c) of the discriminant: the rule of each row's own training set. */
  function discriminantScores(s, P, R) {
    const short = c > 8 && !s.b ? shortScores(s, P, R) : null;
    const scores = buffer("scores", n * c), Q = new Float64Array(c * c), nu = new Float64Array(c), offsets = new Float64Array(c);
    const { residual: r, o, alpha: a, b, d } = s;
    for (let i = 0; i < n; i++) {
      const at = i * c, w = scale ? scale[i] * scale[i] : 1;
      if (short && sizes[codes[i]] - w > 1e-9) continue;
      for (let j = 0; j < c; j++) nu[j] = sizes[j];
      nu[codes[i]] -= w;
      const den = b ? o[i] * d[i] + b[i] * b[i] : 0;
      for (let j = 0; j < c; j++) for (let k = 0; k < c; k++) {
        const rr = r[at + j] * r[at + k];
        Q[j * c + k] = R[j * c + k] - (b
          ? (d[i] * rr + b[i] * (a[at + j] * r[at + k] + r[at + j] * a[at + k]) - o[i] * a[at + j] * a[at + k]) / den
          : rr / o[i]);
      }
      const { total, dof } = rule(Q, nu, offsets);
      let sum = 0;
      for (let k = 0; k < c; k++) if (nu[k] > 1e-9) sum += P[at + k];
      for (let j = 0; j < c; j++) {
        let dot = 0;
        for (let k = 0; k < c; k++) if (nu[k] > 1e-9) dot += Q[j * c + k] * P[at + k];
        scores[at + j] = offsets[j] === -Infinity ? -Infinity : dof * (dot - sum / total) + offsets[j];
      }
    }
    return scores;
  }

  /* Everything at one position of the sliders. */
  function evaluate(width, mu) {
    const s = smooth(width, mu), P = buffer("P", n * t);
    for (let i = 0; i < n; i++) for (let k = 0; k < t; k++) P[i * t + k] = (Y[i * t + k] - s.rho[i * t + k]) / (scale ? scale[i] : 1);
    const result = { smooth: s, P, mu, dof: n };
    for (let i = 0; i < n; i++) result.dof -= s.o[i];
    if (data.kind === "regression") return regression(result);
    let decision, stride;
    if (data.kind === "discriminant") {
      result.R = residualScatter(s.residual);
      const scores = discriminantScores(s, P, result.R);
      if (c === 2) {
        decision = buffer("decision", n); stride = 1;
        for (let i = 0; i < n; i++) {
          const difference = scores[2 * i + 1] - scores[2 * i];
          decision[i] = Number.isFinite(difference) ? difference : NaN;
        }
      } else { decision = scores; stride = c; }
    } else { decision = P; stride = t; }
    return classification(result, decision, stride);
  }

  function classification(result, decision, stride) {
    const label = new Int32Array(n), margin = buffer("margin", n);
    let wrong = 0, nWrong = 0;
    for (let i = 0; i < n; i++) {
      if (stride === 1) {
        label[i] = decision[i] > 0 ? 1 : 0;
        margin[i] = codes[i] === 1 ? decision[i] : -decision[i];
      } else {
        let best = 0, other = -Infinity;
        for (let k = 1; k < c; k++) if (decision[i * c + k] > decision[i * c + best]) best = k;
        for (let k = 0; k < c; k++) if (k !== codes[i] && decision[i * c + k] > other) other = decision[i * c + k];
        label[i] = best;
        margin[i] = decision[i * c + codes[i]] - other;
      }
      if (label[i] !== codes[i]) { nWrong++; wrong += weights ? weights[i] : 1; }
    }
    return Object.assign(result, { decision, stride, label, margin, nWrong, error: wrong / totalWeight });
  }

  function regression(result) {
    let sum = 0;
    const margin = buffer("margin", n);
    const first = new Float64Array(n), mean = new Float64Array(t), ss = new Float64Array(t), tot = new Float64Array(t);
    for (let i = 0; i < n; i++) for (let k = 0; k < t; k++) mean[k] += (weights ? weights[i] : 1) * Y[i * t + k] / (scale ? scale[i] : 1) / totalWeight;
    for (let i = 0; i < n; i++) {
      let square = 0;
      const w = weights ? weights[i] : 1;
      for (let k = 0; k < t; k++) {
        const y = Y[i * t + k] / (scale ? scale[i] : 1), e = y - result.P[i * t + k];
        square += e * e;
        ss[k] += w * e * e; tot[k] += w * (y - mean[k]) ** 2;
      }
      first[i] = result.P[i * t];
      margin[i] = -Math.sqrt(square);
      sum += w * square / t;
    }
    let r2 = 0;
    for (let k = 0; k < t; k++) r2 += (1 - ss[k] / tot[k]) / t;
    return Object.assign(result, { decision: first, stride: 1, label: null, margin, nWrong: 0, error: Math.sqrt(sum / totalWeight), r2 });
  }

  // ---- pictures: a plane for two features, discriminant axes, a strip of decisions, or a fit --------------------------

  /* Eigenvalues and vectors of a small symmetric matrix by Jacobi's rotations. */
  function eigen(A, m) {
    const V = new Float64Array(m * m);
    for (let i = 0; i < m; i++) V[i * m + i] = 1;
    for (let sweep = 0; sweep < 60; sweep++) {
      let off = 0, on = 0;
      for (let p = 0; p < m; p++) { on += A[p * m + p] ** 2; for (let q = 0; q < p; q++) off += A[p * m + q] ** 2; }
      if (off <= 1e-24 * on || off === 0) break;
      for (let p = 0; p < m - 1; p++) for (let q = p + 1; q < m; q++) {
        const apq = A[p * m + q];
        if (apq === 0) continue;
        const theta = (A[q * m + q] - A[p * m + p]) / (2 * apq);
        const tan = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
        const cos = 1 / Math.sqrt(tan * tan + 1), sin = tan * cos;
        for (let k = 0; k < m; k++) {
          const x = A[k * m + p], y = A[k * m + q];
          A[k * m + p] = cos * x - sin * y; A[k * m + q] = sin * x + cos * y;
        }
        for (let k = 0; k < m; k++) {
          const x = A[p * m + k], y = A[q * m + k];
          A[p * m + k] = cos * x - sin * y; A[q * m + k] = sin * x + cos * y;
          const v = V[k * m + p], u = V[k * m + q];
          V[k * m + p] = cos * v - sin * u; V[k * m + q] = sin * v + cos * u;
        }
      }
    }
    return V;
  }

  /* Held-out rows on the two leading axes of the fit of all rows: P θ D √(n - c). */
  function projections(result) {
    let total = 0;
    for (const size of sizes) total += size;
    const S = new Float64Array(c * c);
    for (let j = 0; j < c; j++) for (let k = 0; k < c; k++) {
      S[j * c + k] = (j === k ? 1 : 0) - result.R[j * c + k] / Math.sqrt(sizes[j] * sizes[k]) - 2 * Math.sqrt(sizes[j] * sizes[k]) / total;
    }
    const A = S.slice(), T = eigen(A, c);
    const order = [...Array(c).keys()].sort((p, q) => A[q * c + q] - A[p * c + p]).slice(0, 2);
    const points = buffer("points", 2 * n);
    order.forEach((column, axis) => {
      const a2 = Math.min(A[column * c + column], 1 - 2.2e-16);
      const theta = new Float64Array(c);
      if (a2 > 1e-12) {
        const D = Math.sqrt((total - c) / (a2 * (1 - a2)));
        for (let j = 0; j < c; j++) theta[j] = T[j * c + column] / Math.sqrt(sizes[j]) * D;
      }
      let high = -Infinity, low = Infinity;     // the farthest centroid is positive, of equals the last
      for (let j = 0; j < c; j++) { const m = a2 * theta[j] * (1 + 1e-6 * j); high = Math.max(high, m); low = Math.min(low, m); }
      const sign = high >= -low ? 1 : -1;
      for (let i = 0; i < n; i++) {
        let dot = 0;
        for (let k = 0; k < c; k++) dot += result.P[i * c + k] * theta[k];
        points[2 * i + axis] = sign * dot;
      }
    });
    return points;
  }

  const noise = Float64Array.from({ length: n || 0 }, (_, i) => { const x = Math.sin(12.9898 * (i + 1)) * 43758.5453; return x - Math.floor(x); });

  const view = lite ? "none" : data.kind === "regression" ? "fit" : X ? "plane" : data.kind === "discriminant" && c > 2 ? "axes" : "strip";

  function pointsOf(result) {
    if (view === "plane") return X;
    if (view === "axes") return projections(result);
    const points = buffer("points", 2 * n);
    for (let i = 0; i < n; i++) {
      if (view === "fit") { points[2 * i] = Y[i * t] / (scale ? scale[i] : 1); points[2 * i + 1] = result.decision[i]; }
      else {
        points[2 * i] = c === 2 ? result.decision[i] : result.margin[i];
        points[2 * i + 1] = c - 1 - codes[i] + 0.7 * (noise[i] - 0.5);
      }
    }
    return points;
  }

  /* Kernel of grid points with the training rows; depends on the width only. */
  const kernels = {
    linear: (g, x) => g[0] * x[0] + g[1] * x[1],
    cosine: (g, x) => (g[0] * x[0] + g[1] * x[1]) / ((Math.hypot(g[0], g[1]) || 1) * (Math.hypot(x[0], x[1]) || 1)),
    rbf: (g, x, p) => Math.exp(-p.gammas[0] * (g[0] - x[0]) ** 2 - p.gammas[1] * (g[1] - x[1]) ** 2),
    laplacian: (g, x, p) => Math.exp(-p.gammas[0] * (Math.abs(g[0] - x[0]) + Math.abs(g[1] - x[1]))),
    poly: (g, x, p) => (p.gammas[0] * (g[0] * x[0] + g[1] * x[1]) + p.coef0) ** p.degree,
    sigmoid: (g, x, p) => Math.tanh(p.gammas[0] * (g[0] * x[0] + g[1] * x[1]) + p.coef0),
  };
  kernels.polynomial = kernels.poly;
  const outputs = c === 2 || data.kind === "regression" ? 1 : c;
  const side = view === "plane" ? Math.max(20, Math.min(56, Math.floor(Math.sqrt(1.6e6 / (m * outputs))))) : 0;
  let box = null;

  function gridKernel(width) {
    if (width.grid) return width.grid;
    const kernel = kernels[data.kernel], parameters = { ...data.parameters, gammas: width.gammas };
    const K = new Float64Array(side * side * m), g = [0, 0], x = [0, 0];
    for (let row = 0, at = 0; row < side; row++) for (let column = 0; column < side; column++) {
      g[0] = box.x0 + (box.x1 - box.x0) * column / (side - 1);
      g[1] = box.y0 + (box.y1 - box.y0) * row / (side - 1);
      for (let i = 0; i < m; i++, at++) { x[0] = points[2 * i]; x[1] = points[2 * i + 1]; K[at] = kernel(g, x, parameters); }
    }
    return (width.grid = K);
  }

  /* f(x) = k(x, X) (s∘α) + b: the bias from its normal equation, or the sum of the coefficients where it is penalised. */
  function rowModel(width, dual) {
    const b = new Float64Array(t), alpha = new Float64Array(n * t);
    let norm = 0;
    for (let i = 0; i < n; i++) {
      const s = scale ? scale[i] : 1;
      norm += s * s;
      for (let k = 0; k < t; k++) {
        alpha[i * t + k] = s * dual[i * t + k];
        if (data.intercept === "penalized") b[k] += alpha[i * t + k];
      }
    }
    if (data.intercept === "free") {
      for (let i = 0; i < n; i++) for (let k = 0; k < t; k++) b[k] += (Q0[i] * Y[i * t + k] - width.KQ0[i] * dual[i * t + k]) / Math.sqrt(norm);
    }
    return { alpha, b };
  }

  /* The same on landmarks: each direction's coefficients over λ + μ. */
  function landmarkModel(width, mu) {
    const r = width.rank, b = new Float64Array(t), alpha = new Float64Array(m * t);
    for (let k = 0; k < t; k++) {
      if (data.intercept === "free") b[k] = data.meanY[k];
      for (let j = 0; j < r; j++) {
        const x = width.zs[k][j] / (width.eigenvalues[j] + mu);
        b[k] += width.centre[j] * x;
        for (let i = 0; i < m; i++) alpha[i * t + k] += width.expansion[i * r + j] * x;
      }
    }
    return { alpha, b };
  }

  /* Outputs of the model of all rows on the grid: (side², outputs). */
  function field(width, result) {
    const { residual } = result.smooth, { alpha, b } = landmarks ? landmarkModel(width, result.mu) : rowModel(width, result.smooth.alpha);
    let M = new Float64Array(t * outputs), offsets = new Float64Array(outputs);
    if (data.kind === "discriminant") {
      const Q = residualScatter(residual), off = new Float64Array(c);
      const { total, dof } = rule(Q, sizes, off);
      const weight = (k, j) => dof * (Q[k * c + j] - 1 / total);
      for (let k = 0; k < c; k++) for (let j = 0; j < outputs; j++) M[k * outputs + j] = outputs === 1 ? weight(k, 1) - weight(k, 0) : weight(k, j);
      for (let j = 0; j < outputs; j++) offsets[j] = outputs === 1 ? off[1] - off[0] : off[j];
    } else for (let k = 0; k < t; k++) M[k * outputs + k] = 1;
    const coefficient = new Float64Array(outputs * m), constant = new Float64Array(outputs);
    for (let j = 0; j < outputs; j++) {
      constant[j] = offsets[j];
      for (let k = 0; k < t; k++) constant[j] += b[k] * M[k * outputs + j];
      for (let i = 0; i < m; i++) { let sum = 0; for (let k = 0; k < t; k++) sum += alpha[i * t + k] * M[k * outputs + j]; coefficient[j * m + i] = sum; }
    }
    const K = gridKernel(width), values = new Float64Array(side * side * outputs);
    for (let p = 0, base = 0; p < side * side; p++, base += m) for (let j = 0; j < outputs; j++) {
      let sum = constant[j];
      const at = j * m;
      for (let i = 0; i < m; i++) sum += K[base + i] * coefficient[at + i];
      values[p * outputs + j] = sum;
    }
    return values;
  }

  // ---- drawing -----------------------------------------------------------------------------------------------------

  const canvas = byId("explorer-view"), curve = byId("explorer-curve");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let palette = [];
  const colourOf = (k) => palette[k % palette.length];
  const shapeOf = (k) => (k + Math.floor(k / palette.length)) % 8;
  let colours = {};
  const readColours = () => { colours = { ink: css("--ink"), soft: css("--soft"), line: css("--line"), paper: css("--paper"), accent: css("--accent") }; palette = Array.from({ length: 8 }, (_, k) => css(`--c${k}`)); };

  function prepare(element) {
    const ratio = Math.min(window.devicePixelRatio || 1, 2), width = element.clientWidth, height = element.clientHeight;
    if (element.width !== Math.round(width * ratio) || element.height !== Math.round(height * ratio)) {
      element.width = Math.round(width * ratio); element.height = Math.round(height * ratio);
    }
    const context = element.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    return { context, width, height };
  }

  function ticks(low, high, count) {
    const span = high - low || 1, raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
    const result = [];
    for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * span; k++) result.push(Number((k * step).toPrecision(12)));
    return result;
  }

  const short = (x) => (x === 0 ? "0" : Math.abs(x) >= 1e4 || Math.abs(x) < 1e-3 ? x.toExponential(0).replace("e+", "e") : String(Number(x.toPrecision(3))));
  const figure = (x) => (x === 0 ? "0" : Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3 ? x.toExponential(2) : String(Number(x.toPrecision(3))));

  function mark(context, shape, x, y, s) {
    context.beginPath();
    if (shape === 0) context.arc(x, y, s, 0, 2 * Math.PI);
    else if (shape === 1) context.rect(x - 0.9 * s, y - 0.9 * s, 1.8 * s, 1.8 * s);
    else {
      const corners = { 2: [[0, -1.2], [1.1, 0.9], [-1.1, 0.9]], 3: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]], 4: [[0, 1.2], [1.1, -0.9], [-1.1, -0.9]],
        5: [[-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]],
        6: [[-1, -1.2], [0, -0.4], [1, -1.2], [1.2, -1], [0.4, 0], [1.2, 1], [1, 1.2], [0, 0.4], [-1, 1.2], [-1.2, 1], [-0.4, 0], [-1.2, -1]],
        7: [[0, -1.4], [0.35, -0.4], [1.3, -0.4], [0.55, 0.2], [0.85, 1.2], [0, 0.6], [-0.85, 1.2], [-0.55, 0.2], [-1.3, -0.4], [-0.35, -0.4]] }[shape];
      corners.forEach(([a, b], k) => (k ? context.lineTo(x + a * s, y + b * s) : context.moveTo(x + a * s, y + b * s)));
      context.closePath();
    }
  }

  let current = null, chosenLabels = null, selected = -1, screen = null;

  function axesOf(points) {
    if (view === "plane") return box;
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
    for (let i = 0; i < n; i++) {
      const x = points[2 * i], y = points[2 * i + 1];
      if (Number.isFinite(x)) { x0 = Math.min(x0, x); x1 = Math.max(x1, x); }
      if (Number.isFinite(y)) { y0 = Math.min(y0, y); y1 = Math.max(y1, y); }
    }
    if (view === "strip") { y0 = -0.6; y1 = c - 0.4; x0 = Math.min(x0, 0); x1 = Math.max(x1, 0); }
    if (!(x1 > x0)) { x0 -= 1; x1 += 1; }
    if (!(y1 > y0)) { y0 -= 1; y1 += 1; }
    const dx = 0.04 * (x1 - x0), dy = view === "strip" ? 0 : 0.04 * (y1 - y0);
    return { x0: x0 - dx, x1: x1 + dx, y0: y0 - dy, y1: y1 + dy };
  }

  function planeBox() {
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
    for (let i = 0; i < n; i++) { x0 = Math.min(x0, X[2 * i]); x1 = Math.max(x1, X[2 * i]); y0 = Math.min(y0, X[2 * i + 1]); y1 = Math.max(y1, X[2 * i + 1]); }
    const dx = 0.06 * (x1 - x0) || 1, dy = 0.06 * (y1 - y0) || 1;
    return { x0: x0 - dx, x1: x1 + dx, y0: y0 - dy, y1: y1 + dy };
  }

  function drawView() {
    const { context, width, height } = prepare(canvas);
    const points = pointsOf(current), area = axesOf(points);
    const lanes = view === "strip";
    const room = lanes ? Math.min(120, 14 + 7 * Math.max(...classes.map((name) => Math.min([...name].length, 14)))) : 46;
    const left = room, right = width - 10, top = 10, bottom = height - 36;
    const px = (x) => left + (x - area.x0) / (area.x1 - area.x0) * (right - left);
    const py = (y) => bottom - (y - area.y0) / (area.y1 - area.y0) * (bottom - top);
    context.lineWidth = 1;
    context.strokeStyle = colours.line; context.fillStyle = colours.soft;
    context.textAlign = "center"; context.textBaseline = "top";
    if (view === "plane") drawField(context, left, top, right, bottom);
    for (const x of ticks(area.x0, area.x1, width < 420 ? 4 : 7)) {
      if (view !== "plane") { context.beginPath(); context.moveTo(px(x), top); context.lineTo(px(x), bottom); context.stroke(); }
      context.fillText(short(x), px(x), bottom + 5);
    }
    context.textAlign = "right"; context.textBaseline = "middle";
    if (lanes) {
      const every = Math.ceil(c * 14 / (bottom - top));
      for (let k = 0; k < c; k += every) context.fillText(clip(context, classes[k], room - 10), left - 6, py(c - 1 - k));
    } else for (const y of ticks(area.y0, area.y1, 6)) {
      if (view !== "plane") { context.beginPath(); context.moveTo(left, py(y)); context.lineTo(right, py(y)); context.stroke(); }
      context.fillText(short(y), left - 6, py(y));
    }
    context.fillStyle = colours.ink; context.textAlign = "center"; context.textBaseline = "bottom";
    context.fillText(clip(context, data.xLabel, right - left), (left + right) / 2, height - 2);
    if (!lanes) {
      context.save(); context.translate(10, (top + bottom) / 2); context.rotate(-Math.PI / 2); context.textBaseline = "middle";
      context.fillText(clip(context, data.yLabel, bottom - top), 0, 0); context.restore();
    }
    context.setLineDash([5, 4]); context.strokeStyle = colours.ink; context.beginPath();
    if (lanes) { context.moveTo(px(0), top); context.lineTo(px(0), bottom); }
    if (view === "fit") {
      const low = Math.max(area.x0, area.y0), high = Math.min(area.x1, area.y1);
      context.moveTo(px(low), py(low)); context.lineTo(px(high), py(high));
    }
    context.stroke(); context.setLineDash([]);
    screen = buffer("screen", 2 * n);
    const size = n > 2000 ? 2 : n > 600 ? 2.8 : 3.8;
    context.save();
    context.beginPath(); context.rect(left - 6, top - 6, right - left + 12, bottom - top + 12); context.clip();
    for (const wanted of [0, 1]) for (let i = 0; i < n; i++) {
      const wrong = codes && current.label[i] !== codes[i] ? 1 : 0;
      if (wrong !== wanted) continue;
      const x = px(points[2 * i]), y = py(points[2 * i + 1]);
      screen[2 * i] = x; screen[2 * i + 1] = y;
      if (!Number.isFinite(x) || !Number.isFinite(y)) continue;
      mark(context, codes ? shapeOf(codes[i]) : 0, x, y, size);
      context.fillStyle = codes ? colourOf(codes[i]) : palette[0];
      context.globalAlpha = wrong ? 1 : 0.8;
      context.fill();
      context.lineWidth = 0.7; context.strokeStyle = colours.paper; context.stroke();
      if (wrong) { context.globalAlpha = 1; context.lineWidth = 1.4; context.strokeStyle = colours.ink; context.beginPath(); context.arc(x, y, size + 3, 0, 2 * Math.PI); context.stroke(); }
    }
    context.globalAlpha = 1;
    if (selected >= 0) {
      const x = screen[2 * selected], y = screen[2 * selected + 1];
      context.lineWidth = 2.5; context.strokeStyle = colours.accent;
      context.beginPath(); context.arc(x, y, size + 7, 0, 2 * Math.PI); context.stroke();
    }
    context.restore();
  }

  function clip(context, text, room) {
    if (context.measureText(text).width <= room) return text;
    const letters = [...text];
    while (letters.length > 1 && context.measureText(letters.join("") + "…").width > room) letters.pop();
    return letters.join("") + "…";
  }

  const small = document.createElement("canvas");

  /* Colours of the predicted class, and the lines between them. */
  function drawField(context, left, top, right, bottom) {
    const values = field(data.widths[widthIndex()], current);
    small.width = side; small.height = side;
    const brush = small.getContext("2d"), image = brush.createImageData(side, side);
    const rgb = palette.map((colour) => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)));
    const margins = Array.from({ length: outputs === 1 ? 1 : c }, () => new Float64Array(side * side));
    for (let p = 0; p < side * side; p++) {
      let best = 0;
      if (outputs === 1) { best = values[p] > 0 ? 1 : 0; margins[0][p] = values[p]; }
      else {
        let second = -Infinity;
        for (let k = 1; k < c; k++) if (values[p * c + k] > values[p * c + best]) best = k;
        for (let k = 0; k < c; k++) if (k !== best) second = Math.max(second, values[p * c + k]);
        for (let k = 0; k < c; k++) margins[k][p] = values[p * c + k] - (k === best ? second : values[p * c + best]);
      }
      const row = side - 1 - Math.floor(p / side), at = 4 * (row * side + p % side), colour = rgb[best % palette.length];
      image.data[at] = colour[0]; image.data[at + 1] = colour[1]; image.data[at + 2] = colour[2]; image.data[at + 3] = 46;
    }
    brush.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = true;
    const half = [(right - left) / (side - 1) / 2, (bottom - top) / (side - 1) / 2];
    context.save();
    context.beginPath(); context.rect(left, top, right - left, bottom - top); context.clip();
    context.drawImage(small, left - half[0], top - half[1], right - left + 2 * half[0], bottom - top + 2 * half[1]);
    context.strokeStyle = colours.ink; context.lineWidth = 1.6; context.beginPath();
    for (const margin of margins) contour(context, margin, (u) => left + u * (right - left) / (side - 1), (v) => bottom - v * (bottom - top) / (side - 1));
    context.stroke();
    context.restore();
    context.strokeStyle = colours.line; context.lineWidth = 1; context.strokeRect(left, top, right - left, bottom - top);
  }

  /* The zero line of a grid, cell by cell. */
  function contour(context, f, x, y) {
    for (let row = 0; row + 1 < side; row++) for (let column = 0; column + 1 < side; column++) {
      const at = row * side + column, corner = [f[at], f[at + 1], f[at + side + 1], f[at + side]], cuts = [];
      const place = [[column, row], [column + 1, row], [column + 1, row + 1], [column, row + 1]];
      for (let k = 0; k < 4; k++) {
        const a = corner[k], b = corner[(k + 1) % 4];
        if ((a > 0) === (b > 0)) continue;
        const s = a / (a - b), p = place[k], q = place[(k + 1) % 4];
        cuts.push([x(p[0] + s * (q[0] - p[0])), y(p[1] + s * (q[1] - p[1]))]);
      }
      for (let k = 0; k + 1 < cuts.length; k += 2) { context.moveTo(cuts[k][0], cuts[k][1]); context.lineTo(cuts[k + 1][0], cuts[k + 1][1]); }
    }
  }

  let curveScale = null;

  function drawCurve() {
    const { context, width, height } = prepare(curve);
    const left = 46, right = width - 10, top = 10, bottom = height - 34;
    const stops = data.table, logs = data.alphas.map(Math.log10), first = logs[0], last = logs[logs.length - 1];
    let low = Infinity, high = -Infinity;
    for (const entry of data.widths) for (const e of entry.errors) if (e !== null) { low = Math.min(low, e); high = Math.max(high, e); }
    if (!(high > low)) { high = low + (Math.abs(low) || 0.1) * 0.5; }
    const pad = 0.06 * (high - low);
    low = data.kind === "regression" ? low - pad : Math.max(0, low - pad); high += pad;
    const px = (log) => (last > first ? left + (log - first) / (last - first) * (right - left) : (left + right) / 2);
    const py = (e) => bottom - (e - low) / (high - low) * (bottom - top);
    curveScale = { left, right, first, last };
    context.strokeStyle = colours.line; context.fillStyle = colours.soft; context.lineWidth = 1;
    context.textAlign = "right"; context.textBaseline = "middle";
    for (const e of ticks(low, high, 4)) {
      context.beginPath(); context.moveTo(left, py(e)); context.lineTo(right, py(e)); context.stroke();
      context.fillText(data.kind === "regression" ? short(e) : `${short(100 * e)} %`, left - 5, py(e));
    }
    context.textAlign = "center"; context.textBaseline = "top";
    for (const x of ticks(first, last, 5)) context.fillText(Number.isInteger(x) && Math.abs(x) < 5 ? short(10 ** x) : `1e${short(x)}`, px(x), bottom + 4);
    context.fillStyle = colours.ink; context.textBaseline = "bottom";
    context.fillText("alpha", (left + right) / 2, height - 1);
    const shown = widthIndex();
    data.widths.forEach((entry, index) => {
      const now = index === shown;
      context.strokeStyle = now ? palette[0] : colours.soft; context.globalAlpha = now ? 1 : 0.35; context.lineWidth = now ? 2.2 : 1;
      context.beginPath();
      entry.errors.forEach((e, k) => { if (e !== null) context.lineTo(px(logs[stops[k]]), py(e)); });
      context.stroke();
    });
    context.globalAlpha = 1;
    const chosenX = px(logs[data.chosen]);
    context.setLineDash([3, 3]); context.strokeStyle = colours.soft; context.lineWidth = 1.2;
    context.beginPath(); context.moveTo(chosenX, top); context.lineTo(chosenX, bottom); context.stroke(); context.setLineDash([]);
    context.fillStyle = colours.paper; context.strokeStyle = palette[1]; context.lineWidth = 2.4;
    context.beginPath(); context.arc(px(logs[alphaIndex()]), py(shownError()), 5.5, 0, 2 * Math.PI); context.fill(); context.stroke();
  }

  // ---- the sliders -------------------------------------------------------------------------------------------------

  const alphaSlider = byId("explorer-alpha"), gammaSlider = byId("explorer-gamma"), output = byId("explorer-error"), tip = byId("explorer-tip");
  const alphaIndex = () => (lite ? data.table[Number(alphaSlider.value)] : Number(alphaSlider.value));
  const widthIndex = () => (gammaSlider ? Number(gammaSlider.value) : data.chosenWidth);
  const tableIndex = () => data.table.reduce((best, stop, k) => (Math.abs(stop - alphaIndex()) < Math.abs(data.table[best] - alphaIndex()) ? k : best), 0);
  const shownError = () => (lite ? data.widths[widthIndex()].errors[tableIndex()] : current.error);

  function say(id, text) { const element = byId(id); if (element && element.textContent !== text) element.textContent = text; }

  function words() {
    const mu = data.alphas[alphaIndex()], width = data.widths[widthIndex()];
    say("explorer-alpha-value", figure(mu));
    alphaSlider.setAttribute("aria-valuetext", `alpha ${figure(mu)}`);
    const gammaText = width.gamma !== null ? figure(width.gamma) : `${figure(width.factor)} × chosen`;
    if (gammaSlider) { say("explorer-gamma-value", gammaText); gammaSlider.setAttribute("aria-valuetext", `gamma ${gammaText}`); }
    const error = shownError();
    root.dataset.error = String(error);
    if (data.kind === "regression") say("explorer-error", `${figure(error)}`);
    else say("explorer-error", `${(100 * error).toFixed(1)} %`);
    const chosen = alphaIndex() === data.chosen && widthIndex() === data.chosenWidth;
    if (lite) { say("explorer-detail", chosen ? "the chosen model" : ""); return; }
    const parts = [];
    if (data.kind === "regression") parts.push(`R² ${current.r2.toFixed(3)}`);
    else parts.push(`${current.nWrong} of ${n} rows wrong when left out`);
    if (chosen) parts.push("this is the chosen model");
    else if (chosenLabels) {
      let changed = 0;
      for (let i = 0; i < n; i++) if (current.label[i] !== chosenLabels[i]) changed++;
      parts.push(`${changed} predicted otherwise than by the chosen model`);
    }
    parts.push(`effective degrees of freedom ${current.dof.toFixed(1)}`);
    say("explorer-detail", parts.join(" · "));
    const deviation = width.deviations[tableIndex()];
    const bound = width.dropped / (width.dropped + mu);
    let exact = `Held-out values here agree with Python's to ${deviation > 0 ? deviation.toExponential(0) : "rounding"} of their spread`;
    if (bound > 1e-12) exact += `; ${width.rank} directions are embedded, and leaving out the others changes I − H by at most the factor ${bound.toExponential(1)}`;
    if (bound > 1e-12 && data.table.includes(alphaIndex())) {
      const known = width.errors[tableIndex()];
      exact += `. Python's exact error here is ${data.kind === "regression" ? figure(known) : `${(100 * known).toFixed(1)} %`}`;
    }
    say("explorer-exact", `${exact}.`);
  }

  function select(i, announce) {
    if (selected >= 0) rowOf.get(data.active[selected])?.classList.remove("selected");
    selected = i;
    if (i >= 0) rowOf.get(data.active[i])?.classList.add("selected");
    describe(announce);
    if (current) drawView();
  }

  function describe(announce) {
    const panel = byId("explorer-row");
    if (selected < 0) { panel.textContent = data.hint; tip.hidden = true; return; }
    const i = selected, lines = [data.names[i]];
    if (codes) {
      lines.push(`observed ${classes[codes[i]]}, left out predicted ${classes[current.label[i]]}${current.label[i] === codes[i] ? "" : " (wrong)"}`);
      lines.push(`margin ${figure(current.margin[i])}`);
    } else lines.push(`observed ${figure(Y[i * t] / (scale ? scale[i] : 1))}, left out predicted ${figure(current.decision[i])}`);
    lines.push(`leverage ${(1 - current.smooth.o[i]).toFixed(3)}`);
    const text = lines.join(" · ");
    if (announce || panel.textContent !== text) panel.textContent = text;
    tip.textContent = text;
  }

  function update() {
    if (!lite) {
      const start = performance.now();
      current = evaluate(data.widths[widthIndex()], data.alphas[alphaIndex()]);
      drawView();
      if (selected >= 0) describe(false);
      words();
      drawCurve();
      root.dataset.milliseconds = (performance.now() - start).toFixed(2);
    } else { words(); drawCurve(); }
    root.dataset.moves = String(Number(root.dataset.moves || 0) + 1);
  }

  let waiting = false;
  function schedule() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; update(); });
  }

  function nearest(event) {
    const area = canvas.getBoundingClientRect(), x = event.clientX - area.left, y = event.clientY - area.top;
    let best = -1, least = 15 * 15;
    for (let i = 0; i < n; i++) {
      const distance = (screen[2 * i] - x) ** 2 + (screen[2 * i + 1] - y) ** 2;
      if (distance < least) { least = distance; best = i; }
    }
    return { best, x, y, area };
  }

  function openRow(i) {
    const tr = rowOf.get(data.active[i]);
    if (!tr) return;
    tr.hidden = false;
    tr.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    tr.focus({ preventScroll: true });
  }

  function listen() {
    alphaSlider.addEventListener("input", schedule);
    if (gammaSlider) gammaSlider.addEventListener("input", schedule);
    byId("explorer-reset").addEventListener("click", () => {
      alphaSlider.value = lite ? data.table.indexOf(data.chosen) : data.chosen;
      if (gammaSlider) gammaSlider.value = data.chosenWidth;
      schedule();
    });
    curve.addEventListener("click", (event) => {
      const x = event.clientX - curve.getBoundingClientRect().left, { left, right, first, last } = curveScale;
      const wanted = first + (x - left) / (right - left) * (last - first);
      const stops = lite ? data.table : data.alphas.map((_, k) => k);
      let best = 0;
      stops.forEach((stop, k) => { if (Math.abs(Math.log10(data.alphas[stop]) - wanted) < Math.abs(Math.log10(data.alphas[stops[best]]) - wanted)) best = k; });
      alphaSlider.value = best;
      schedule();
    });
    const redraw = () => { readColours(); legend(); if (current) drawView(); drawCurve(); };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    window.addEventListener("resize", redraw);
    if (lite) return;
    canvas.addEventListener("pointermove", (event) => {
      const { best, x, y, area } = nearest(event);
      if (best !== selected) select(best, false);
      tip.hidden = best < 0;
      if (best >= 0) { tip.style.left = `${Math.min(x + 12, area.width - 230)}px`; tip.style.top = `${y + 14}px`; }
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    canvas.addEventListener("click", (event) => { const { best } = nearest(event); if (best >= 0) { select(best, true); openRow(best); } });
    canvas.addEventListener("keydown", (event) => {
      const order = [...Array(n).keys()].sort((a, b) => current.margin[a] - current.margin[b]), at = order.indexOf(selected);
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) { event.preventDefault(); select(order[(at + step + (at < 0 && step < 0 ? 1 : 0) + n) % n], true); }
      else if (event.key === "Enter" && selected >= 0) { event.preventDefault(); openRow(selected); }
      else if (event.key === "Escape") select(-1, true);
    });
    if (table) table.tBodies[0].addEventListener("click", (event) => {
      const tr = event.target.closest("tr"), i = tr ? data.active.indexOf(Number(tr.dataset.row)) : -1;
      if (i >= 0) select(i, true);
    });
  }

  function legend() {
    const list = byId("explorer-legend");
    if (!list || !c || c > 16) return;
    list.textContent = "";
    classes.forEach((name, k) => {
      const item = document.createElement("li"), sample = document.createElement("canvas");
      sample.width = sample.height = 32; sample.className = "sample"; sample.setAttribute("aria-hidden", "true");
      const context = sample.getContext("2d");
      context.scale(2, 2); mark(context, shapeOf(k), 8, 8, 5); context.fillStyle = colourOf(k); context.fill();
      const text = document.createElement("bdi");
      text.textContent = name;
      item.append(sample, text);
      list.append(item);
    });
  }

  if (new Uint8Array(new Uint32Array([1]).buffer)[0] !== 1) { say("explorer-exact", "This processor is big-endian; the explorer cannot read its numbers."); return; }
  readColours();
  if (!lite) for (const width of data.widths) width.gammas = (data.chosenGammas || [0, 0]).map((gamma) => gamma * width.factor);
  if (view === "plane") box = planeBox();
  legend();
  listen();
  if (!lite) {
    current = evaluate(data.widths[data.chosenWidth], data.alphas[data.chosen]);
    chosenLabels = current.label ? current.label.slice() : null;
    const known = data.widths[data.chosenWidth].errors[data.table.indexOf(data.chosen)];
    const whole = data.widths[data.chosenWidth].deviations[data.table.indexOf(data.chosen)] < 1e-5;   // what was cut off is stated elsewhere
    if (whole && Math.abs(known - current.error) > 1e-9 * Math.max(1, Math.abs(known))) {
      say("explorer-warning", `This browser computes ${current.error} where Python computed ${known}: do not rely on the explorer here.`);
      byId("explorer-warning").hidden = false;
    }
    describe(false);
    root.fitonce = {                            // for whoever wants the numbers from the console
      data,
      side,
      projections,
      box: () => box,
      screen: () => screen,
      evaluate: (width, alpha) => evaluate(data.widths[width], data.alphas[alpha]),
      field: (width, alpha) => field(data.widths[width], evaluate(data.widths[width], data.alphas[alpha])),
    };
  }
  update();
  root.dataset.ready = "1";
  // unpack the other widths while nothing else happens, so that the first move to them is quick too
  const rest = lite ? [] : data.widths.slice();
  const later = window.requestIdleCallback || ((work) => setTimeout(work, 50));
  const next = () => { const width = rest.shift(); if (width) { unpacked(width); if (view === "plane") gridKernel(width); later(next); } else root.dataset.unpacked = "1"; };
  later(next);
})();
