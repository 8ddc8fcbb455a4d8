"""The method of Saadi, Talbot and Cawley (2007) in fifteen lines of NumPy, and its LS-SVM twin of
their section 5.1.

Nothing of fitonce is used: the tests take these lines as an independent oracle, and
``docs/papers/fifteen-lines.md`` shows them. Corrected as in that page: S = n - 1ᵀU(Λ + μI)⁻¹Uᵀ1,
and the residuals are those of the targets that the model was trained on.
"""

from __future__ import annotations

import numpy as np

# [orkfd]


def orkfd(K, y, mus, gamma=10.0):
    lam, V = np.linalg.eigh(K @ K)  # canonical form, once: O(n³)
    U = K @ V
    zeta, xi = U.sum(axis=0), U.T @ y
    found = []
    for mu in mus:  # O(n²) each
        c = 1.0 / (lam + mu)
        eta, nu, S = U @ (c * zeta), U @ (c * xi), len(y) - zeta @ (c * zeta)
        h = U**2 @ c + (eta - 1.0) ** 2 / S
        fitted = nu + (eta - 1.0) * ((eta - 1.0) @ y) / S
        held_out = y - (y - fitted) / (1.0 - h)
        error = np.mean(1.0 / (1.0 + np.exp(gamma * np.sign(y) * held_out)))
        b = (y.sum() - zeta @ (c * xi)) / S
        found.append((error, mu, V @ (c * (xi - zeta * b)), b, held_out))
    return min(found, key=lambda candidate: candidate[0])


# [ls_svm]


def ls_svm(K, y, mus, gamma=10.0):
    lam, V = np.linalg.eigh(K)
    zeta, xi = V.sum(axis=0), V.T @ y
    found = []
    for mu in mus:
        c = 1.0 / (lam + mu)
        eta, nu = V @ (c * zeta), V @ (c * xi)
        b = nu.sum() / eta.sum()
        alpha = nu - eta * b
        held_out = y - alpha / (V**2 @ c - eta**2 / eta.sum())
        error = np.mean(1.0 / (1.0 + np.exp(gamma * np.sign(y) * held_out)))
        found.append((error, mu, alpha, b, held_out))
    return min(found, key=lambda candidate: candidate[0])


# [newton]


def times(a, b):  # a value with its two derivatives, times another
    return np.stack(
        [a[0] * b[0], a[1] * b[0] + a[0] * b[1], a[2] * b[0] + 2 * a[1] * b[1] + a[0] * b[2]]
    )


def inverse(a):
    return np.stack([1 / a[0], -a[1] / a[0] ** 2, (2 * a[1] ** 2 / a[0] - a[2]) / a[0] ** 2])


def smoothed_error(lam, U, y, t, gamma=10.0):  # with its two derivatives in t = log μ: O(n²)
    c = 1.0 / (lam + np.exp(t))
    T = np.exp(t) * c
    C = np.stack([c, -c * T, c * T * (2.0 * T - 1.0)])
    zeta, xi, one = U.sum(axis=0), U.T @ y, np.array([1.0, 0.0, 0.0])
    eta, nu, S = (C * zeta) @ U.T - one[:, None], (C * xi) @ U.T, len(y) * one - C @ zeta**2
    h = C @ U.T**2 + times(times(eta, eta), inverse(S)[:, None])
    fitted = nu + times(eta, times(eta @ y, inverse(S))[:, None])
    held_out = one[:, None] * y - times(one[:, None] * y - fitted, inverse(one[:, None] - h))
    z = gamma * np.sign(y) * held_out
    E = 1.0 / (1.0 + np.exp(np.clip(z[0], -500.0, 500.0)))
    slope = -E * (1.0 - E)
    return E.mean(), np.mean(slope * z[1]), np.mean(slope * (z[2] + (2.0 * E - 1.0) * z[1] ** 2))


def newton(lam, U, y, t, steps=20, halvings=10):  # from t on, to a local minimum in log μ
    error, slope, curvature = smoothed_error(lam, U, y, t)
    for _ in range(steps):
        step = np.clip(-slope / max(abs(curvature), 1e-12), -3.0, 3.0)
        for _ in range(halvings):
            found = smoothed_error(lam, U, y, t + step)
            if found[0] < error:
                break
            step *= 0.5
        if found[0] >= error or error - found[0] < 1e-7:
            return (found[0], t + step) if found[0] < error else (error, t)
        t, (error, slope, curvature) = t + step, found
    return error, t
