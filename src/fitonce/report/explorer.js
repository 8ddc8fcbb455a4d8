/* The explorer: looks up what the library computed for every stop of the sliders, and draws it. */
(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const root = byId("explorer");
  if (!root) return;
  const data = JSON.parse(byId("explorer-data").textContent);
  const { alphas, gammas, factors, chosen, errors, view, codes } = data;
  const lite = !data.channels; // a page without its rows has figures only
  const n = lite ? 0 : data.names.length;
  const classes = data.classes || [];
  const regression = data.kind === "regression";
  const alphaSlider = byId("explorer-alpha"), gammaSlider = byId("explorer-gamma");
  const canvas = byId("explorer-view"), curve = byId("explorer-curve"), tip = byId("explorer-tip");

  // ---- looking up ------------------------------------------------------------------------------

  const gammaStop = () => (gammaSlider ? Number(gammaSlider.value) : chosen.gamma);
  const alphaStop = () => Number(alphaSlider.value);
  const stopOf = (gamma, alpha) => gamma * alphas.length + alpha;

  function unpacked({ data: text, bits }) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return bits === 16 ? new Uint16Array(bytes.buffer) : bytes;
  }

  /* The numbers of a channel at one stop: low + step × code, NaN for the largest code. */
  function numbers(name, stop) {
    const channel = data.channels[name];
    if (!channel) return null;
    channel.codes ??= unpacked(channel);
    const { codes: all, low, step, bits } = channel, length = all.length / low.length;
    return Float64Array.from(all.subarray(stop * length, (stop + 1) * length), (code) =>
      code === 2 ** bits - 1 ? NaN : low[stop] + step[stop] * code);
  }

  function lookUp(gamma, alpha) {
    const stop = stopOf(gamma, alpha), result = { stop, error: errors[stop] };
    if (lite) return result;
    for (const name of Object.keys(data.channels)) result[name] = numbers(name, stop);
    const wrong = (k, i) => !Number.isNaN(k) && k !== codes[i];
    result.wrong = codes ? Array.from(result.predicted, wrong) : Array(n).fill(false);
    result.points = Array.from({ length: n }, (_, i) => pointOf(result, i));
    return result;
  }

  /* Where a row is drawn. Lanes spread their rows by a fixed noise. */
  function pointOf(result, i) {
    if (view === "plane") return data.points[i];
    if (view === "axes") return [result.x[i], result.y[i]];
    if (view === "fit") return [data.observed[i], result.value[i]];
    const flip = classes.length === 2 && codes[i] === 0 ? -1 : 1; // margins as decision values
    const noise = Math.sin(12.9898 * (i + 1)) * 43758.5453;
    const lane = classes.length - 1 - codes[i];
    return [flip * result.value[i], lane + 0.7 * (noise - Math.floor(noise) - 0.5)];
  }

  /* Smallest first: rows predicted worst. */
  function merit(i) {
    if (regression) return -Math.abs(data.observed[i] - current.value[i]);
    return Number.isNaN(current.value[i]) ? (current.wrong[i] ? -Infinity : Infinity)
      : current.value[i];
  }

  // ---- drawing ---------------------------------------------------------------------------------

  let colours = {}, palette = [];
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const css = (name) => style.getPropertyValue(`--${name}`).trim();
    for (const name of ["ink", "soft", "line", "paper", "accent"]) colours[name] = css(name);
    palette = Array.from({ length: 8 }, (_, k) => css(`c${k}`));
  }
  const colourOf = (k) => palette[k % palette.length];

  /* The polygon that stands for a class. */
  function mark(context, k, x, y, size) {
    context.beginPath();
    for (const [a, b] of data.marks[k % data.marks.length]) {
      context.lineTo(x + a * size, y + b * size);
    }
    context.closePath();
  }

  function line(context, x0, y0, x1, y1) {
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  }

  function ring(context, x, y, radius, width, colour) {
    Object.assign(context, { lineWidth: width, strokeStyle: colour, globalAlpha: 1 });
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.stroke();
  }

  /* A cleared canvas with the scales of an area {x: [low, high], y: [low, high]}. */
  function chart(element, area, left) {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = element.clientWidth, height = element.clientHeight;
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
    const context = element.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    const right = width - 10, top = 10, bottom = height - 36;
    const scale = ([low, high], from, to) => (value) =>
      from + (high > low ? (value - low) / (high - low) : 0.5) * (to - from);
    return { context, width, height, left, right, top, bottom, area,
      px: scale(area.x, left, right), py: scale(area.y, bottom, top) };
  }

  function ticks([low, high], count) {
    const raw = (high - low || 1) / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
    // a span of a few last digits has no numbers in between
    if (!(step > 1e-13 * Math.max(Math.abs(low), Math.abs(high)))) return [low];
    const first = Math.ceil(low / step), last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, k) =>
      Number(((first + k) * step).toPrecision(12)));
  }

  /* Grid lines with their numbers, along x or y. */
  function grid(plot, along, marks, text, lines = true) {
    const { context, left, right, top, bottom, px, py } = plot;
    Object.assign(context, { strokeStyle: colours.line, fillStyle: colours.soft, lineWidth: 1,
      textAlign: along === "x" ? "center" : "right",
      textBaseline: along === "x" ? "top" : "middle" });
    for (const value of marks) {
      const [x, y] = along === "x" ? [px(value), bottom + 5] : [left - 6, py(value)];
      if (lines && along === "x") line(context, x, top, x, bottom);
      if (lines && along === "y") line(context, left, y, right, y);
      context.fillText(text(value), x, y);
    }
  }

  function axisNames({ context, left, right, top, bottom, height }, xName, yName) {
    Object.assign(context, { fillStyle: colours.ink, textAlign: "center", textBaseline: "bottom" });
    context.fillText(fitted(context, xName, right - left), (left + right) / 2, height - 2);
    context.save();
    context.translate(10, (top + bottom) / 2);
    context.rotate(-Math.PI / 2);
    context.textBaseline = "middle";
    context.fillText(fitted(context, yName, bottom - top), 0, 0);
    context.restore();
  }

  function fitted(context, text, room) {
    if (context.measureText(text).width <= room) return text;
    const letters = [...text];
    while (letters.length > 1 && context.measureText(`${letters.join("")}…`).width > room) {
      letters.pop();
    }
    return `${letters.join("")}…`;
  }

  function inDigits(x, digits, most) {
    const plain = x === 0 || (Math.abs(x) >= 1e-3 && Math.abs(x) < most);
    return plain ? String(Number(x.toPrecision(3)))
      : x.toExponential(digits - 1).replace("e+", "e");
  }
  const short = (x) => inDigits(x, 1, 1e4);
  const figure = (x) => inDigits(x, 3, 1e5);
  const errorText = (error) => (error === null ? "–"
    : regression ? figure(error) : `${(100 * error).toFixed(1)} %`);

  // ---- the picture of the rows -----------------------------------------------------------------

  let current = null, start = null, selected = -1, screen = [];

  function range(values, share) {
    const known = values.filter(Number.isFinite);
    let low = Math.min(...known), high = Math.max(...known);
    if (!(high > low)) [low, high] = known.length ? [low - 1, high + 1] : [-1, 1];
    return [low - share * (high - low), high + share * (high - low)];
  }

  function areaOf(points) {
    if (view === "plane") {
      const [low, high] = data.box;
      return { x: [low[0], high[0]], y: [low[1], high[1]] };
    }
    const xs = points.map((point) => point[0]), ys = points.map((point) => point[1]);
    if (view === "lanes") return { x: range([...xs, 0], 0.04), y: [-0.6, classes.length - 0.4] };
    return { x: range(xs, 0.04), y: range(ys, 0.04) };
  }

  function drawView() {
    const longest = Math.max(...classes.map((name) => Math.min([...name].length, 14)));
    const left = view === "lanes" ? Math.min(120, 14 + 7 * longest) : 56;
    const plot = chart(canvas, areaOf(current.points), left);
    const { context, area, px, py } = plot, plain = view !== "plane";
    if (!plain) drawRegions(plot);
    grid(plot, "x", ticks(area.x, plot.width < 420 ? 4 : 7), short, plain);
    if (view === "lanes") {
      const every = Math.ceil((classes.length * 14) / (plot.bottom - plot.top));
      const lanes = [...classes.keys()].filter((k) => k % every === 0);
      const nameOf = (lane) => fitted(context, classes[classes.length - 1 - lane], left - 10);
      grid(plot, "y", lanes.map((k) => classes.length - 1 - k), nameOf, false);
    } else grid(plot, "y", ticks(area.y, 6), short, plain);
    axisNames(plot, ...data.labels);
    context.setLineDash([5, 4]);
    context.strokeStyle = colours.ink;
    if (view === "lanes") line(context, px(0), plot.top, px(0), plot.bottom);
    if (view === "fit") {
      const low = Math.max(area.x[0], area.y[0]), high = Math.min(area.x[1], area.y[1]);
      line(context, px(low), py(low), px(high), py(high));
    }
    context.setLineDash([]);
    drawRows(plot);
  }

  function drawRows({ context, px, py }) {
    const size = n > 2000 ? 2 : n > 600 ? 2.8 : 3.8;
    screen = current.points.map(([x, y]) => [px(x), py(y)]);
    for (const wrong of [false, true]) screen.forEach(([x, y], i) => {
      if (current.wrong[i] !== wrong || !Number.isFinite(x + y)) return;
      mark(context, codes ? codes[i] : 0, x, y, size);
      Object.assign(context, { fillStyle: colourOf(codes ? codes[i] : 0), lineWidth: 0.7,
        globalAlpha: wrong ? 1 : 0.8, strokeStyle: colours.paper });
      context.fill();
      context.stroke();
      if (wrong) ring(context, x, y, size + 3, 1.4, colours.ink);
    });
    if (selected >= 0) ring(context, ...screen[selected], size + 7, 2.5, colours.accent);
  }

  const FINER = 4; // pixels of the coloured regions between two points of the grid

  /* Regions of the predicted classes, and the lines between them. */
  function drawRegions({ context, left, right, top, bottom }) {
    const side = Math.sqrt(current.region.length), size = (side - 1) * FINER;
    const image = document.createElement("canvas"), brush = image.getContext("2d");
    image.width = image.height = size;
    for (let row = 0; row < size; row++) for (let column = 0; column < size; column++) {
      brush.fillStyle = colourOf(regionAt((column + 0.5) / FINER, (row + 0.5) / FINER, side));
      brush.fillRect(column, size - 1 - row, 1, 1);
    }
    context.globalAlpha = 0.18;
    context.drawImage(image, left, top, right - left, bottom - top);
    context.globalAlpha = 1;
    Object.assign(context, { strokeStyle: colours.ink, lineWidth: 1.6 });
    const x = (u) => left + (u / (side - 1)) * (right - left);
    const y = (v) => bottom - (v / (side - 1)) * (bottom - top);
    for (const [u, v, s, t] of boundaryLines(side)) line(context, x(u), y(v), x(s), y(t));
    Object.assign(context, { strokeStyle: colours.line, lineWidth: 1 });
    context.strokeRect(left, top, right - left, bottom - top);
  }

  const CORNERS = [[0, 0], [1, 0], [1, 1], [0, 1]];

  /* The class with the largest lead at a place between grid points. */
  function regionAt(x, y, side) {
    const u = Math.floor(x), v = Math.floor(y), leads = new Map();
    for (const [a, b] of CORNERS) {
      const at = (v + b) * side + u + a, k = current.region[at];
      const share = (a ? x - u : 1 - x + u) * (b ? y - v : 1 - y + v);
      leads.set(k, (leads.get(k) ?? 0) + share * (current.distance[at] + 1e-12));
    }
    return [...leads].reduce((best, other) => (other[1] > best[1] ? other : best))[0];
  }

  /* Pieces of the lines between regions: in every cell the places where its edges are cut. */
  function boundaryLines(side) {
    const pieces = [];
    for (let v = 0; v + 1 < side; v++) for (let u = 0; u + 1 < side; u++) {
      const cuts = [], at = CORNERS.map(([a, b]) => (v + b) * side + u + a);
      CORNERS.forEach(([a, b], k) => {
        const next = (k + 1) % 4, [p, q] = [at[k], at[next]], [c, d] = CORNERS[next];
        if (current.region[p] === current.region[q]) return;
        const lead = current.distance[p] + 1e-12;
        const share = lead / (lead + current.distance[q] + 1e-12);
        cuts.push([u + a + share * (c - a), v + b + share * (d - b)]);
      });
      if (cuts.length === 2) pieces.push([...cuts[0], ...cuts[1]]);
      else if (cuts.length > 2) {
        const middle = [0, 1].map((k) => cuts.reduce((sum, cut) => sum + cut[k], 0) / cuts.length);
        for (const cut of cuts) pieces.push([...cut, ...middle]);
      }
    }
    return pieces;
  }

  // ---- the error along alpha -------------------------------------------------------------------

  const logs = alphas.map(Math.log10);
  let curvePlot = null;

  function drawCurve() {
    const y = range(errors, 0.06);
    if (!regression) y[0] = Math.max(0, y[0]);
    const plot = (curvePlot = chart(curve, { x: [logs[0], logs.at(-1)], y }, 52));
    const { context, px, py, top, bottom } = plot;
    grid(plot, "y", ticks(y, 4), (e) => (regression ? short(e) : `${short(100 * e)} %`));
    const power = (x) => (Math.abs(x) < 4 ? short(10 ** x) : `1e${short(x)}`);
    const whole = ticks(plot.area.x, 5).filter(Number.isInteger);
    grid(plot, "x", whole.length > 1 ? whole : ticks(plot.area.x, 5), power, false);
    axisNames(plot, "alpha", "");
    factors.forEach((_, gamma) => {
      const now = gamma === gammaStop();
      Object.assign(context, { strokeStyle: now ? palette[0] : colours.soft,
        globalAlpha: now ? 1 : 0.35, lineWidth: now ? 2.2 : 1 });
      context.beginPath();
      logs.forEach((log, alpha) => {
        const error = errors[stopOf(gamma, alpha)];
        if (error !== null) context.lineTo(px(log), py(error));
      });
      context.stroke();
    });
    Object.assign(context, { strokeStyle: colours.soft, globalAlpha: 1, lineWidth: 1.2 });
    context.setLineDash([3, 3]);
    line(context, px(logs[chosen.alpha]), top, px(logs[chosen.alpha]), bottom);
    context.setLineDash([]);
    if (current.error === null) return;
    context.fillStyle = colours.paper;
    ring(context, px(logs[alphaStop()]), py(current.error), 5.5, 2.4, palette[1]);
    context.fill();
  }

  // ---- words -----------------------------------------------------------------------------------

  function say(id, text) {
    const element = byId(id);
    if (element && element.textContent !== text) element.textContent = text;
  }

  function label(slider, name, text) {
    if (!slider) return;
    say(`${slider.id}-value`, text);
    slider.setAttribute("aria-valuetext", `${name} ${text}`);
  }

  function details() {
    if (current.error === null) return ["alpha is too small for this kernel: there is no model"];
    const same = current.stop === start.stop ? ["this is the chosen model"] : [];
    if (lite) return same;
    const dof = `effective degrees of freedom ${data.dof[current.stop].toFixed(1)}`;
    if (regression) return [`${data.splits} R² ${data.r2[current.stop]?.toFixed(3) ?? "–"}`, ...same, dof];
    const wrong = current.wrong.filter(Boolean).length;
    const changed = current.predicted.filter((k, i) => k !== start.predicted[i]).length;
    const other = `${changed} predictions differ from those of the chosen model`;
    return [`${wrong} of ${n} rows misclassified when left out`, ...(same.length ? same : [other]), dof];
  }

  function words() {
    const gamma = gammas[gammaStop()], factor = factors[gammaStop()];
    label(alphaSlider, "alpha", figure(alphas[alphaStop()]));
    label(gammaSlider, "gamma", gamma === null ? `${figure(factor)} × chosen` : figure(gamma));
    say("explorer-error", errorText(current.error));
    say("explorer-detail", details().join(" · "));
    root.dataset.error = String(current.error);
  }

  function describe() {
    if (lite) return;
    const i = selected, known = (x) => (Number.isFinite(x) ? figure(x) : "–");
    if (i < 0) {
      say("explorer-row", "None yet. Hover over a point, or step through the rows with the arrow keys.");
      tip.hidden = true;
      return;
    }
    const observed = codes ? classes[codes[i]] : known(data.observed[i]);
    const value = known(current.value[i]);
    const predicted = codes ? classes[current.predicted[i]] ?? "–" : value;
    const wrong = current.wrong[i] ? " (wrong)" : "", margin = codes ? [`margin ${value}`] : [];
    say("explorer-row", [data.names[i],
      `observed ${observed}, predicted ${predicted} when left out${wrong}`, ...margin,
      `leverage ${known(current.leverage[i])}`].join(" · "));
    tip.textContent = byId("explorer-row").textContent;
  }

  // ---- use -------------------------------------------------------------------------------------

  const tableRow = (i) => document.querySelector(`#rows tr[data-row="${data.rows[i]}"]`);

  function select(i) {
    if (selected >= 0) tableRow(selected)?.classList.remove("selected");
    selected = i;
    if (i >= 0) tableRow(i)?.classList.add("selected");
    describe();
    drawView();
  }

  function openRow(i) {
    const tr = tableRow(i);
    if (!tr) return;
    tr.hidden = false;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    tr.scrollIntoView({ block: "center", behavior: still ? "auto" : "smooth" });
    tr.focus({ preventScroll: true });
  }

  function draw() {
    if (!lite) drawView();
    drawCurve();
  }

  function update() {
    current = lookUp(gammaStop(), alphaStop());
    words();
    describe();
    draw();
    root.dataset.moves = String(Number(root.dataset.moves || 0) + 1);
  }

  function go(gamma, alpha) {
    if (gammaSlider) gammaSlider.value = gamma;
    alphaSlider.value = alpha;
    update();
  }

  /* The row nearest to the pointer, -1 where none is near. */
  function nearest({ offsetX, offsetY }) {
    const away = screen.map(([x, y]) => (x - offsetX) ** 2 + (y - offsetY) ** 2);
    return away.reduce((best, d, i) => (d < (away[best] ?? 225) ? i : best), -1);
  }

  function onKey(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      const order = [...Array(n).keys()].sort((a, b) => merit(a) - merit(b) || a - b);
      const at = selected < 0 ? (step > 0 ? -1 : 0) : order.indexOf(selected);
      select(order[(at + step + n) % n]);
    } else if (event.key === "Enter" && selected >= 0) openRow(selected);
    else if (event.key === "Escape") select(-1);
    else return;
    event.preventDefault();
  }

  alphaSlider.addEventListener("input", update);
  gammaSlider?.addEventListener("input", update);
  byId("explorer-reset").addEventListener("click", () => go(chosen.gamma, chosen.alpha));
  curve.addEventListener("click", (event) => {
    const away = logs.map((log) => Math.abs(curvePlot.px(log) - event.offsetX));
    go(gammaStop(), away.indexOf(Math.min(...away)));
  });
  canvas?.addEventListener("pointermove", (event) => {
    const best = nearest(event);
    if (best !== selected) select(best);
    tip.hidden = best < 0;
    tip.style.left = `${Math.min(event.offsetX + 12, canvas.clientWidth - 230)}px`;
    tip.style.top = `${event.offsetY + 14}px`;
  });
  canvas?.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas?.addEventListener("click", (event) => {
    const best = nearest(event);
    if (best >= 0) { select(best); openRow(best); }
  });
  canvas?.addEventListener("keydown", onKey);
  byId("rows")?.tBodies[0].addEventListener("click", (event) => {
    const i = data.rows?.indexOf(Number(event.target.closest("tr")?.dataset.row)) ?? -1;
    if (i >= 0) select(i);
  });

  const repaint = () => { readColours(); draw(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  window.addEventListener("resize", repaint);

  readColours();
  start = lookUp(chosen.gamma, chosen.alpha);
  update();
  root.fitonce = { data, lookUp, boundaryLines, ticks, screen: () => screen }; // for the console
  root.dataset.ready = "1";
})();
