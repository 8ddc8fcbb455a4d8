"""The search that begins on a sample of the rows: what it samples, what it chooses, what it costs,
and that every caller gets the same choice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GroupKFold, KFold
from sklearn.model_selection import cross_val_score as sklearn_cross_val_score

from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    KernelSum,
    LeastSquaresSVC,
    cross_val_score,
)
from fitonce.datasets import make_torus, make_waveform3
from fitonce.estimators.setup import folds_of, setup_of
from fitonce.inference.deletion_maps import kept_targets
from fitonce.inference.per_fold_maps import TrainedFold
from fitonce.tuning import Branch, GammaLattice, Trial, search, specification, tuner
from fitonce.tuning.specification import sample_of


@pytest.fixture(autouse=True)
def from_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages from 60 rows on, so that the tests are quick."""
    monkeypatch.setattr(tuner, "SAMPLED_FROM", 60)
    monkeypatch.setattr(tuner, "PROBED_FROM", 110)
    monkeypatch.setattr(specification, "SAMPLE", 75)


def data(n: int = 120, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    if classes == 3:
        return make_waveform3(n, random_state=1)
    X, y = make_torus(n, random_state=0)
    return (X, y) if classes == 2 else (X, np.sin(X[:, 0]) + 0.1 * X[:, 1])


def data_of(estimator: Any, X: Any, y: np.ndarray, **given: Any) -> Any:
    return setup_of(estimator, X, y, **given).data


# ---- the sample ----------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_sample_does_not_depend_on_the_order_of_the_rows(classes: int, weighted: bool) -> None:
    estimator = KernelFisherDiscriminant() if classes else KernelRidge()
    X, y = data(classes=classes)
    X, y = np.repeat(X[:60].round(1), 2, axis=0), y[:120]  # equal rows with other labels
    rng = np.random.default_rng(0)
    w = rng.integers(1, 3, 120).astype(float) if weighted else None
    order = rng.permutation(120)
    one = data_of(estimator, X, y, sample_weight=w)
    other = data_of(estimator, X[order], y[order], sample_weight=None if w is None else w[order])
    first, second = sample_of(one), sample_of(other)
    assert len(first.rows) == 60  # half of them
    assert first.key == second.key
    np.testing.assert_array_equal(X[first.rows], X[order][second.rows])
    np.testing.assert_array_equal(y[first.rows], y[order][second.rows])


def test_the_sample_is_spread_over_the_rows_and_has_all_of_a_rare_class() -> None:
    X, y = data(600)
    y = y.copy()
    y[:3] = 7
    data_ = data_of(KernelFisherDiscriminant(), X, y)
    rows = sample_of(data_).rows
    assert len(rows) == len(np.unique(rows)) <= 203
    assert set(range(3)) <= set(rows)
    direction = np.random.default_rng(0).normal(size=2)
    place = np.sort(X @ direction)
    shares = np.searchsorted(place, X[rows] @ direction) / 600
    np.testing.assert_allclose(np.quantile(shares, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.02)


def test_labels_that_are_not_rare_do_not_change_the_sample() -> None:
    X, y = data(200)
    estimator = KernelFisherDiscriminant()
    samples = [
        sample_of(data_of(estimator, X, labels))
        for labels in (y, np.random.default_rng(0).permutation(y))
    ]
    assert samples[0].key == samples[1].key


def test_splits_of_a_sample_are_the_splits_of_its_rows() -> None:
    X, y = data(90)
    groups = np.arange(90) % 9
    model = KernelRidge(cv=GroupKFold(3))
    setup = setup_of(model, X, y, groups=groups)
    whole = setup.tuner(folds_of(model.cv, setup.training, classifier=False))
    part = whole.sample()
    assert part is not None and part.drawn is not None and part.deletions is not None
    rows, seen = part.drawn.rows, []
    for (deleted, tested), (all_deleted, _) in zip(part.deletions, whole.deletions, strict=True):
        assert set(rows[deleted]) == set(rows) & set(all_deleted)
        seen.extend(rows[deleted[tested]])
    assert sorted(seen) == sorted(rows)
    # a split that tests none of the sampled rows is gone
    missing = np.setdiff1d(np.arange(90), rows)[:2]
    assert part.drawn.deletions([(missing, np.arange(2))], 90) == []


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_sparse_rows_give_the_sample_of_dense_ones(form: Any) -> None:
    X, y = data(150)
    dense = sample_of(data_of(KernelRidge(), X, y))
    other = sample_of(data_of(KernelRidge(), form(X), y))
    np.testing.assert_array_equal(dense.rows, other.rows)


# ---- the walk ------------------------------------------------------------------------------------


def bowl(bottom: float, depth: float = 0.0) -> Any:
    """Losses with a valley: the best alpha is gamma², its loss rises by the distance to bottom."""

    def loss(gamma: float, alpha: np.ndarray) -> np.ndarray:
        across, along = np.log2(gamma) - bottom, np.log2(alpha) - 2 * np.log2(gamma) - depth
        return 1.0 + 0.01 * across**2 + 0.002 * along**2

    return loss


@pytest.mark.parametrize("bottom", [-9, -3, 0, 2, 5, 12])
@pytest.mark.parametrize("shift", [-2, 0, 3])
def test_the_walk_ends_where_a_full_search_ends(bottom: int, shift: int) -> None:
    """The sample's valley lies elsewhere, in gamma and in alpha."""
    lattice, alphas = GammaLattice.around(1.0), 2.0 ** np.arange(-45, 46)
    on_all, on_sample, log = bowl(bottom, shift), bowl(bottom - 1), []

    def attempt(several: Any, *, sample: bool = False, alpha: float | None = None) -> list[Trial]:
        if sample:
            return [Trial(p, alphas, on_sample(p["gamma"], alphas), 10) for p in several]
        if alpha is not None:
            one = np.array([alpha])
            return [Trial(p, one, on_all(p["gamma"], one)) for p in several]
        log.extend(several)
        return [Trial(p, alphas, on_all(p["gamma"], alphas)) for p in several]

    full = search(attempt, [Branch({}, lattice)]).winner
    log.clear()
    staged = search(attempt, [Branch({}, lattice)], sampled=True)
    assert staged.winner.parameters == full.parameters
    assert staged.winner.alpha == full.alpha
    assert len(log) == 2  # where the sample ends, and where the walk does
    assert {trial.sampled for trial in staged.trials[:7]} == {10}
    assert staged.trials[-1].sampled is None


def test_a_sample_that_cannot_be_judged_is_left_aside() -> None:
    lattice, alphas = GammaLattice.around(1.0), 2.0 ** np.arange(-9, 10)

    def attempt(several: Any, *, sample: bool = False, alpha: float | None = None) -> list[Trial]:
        if sample:
            raise ValueError("one class only")
        return [Trial(p, alphas, bowl(1)(p["gamma"], alphas)) for p in several]

    result = search(attempt, [Branch({}, lattice)], sampled=True)
    assert result.winner.parameters == search(attempt, [Branch({}, lattice)]).winner.parameters


# ---- fits ----------------------------------------------------------------------------------------

OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "folds": {"cv": 3},
    "dual norm": {"penalty": "dual"},
    "both norms": {"penalty": "tune"},
    "polynomial": {"kernel": "poly", "degree": 2},
    "candidates": {"alpha": [0.01, 0.1, 1.0, 10.0]},
    "one alpha": {"alpha": 0.5},
    "laplacian": {"kernel": "laplacian"},
    "indefinite": {"kernel": "sigmoid"},
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("estimator", [KernelFisherDiscriminant, LeastSquaresSVC, KernelRidge])
def test_a_fit_in_stages_is_close_to_the_full_search_and_reports_all_rows(
    estimator: type, option: str
) -> None:
    X, y = data(150, classes=0 if estimator is KernelRidge else 2)
    staged = estimator(**OPTIONS[option]).fit(X, y)
    full = estimator(**OPTIONS[option], search="full").fit(X, y)
    assert staged.best_score_ >= full.best_score_ - 0.05 * abs(full.best_score_)
    results = staged.cv_results_
    assert set(results["n_samples"]) == {75, 150}
    assert set(full.cv_results_["n_samples"]) == {150}
    (best,) = np.flatnonzero(results["rank_test_score"] == 1)[:1]
    assert results["params"][best] == staged.best_params_
    assert results["n_samples"][best] == 150
    assert results["mean_test_score"][best] == staged.best_score_
    # what is reported at the choice is what a fit of these values alone reports
    given = {**OPTIONS[option], **staged.best_params_}
    alone = estimator(**given).fit(X, y)
    assert alone.best_score_ == pytest.approx(staged.best_score_, rel=1e-9)
    name = "held_out_prediction_" if estimator is KernelRidge else "held_out_decision_"
    np.testing.assert_allclose(getattr(alone, name), getattr(staged, name), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("criterion", ["marginal_likelihood", "gcv", "loo_log_density"])
def test_criteria_of_the_fit_are_searched_in_stages(criterion: str) -> None:
    X, y = data(150, classes=0)
    staged = KernelRidge(criterion=criterion).fit(X, y)
    full = KernelRidge(criterion=criterion, search="full").fit(X, y)
    assert staged.best_params_ == full.best_params_
    assert staged.best_score_ == pytest.approx(full.best_score_, rel=1e-9)


def test_a_kernel_that_the_sample_leaves_out_stays_out() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    kernel = KernelSum([("signal", "rbf", [0]), ("noise", "linear", [1, 2])])
    model = KernelRidge(kernel=kernel).fit(X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=150))
    assert model.kernel_.weights["noise"] == 0.0
    assert set(model.cv_results_["n_samples"]) == {75, 150}
    assert model.verify(3).passed


def test_few_rows_are_searched_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuner, "SAMPLED_FROM", 121)
    X, y = data()
    one, other = KernelFisherDiscriminant().fit(X, y), KernelFisherDiscriminant(search="full")
    np.testing.assert_equal(one.cv_results_, other.fit(X, y).cv_results_)


@pytest.mark.parametrize("option", ["defaults", "folds", "both norms"])
def test_the_order_of_the_rows_changes_nothing(option: str) -> None:
    X, y = data(150)
    X = X.round(1)  # some rows look the same
    groups = np.arange(150) % 5
    given = OPTIONS[option] | ({"cv": None} if option == "folds" else {})
    order = np.random.default_rng(3).permutation(150)
    use = groups if option == "folds" else None
    one = LeastSquaresSVC(**given).fit(X, y, groups=use)
    other = LeastSquaresSVC(**given)
    other.fit(X[order], y[order], groups=None if use is None else use[order])
    assert one.best_params_ == other.best_params_
    np.testing.assert_allclose(
        one.held_out_decision_[order], other.held_out_decision_, rtol=1e-6, atol=1e-8
    )


def test_processes_choose_as_one_does() -> None:
    X, y = data()
    one, two = KernelRidge().fit(X, y), KernelRidge(n_jobs=2).fit(X, y)
    np.testing.assert_equal(one.cv_results_, two.cv_results_)


def test_a_wrong_search_is_refused() -> None:
    X, y = data()
    with pytest.raises(ValueError, match="search must be one of"):
        KernelRidge(search="quick").fit(X, y)


# ---- every caller --------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [KernelFisherDiscriminant, KernelRidge])
def test_nested_cross_validation_equals_refits(estimator: type) -> None:
    X, y = data(150, classes=0 if estimator is KernelRidge else 2)
    model = estimator()
    scores = cross_val_score(model, X, y, cv=KFold(2))
    np.testing.assert_allclose(scores, sklearn_cross_val_score(model, X, y, cv=KFold(2)), rtol=1e-8)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize(
    ("estimator", "criterion"),
    [
        (KernelFisherDiscriminant, "brier"),
        (KernelFisherDiscriminant, "squared_error"),
        (KernelRidge, "squared_error"),
    ],
)
def test_permutations_choose_as_fits_do(
    estimator: type, criterion: str, penalty: str, discrete: bool
) -> None:
    """Decompositions shared by all labellings, with rows that look the same or without."""
    X, y = data(100 if discrete else 120, classes=0 if estimator is KernelRidge else 2)
    X = X.round() if discrete else X
    model, rng = estimator(criterion=criterion, penalty=penalty), np.random.default_rng(5)
    shuffled = [rng.permutation(y) for _ in range(3)]
    fold = TrainedFold(setup_of(model, X, y), X, 2**30)
    readout = fold.setup.readout
    if estimator is KernelRidge:
        values = np.array([[labels] for labels in shuffled])
    else:
        values = np.array([np.unique(labels, return_inverse=True)[1] for labels in shuffled])
    chosen = fold.choices(values, kept_targets(readout, values, X))
    for (parameters, alpha), labels in zip(chosen, shuffled, strict=True):
        fitted = estimator(criterion=criterion, penalty=penalty).fit(X, labels)
        assert {**dict(parameters), "alpha": alpha} == fitted.best_params_


def test_a_neighbour_is_tried_at_one_alpha(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk costs factorisations, not decompositions."""
    X, y = data(150)
    seen: list[Any] = []
    original = tuner.exact_problem

    def counted(*given: Any, **options: Any) -> Any:
        seen.append((given[0].X.shape[0], given[4]))
        return original(*given, **options)

    monkeypatch.setattr(tuner, "exact_problem", counted)
    KernelFisherDiscriminant().fit(X, y)
    on_all = [mu for n, mu in seen if n == 150]
    assert 1 <= sum(mu is None for mu in on_all) <= 2
    assert sum(mu is not None for mu in on_all) >= 2


def test_of_fewer_rows_a_neighbour_is_decomposed(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(100)
    model = KernelFisherDiscriminant().fit(X, y)
    results, n_alphas = model.cv_results_, {}
    for gamma in results["param_gamma"][results["n_samples"] == 100]:
        n_alphas[gamma] = n_alphas.get(gamma, 0) + 1
    assert len(n_alphas) >= 3  # the best of the sample, and its neighbors
    assert min(n_alphas.values()) > 10
