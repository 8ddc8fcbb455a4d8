"""The linear kernel.

Fisher's discriminant as scikit-learn's, ridge regression as scikit-learn's, two routes to one
model.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import EmpiricalCovariance
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from problems import every_estimator
from reference import assert_close, output

# limits of alpha are the point of some tests
pytestmark = pytest.mark.filterwarnings("ignore::fitonce.NumericalWarning")


def correlated_rows(
    estimator=KernelFisherDiscriminant, n: int = 40, p: int = 5, n_classes: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    """Correlated features with an offset; unbalanced classes in random order, or two targets."""
    rng = np.random.default_rng(n + p + n_classes)
    sizes = np.diff(np.linspace(0, 1, n_classes + 1) ** 1.5 * n).round().astype(int)
    labels = np.resize(rng.permutation(np.repeat(np.arange(n_classes), sizes)), n)
    X = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    X = X + rng.normal(size=(n_classes, p))[labels] + 3.0
    if estimator is KernelRidge:
        return X, X[:, :2] ** 2 + rng.normal(size=(n, 2))
    return X, labels


def same_axes(got: np.ndarray, expected: np.ndarray, rtol: float = 1e-7) -> None:
    """Equal columns up to the sign of each."""
    assert_close(got, np.sign(np.sum(got * expected, axis=0)) * expected, rtol)


# ---- Fisher's discriminant -----------------------------------------------------------------------


class Regularised(EmpiricalCovariance):
    """The covariance of one class plus (mu/n) I.

    Scikit-learn weighs those of the classes by their priors, so (S_w + mu I)/n in all.
    """

    def __init__(self, ridge: float = 0.0) -> None:
        super().__init__()
        self.ridge = ridge

    def fit(self, X, y=None):
        super().fit(X)
        self.covariance_ = self.covariance_ + self.ridge * np.eye(X.shape[1])
        return self


def distances(model, rows: np.ndarray, log_priors: np.ndarray) -> np.ndarray:
    """Class scores without the log-priors, less that of the first class.

    What is common to all classes does not matter.
    """
    scores = model.decision_function(rows)
    scores = np.column_stack([np.zeros(len(rows)), scores]) if scores.ndim == 1 else scores
    return (scores - log_priors)[:, 1:] - (scores - log_priors)[:, :1]


def centred(model: LinearDiscriminantAnalysis, X: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Projections less that of the mean, which scikit-learn's eigen solver leaves in."""
    return model.transform(new) - model.transform(X).mean(axis=0)


