"""Settings of other software: keyword arguments for fitonce's estimators from published settings,
and back.

"Regularization" of a kernel discriminant means different things in different places. Each function
names the model it converts. All return a dictionary of keyword arguments:
``KernelFisherDiscriminant(**from_mvpa_light(...))``.

| source | penalized | alpha |
| --- | --- | --- |
| Cawley, Saadi, Talbot; Mika's KFD | dual coefficients, free bias | μ, ``penalty="dual"`` |
| LS-SVM, LS-SVMlab | function norm, free bias | 1/gam |
| scikit-learn KernelRidge | function norm, no bias | its alpha |
| scikit-learn Ridge, RidgeClassifier | function norm, linear kernel, free bias | its alpha |
| scikit-learn LDA, shrinkage s | function norm, linear kernel | s/(1-s) · trace(S_w)/n_features |
| MVPA-Light kernel FDA, ridge λ | dual coefficients | λ, ``penalty="dual"`` |
| MVPA-Light kernel FDA, shrink λ | dual coefficients | λ/(1-λ) · trace(N)/n, see below |

N is the dual within-class scatter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Settings = dict[str, Any]


def gamma_from_width(sigma: float) -> float:
    """Convert the width of a Gaussian kernel exp(-‖x-x'‖²/(2 sigma²)).

    Returns
    -------
    float
        gamma of exp(-gamma ‖x-x'‖²).

    Examples
    --------
    >>> gamma_from_width(2.0)
    0.125
    """
    return 1.0 / (2.0 * _positive("sigma", sigma) ** 2)


def width_from_gamma(gamma: float) -> float:
    """Invert `gamma_from_width`.

    Returns
    -------
    float
        sigma.
    """
    return float(np.sqrt(1.0 / (2.0 * _positive("gamma", gamma))))


def from_papers(mu: float, sigma: float | None = None, penalized_bias: bool = False) -> Settings:
    """Convert settings of the KFD of Mika et al., Cawley & Talbot (2003) and Saadi et al. (2007).

    K'K + μI with a free bias and a Gaussian kernel of width sigma. With `penalized_bias`, the bias
    is penalized like every coefficient: K'K + μI for [K 1] instead of K (Saadi et al., section
    3.4).

    Returns
    -------
    dict
        Keyword arguments for an estimator.

    Examples
    --------
    >>> from_papers(mu=0.1, penalized_bias=True)
    {'alpha': 0.1, 'penalty': 'dual', 'fit_intercept': 'coefficient'}
    """
    settings: Settings = {"alpha": _positive("mu", mu), "penalty": "dual"}
    if penalized_bias:
        settings |= {"fit_intercept": "coefficient"}
    return (
        settings
        if sigma is None
        else {**settings, "kernel": "rbf", "gamma": gamma_from_width(sigma)}
    )


def from_lssvmlab(gam: float, sig2: float | None = None) -> Settings:
    """Convert settings of LS-SVMlab: alpha = 1/gam, gamma = 1/sig2 for exp(-‖x-x'‖²/sig2).

    Some copies of the toolbox divide by 2·sig2 instead: pass 2·sig2 then.

    Returns
    -------
    dict
        Keyword arguments for an estimator.

    Examples
    --------
    >>> from_lssvmlab(gam=10.0, sig2=0.5)
    {'alpha': 0.1, 'penalty': 'function', 'kernel': 'rbf', 'gamma': 2.0}
    """
    settings: Settings = {"alpha": 1.0 / _positive("gam", gam), "penalty": "function"}
    return (
        settings
        if sig2 is None
        else {**settings, "kernel": "rbf", "gamma": 1.0 / _positive("sig2", sig2)}
    )


def to_lssvmlab(alpha: float, gamma: float | None = None) -> dict[str, float]:
    """Convert the alpha and gamma of a function-norm model to LS-SVMlab.

    Returns
    -------
    dict
        gam and sig2.
    """
    settings = {"gam": 1.0 / _positive("alpha", alpha)}
    return settings if gamma is None else {**settings, "sig2": 1.0 / _positive("gamma", gamma)}


def from_sklearn_kernel_ridge(alpha: float) -> Settings:
    """Convert the alpha of scikit-learn's KernelRidge, which has no bias.

    Returns
    -------
    dict
        Keyword arguments for an estimator.
    """
    return {"alpha": _positive("alpha", alpha), "penalty": "function", "fit_intercept": False}


def from_sklearn_lda(shrinkage: float, X: Any, y: Any) -> Settings:
    """Convert the shrinkage of LinearDiscriminantAnalysis(solver="eigen", shrinkage=s), which
    replaces the covariance of each class by (1-s) Σ_j + s tr(Σ_j)/p I.

    Up to a common factor, alpha = s/(1-s) · trace(S_w)/p. The directions of its ``coef_`` agree
    with ours. Its decisions minus the log priors are ours times n/((n-c)(1-s)). The axes of its
    eigen solver differ, because it also shrinks the total scatter.

    Returns
    -------
    dict
        Keyword arguments for an estimator.
    """
    share = _share("shrinkage", shrinkage)
    X = np.asarray(X, dtype=np.float64)
    return {
        "kernel": "linear",
        "alpha": share * within_class_scatter_trace(X @ X.T, y) / X.shape[1],
        "penalty": "function",
    }


def from_mvpa_light(lambda_: float, K: Any, y: Any, reg: str = "shrink") -> Settings:
    """Convert settings of MVPA-Light's kernel_fda: N + λI for reg="ridge", (1-λ)N + λ tr(N)/n I
    for reg="shrink", where N is the dual within-class scatter.

    Up to a common factor both are N + alpha I, whose discriminant is ours with ``penalty="dual"``.

    Parameters
    ----------
    lambda_ : float
        The lambda of MVPA-Light.
    K : array of shape (n, n)
        The training kernel matrix (used only for "shrink").
    y : array of shape (n,)
        Labels.
    reg : {"shrink", "ridge"}
        How it regularizes.

    Returns
    -------
    dict
        Keyword arguments for an estimator.
    """
    if reg == "ridge":
        return {"alpha": _positive("lambda_", lambda_), "penalty": "dual"}
    if reg != "shrink":
        raise ValueError(f"reg must be 'shrink' or 'ridge', got {reg!r} instead.")
    K = np.asarray(K, dtype=np.float64)
    return {
        "alpha": _share("lambda_", lambda_) * within_class_scatter_trace(K @ K.T, y) / K.shape[0],
        "penalty": "dual",
    }


def within_class_scatter_trace(G: Any, y: Any) -> float:
    """trace of Σ_j Σ_{i in class j} (z_i - m_j)(z_i - m_j)ᵀ for features with Gram
    matrix G (n, n).
    """
    G, y = np.asarray(G, dtype=np.float64), np.asarray(y)
    within = sum(
        G[np.ix_(y == label, y == label)].sum() / np.sum(y == label) for label in np.unique(y)
    )
    return float(np.trace(G) - within)


def _positive(name: str, value: float) -> float:
    if not np.isfinite(value) or value <= 0:
        raise ValueError(f"{name} must be positive and finite, got {value!r} instead.")
    return float(value)


def _share(name: str, value: float) -> float:
    """λ/(1-λ) of a convex combination."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r} instead.")
    return float(value) / (1.0 - float(value))
