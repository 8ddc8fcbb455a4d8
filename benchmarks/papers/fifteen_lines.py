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