@pytest.mark.parametrize("mu", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("p", [5, 60])
def test_axes_and_decisions_are_those_of_linear_discriminant_analysis(p, n_classes, mu):
    """(S_w + mu I)/n against our (S_w + mu I)/(n - c): their axes, scaled to unit covariance, are
    longer by √(n/(n - c)).

    Squared distances then differ by n/(n - c); the log-priors do not.
    """
    X, y = correlated_rows(p=p, n_classes=n_classes)
    n = len(X)
    new = X[::3] + 0.1
    ours = KernelFisherDiscriminant("linear", alpha=mu).fit(X, y)
    theirs = LinearDiscriminantAnalysis(
        solver="eigen", covariance_estimator=Regularised(mu / n)
    ).fit(X, y)
    longer = np.sqrt(n / (n - n_classes))
    same_axes(longer * ours.transform(new), centred(theirs, X, new)[:, : n_classes - 1])
    same_axes(longer * ours.scalings_, theirs.scalings_[:, : n_classes - 1])
    assert_close(ours.explained_variance_ratio_, theirs.explained_variance_ratio_[: n_classes - 1])
    log_priors = np.log(ours.priors_)
    assert_close(
        longer**2 * distances(ours, new, log_priors), distances(theirs, new, log_priors), 1e-7
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_regularisation_it_is_plain_lda(n_classes):
    """The svd solver scales the within-class covariance by n - c, as ours does, or by n, depending
    on scikit-learn's version.
    """
    X, y = correlated_rows(n_classes=n_classes)
    ours = KernelFisherDiscriminant("linear", alpha=1e-9).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="svd").fit(X, y)
    ratio = np.linalg.norm(theirs.transform(X)) / np.linalg.norm(ours.transform(X))
    n = len(X)
    assert min(abs(ratio - 1.0), abs(ratio - np.sqrt(n / (n - n_classes)))) < 1e-6
    same_axes(ratio * ours.transform(X), theirs.transform(X), 1e-6)
    within = sum(
        (Z - Z.mean(axis=0)).T @ (Z - Z.mean(axis=0))
        for Z in (ours.transform(X[y == label]) for label in range(n_classes))
    )
    np.testing.assert_allclose(within / (n - n_classes), np.eye(n_classes - 1), atol=1e-6)


# ---- least squares and Fisher's direction (two classes) ------------------------------------------


def coded(y: np.ndarray) -> np.ndarray:
    """Targets n/n₁ for the first class and -n/n₂ for the second."""
    n, n_1, n_2 = len(y), np.sum(y == 0), np.sum(y == 1)
    return np.where(y == 0, n / n_1, -n / n_2)


def scatter_within(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return sum(
        (X[y == k] - X[y == k].mean(axis=0)).T @ (X[y == k] - X[y == k].mean(axis=0))
        for k in (0, 1)
    )


def parallel(a: np.ndarray, b: np.ndarray, atol: float) -> None:
    np.testing.assert_allclose(a / np.linalg.norm(a), b / np.linalg.norm(b), atol=atol)


@pytest.mark.parametrize("mu", [1e-9, 1e-2, 1.0, 30.0])
def test_least_squares_gives_the_fisher_direction(mu):
    X, y = correlated_rows(n_classes=2)
    difference = X[y == 0].mean(axis=0) - X[y == 1].mean(axis=0)
    fisher = np.linalg.solve(scatter_within(X, y) + mu * np.eye(5), difference)
    ridge = KernelRidge(kernel="linear", alpha=mu).fit(X, coded(y))
    discriminant = KernelFisherDiscriminant("linear", alpha=mu).fit(X, y)
    atol = 1e-8 if mu == 1e-9 else 1e-10
    parallel(ridge.coef_, fisher, atol)
    parallel(-discriminant.scalings_[:, 0], fisher, atol)
    parallel(-discriminant.coef_[0], fisher, atol)
    parallel(-LeastSquaresSVC("linear", alpha=mu).fit(X, y).coef_[0], fisher, atol)
    assert_close(ridge.intercept_, -X.mean(axis=0) @ ridge.coef_)


def test_least_squares_with_a_singular_scatter_tends_to_the_null_direction():
    """With more features than rows S_w is singular.

    As mu goes to zero all criteria find the direction in which the classes collapse.
    """
    X, y = correlated_rows(n=20, p=50, n_classes=2)
    difference = X[y == 0].mean(axis=0) - X[y == 1].mean(axis=0)
    within = scatter_within(X, y)
    U = np.linalg.svd(within)[0][:, : len(X) - 2]  # the range of S_w
    null = difference - U @ (U.T @ difference)
    for mu, atol in ((1e-3, 1e-4), (1e-6, 1e-7)):
        model = KernelRidge(kernel="linear", alpha=mu).fit(X, coded(y))
        parallel(model.coef_, null, atol)
        parallel(model.coef_, np.linalg.solve(within + mu * np.eye(50), difference), 1e-7)
    assert_close(model.predict(X), coded(y), 1e-6)  # two values: the classes collapse


# ---- ridge regression ----------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["function", "dual"])
@every_estimator
def test_coef_is_the_model(estimator, penalty):
    for n_classes in (2, 3):
        X, y = correlated_rows(estimator, n_classes=n_classes)
        model = estimator(kernel="linear", alpha=0.7, penalty=penalty).fit(X, y)
        expected, got = X @ model.coef_.T + model.intercept_, output(model, X)
        assert_close(got, expected[:, 0] if got.ndim == 1 else expected)
        dual = model.dual_coef_.reshape(len(X), -1)
        assert_close(X.T @ dual, model.coef_.T, 1e-7)


# ---- one model by two routes ---------------------------------------------------------------------


OF_THE_ROUTE = {"coef_", "X_fit_", "scalings_", "n_features_in_", "cv_results_", "best_params_"}
OF_THE_ROUTE |= {"penalty_", "kernel_", "classes_"}


@pytest.mark.pairwise
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", [None, 4])
@pytest.mark.parametrize("p", [1, 5, 39, 41])
@every_estimator
def test_features_and_kernel_matrix_give_the_same_model(estimator, p, cv, weighted):
    X, y = correlated_rows(estimator, p=max(p, 2))
    X = X[:, :p]
    weights = np.random.default_rng(0).uniform(0.2, 2.0, size=len(X)) if weighted else None
    new = X[::3] - 0.2
    by_features = estimator(kernel="linear", alpha=[0.3, 3.0], cv=cv).fit(X, y, weights)
    by_kernel = estimator(kernel="precomputed", alpha=[0.3, 3.0], cv=cv).fit(X @ X.T, y, weights)
    assert by_features.alpha_ == by_kernel.alpha_
    assert by_features.best_params_ == by_kernel.best_params_ == {"alpha": by_kernel.alpha_}
    names = {name for name in vars(by_kernel) if name.endswith("_") and name[0] != "_"}
    shared = names - OF_THE_ROUTE
    assert {"dual_coef_", "intercept_", "leverage_", "effective_dof_", "best_score_"} < shared
    for name in shared:
        got, expected = getattr(by_features, name), getattr(by_kernel, name)
        close = {"rtol": 1e-7, "atol": 1e-8 * np.abs(expected).max(), "err_msg": name}
        np.testing.assert_allclose(got, expected, **close)
    for method in ("predict", "decision_function", "transform"):
        if hasattr(by_features, method):
            got, expected = getattr(by_features, method)(new), getattr(by_kernel, method)(new @ X.T)
            assert_close(got, expected, 1e-7)


@every_estimator
def test_redundant_features(estimator):
    """Copies of features and sums of them, as in one-hot encodings, make the p×p side singular.

    The model is that of the kernel.
    """
    X, y = correlated_rows(estimator, p=3)
    redundant = np.hstack([X, X[:, :1], X.sum(axis=1, keepdims=True), np.ones((len(X), 1))])
    K = redundant @ redundant.T
    by_features = estimator(kernel="linear", alpha=1e-3).fit(redundant, y)
    by_kernel = estimator(kernel="precomputed", alpha=1e-3).fit(K, y)
    assert_close(output(by_features, redundant), output(by_kernel, K), 1e-6)
    assert by_features.verify().passed
