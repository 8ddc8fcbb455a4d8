"""Every smoother's deletions against a literal refit by normal equations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

import reference
from fitonce.core.banded import Banded
from fitonce.core.dual import DualNorm
from fitonce.core.holdout import Smoother, Targets
from fitonce.core.inverse import Inverse
from fitonce.core.smoothers import FunctionNorm
from fitonce.core.spectrum import Spectrum
from fitonce.core.thin import Thin
from fitonce.kernels import Kernel
from fitonce.landmarks.features import landmark_map
from fitonce.rows import ArrayRows
from problems import KERNELS, SETTINGS, Case, banded, make_case, rbf

LANDMARKS = np.array([0, 18, 3, 7, -1, 12, 21])  # rows, repeated ones of some kernels; -1: no row
ELSEWHERE = np.array([[0.3, -0.4, 0.8]])  # where that landmark is

Made = tuple[Smoother, Targets]


def prepared(smoother: Smoother, case: Case) -> Made:
    return smoother, smoother.project(case.scaled_Y)


# ---- the smoothers -------------------------------------------------------------------------------


def at_one_mu(case: Case, mu: float) -> Made:
    return prepared(case.single(mu), case)


def one_mu_first(case: Case, mu: float) -> Made:
    return prepared(case.single(mu, lambda: case.smoother.resolvent), case)


def of_spectrum(case: Case, mu: float) -> Made:
    return prepared(case.smoother, case)


def of_band(case: Case, mu: float) -> Made:
    return prepared(banded(case.scaled_K, case.Q0, 5), case)


def landmark_points(case: Case) -> np.ndarray:
    return np.vstack([case.X, ELSEWHERE])[LANDMARKS]


def of_landmarks(case: Case, mu: float) -> Made:
    """Through blocks of seven rows; targets come projected from the first pass."""
    features = landmark_map(
        Kernel("rbf", {"gamma": 0.3}), landmark_points(case), case.norm, case.intercept
    )
    scale, free = None if case.weights is None else case.s, case.intercept is True
    thin = Thin.of(ArrayRows(case.X, 7), features, scale, free, case.scaled_Y)
    return FunctionNorm(thin), Targets(case.scaled_Y, thin.solved.z)


# ---- the same models as combinations of functions of the rows, given the rows that train ---------


def kernels_at_landmarks(case: Case, train: np.ndarray) -> reference.Basis:
    everywhere = rbf(np.vstack([case.X, landmark_points(case)]))
    K, own = everywhere[: case.n, case.n :], everywhere[case.n :, case.n :]
    return reference.at_landmarks(K, own, case.norm, case.intercept)


# ---- every one of them ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """A smoother, its class or that of its resolvent, and the same model by its definition: a
    combination of functions, or where there are none the model of the case.
    """

    make: Callable[[Case, float], Made]
    kind: type
    basis: Callable[[Case, np.ndarray], reference.Basis] | None = None
    norm: str = "function"
    kernels: tuple[str, ...] = KERNELS
    thin: bool = False


landmarks = Model(of_landmarks, Thin, kernels_at_landmarks, kernels=("rbf", "duplicated"))
MODELS = {
    "kernel": Model(of_spectrum, Spectrum),
    "features of low rank": Model(of_spectrum, Spectrum, kernels=("singular",), thin=True),
    "one mu": Model(at_one_mu, Inverse),
    "one mu first": Model(one_mu_first, Inverse),
    "band": Model(of_band, Banded),
    "dual": Model(of_spectrum, DualNorm, norm="dual"),
    "dual of low rank": Model(of_spectrum, DualNorm, norm="dual", kernels=("singular",), thin=True),
    "landmarks": landmarks,
    "landmarks, dual": replace(landmarks, norm="dual"),
}
CASES = [(name, kernel) for name, model in MODELS.items() for kernel in model.kernels]
ALL_SETTINGS = (*SETTINGS, "weights, no bias", "weights, penalised bias")

every_model = pytest.mark.parametrize(
    ("name", "kernel", "setting"),
    [
        (*case, setting)
        for case in CASES
        for setting in ALL_SETTINGS
        if "confounds" not in setting or MODELS[case[0]].basis is None
    ],
)


@dataclass(frozen=True)
class Refits:
    """The literal side: models of the rows that are left, solved one by one."""

    model: Model
    case: Case

    def __call__(self, rows: np.ndarray, mu: float) -> np.ndarray:
        """Values (n, t) at all rows of the model without some of them."""
        case, train = self.case, reference.complement(rows, self.case.n)
        if self.model.basis is None:
            model = case.reference_refit(train, mu)
            return model.predict(case.K[:, train], case.unpenalised)
        basis = self.model.basis(case, train)
        return basis.predictions(case.Y, mu, train, case.weights)


def setup(name: str, kernel: str, setting: str, n: int = 24) -> tuple[Model, Refits]:
    model = MODELS[name]
    case = make_case(model.norm, kernel, setting, n=n, thin=model.thin, seed=3)
    return model, Refits(model, case)


@pytest.mark.pairwise
@every_model
def test_leave_one_out_is_a_refit_without_each_row(name, kernel, setting):
    model, refits = setup(name, kernel, setting)
    case = refits.case
    for mu in case.mus((1e-3, 0.1, 10.0)):
        smoother, targets = model.make(case, mu)
        assert (
            type(getattr(smoother, "resolvent", smoother)) is model.kind
            and smoother.n_samples == case.n
        )
        mus = np.array([mu]) if name == "one mu" else np.array([3.0 * mu, mu])
        residual = smoother.leave_one_out(targets, mus).residual
        assert residual.shape == (len(mus), case.n, 2)
        expected = np.stack([refits(np.array([row]), mu)[row] for row in range(case.n)])
        case.close(case.Y - residual[-1] / case.s, expected, mu)


def deletions(n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows deleted together, in no order, and which of them are tested.

    The first three cover all rows; the last overlaps them, and leaves few.
    """
    folds = np.array_split(np.random.default_rng(5).permutation(n), 3)
    tested = [np.arange(len(folds[0])), np.array([4, 0, 2]), np.array([1])]
    most = np.random.default_rng(6).permutation(n)[: n - 9]
    return [*zip(folds, tested, strict=True), (most, np.array([3, 11]))]


@pytest.mark.pairwise
@every_model
def test_sets_of_rows_leave_as_if_they_had_never_been(name, kernel, setting):
    """Held-out values, the fit that is left at all rows, its α and its residual scatter."""
    model, refits = setup(name, kernel, setting)
    case, scale = refits.case, np.abs(refits.case.Y).max()
    for mu in case.mus((1e-3, 0.1, 10.0)):
        smoother, targets = model.make(case, mu)
        fitted = smoother.fit(targets, mu)
        case.close(fitted.values / case.s, refits(np.array([], dtype=int), mu), mu, scale)
        E = smoother.residual_scatter(targets, np.array([mu]))[0]
        for rows, _ in [*deletions(case.n), (np.array([18]), None)]:
            expected = refits(rows, mu)
            removal = smoother.leave_out(rows, mu)
            held_out = removal.held_out(fitted)
            case.close(case.Y[rows] - held_out.residual / case.s[rows], expected[rows], mu, scale)
            left = smoother.refit_without(targets, removal, held_out, mu)
            case.close(left.values / case.s, expected, mu, max(scale, np.abs(expected).max()))
            if smoother.has_duals:
                size = max(np.abs(fitted.dual).max(), np.abs(left.dual).max())
                assert np.abs(left.dual[rows]).max(initial=0.0) <= case.tolerance(mu) * size
            train = reference.complement(rows, case.n)
            if model.basis is None:
                alpha = np.zeros_like(case.Y)
                alpha[train] = case.reference_refit(train, mu).alpha
                case.close(case.s * smoother.dual_coef(left, mu), alpha, mu)
            remaining = case.scaled_Y[train]
            error = remaining - case.s[train] * expected[train]
            case.close(
                E - held_out.lost(),
                remaining.T @ error,
                mu,
                np.abs(E).max(),
            )


@pytest.mark.pairwise
@every_model
def test_a_set_and_one_more_row_leave_together_as_in_a_refit(name, kernel, setting):
    model, refits = setup(name, kernel, setting)
    case, rows = refits.case, np.array([12, 3, 20, 8, 18])
    others = reference.complement(rows, case.n)
    for mu in case.mus((1e-3, 0.1, 10.0)):
        smoother, targets = model.make(case, mu)
        fitted, sets = smoother.fit(targets, mu), [np.append(rows, row) for row in others]
        removals = (smoother.leave_out(gone, mu) for gone in sets)
        inner = np.stack([removal.held_out(fitted).residual[-1] for removal in removals])
        expected = np.stack([refits(gone, mu)[gone[-1]] for gone in sets])
        got = case.Y[others] - inner / case.s[others]
        case.close(got, expected, mu, np.abs(case.Y).max())


@pytest.mark.pairwise
@every_model
def test_folds_are_refits_without_what_each_deletes(name, kernel, setting):
    model, refits = setup(name, kernel, setting)
    case, parts = refits.case, deletions(refits.case.n)
    tested = np.concatenate([rows[test] for rows, test in parts])
    for mu in case.mus((1e-3, 0.1, 10.0)):
        smoother, targets = model.make(case, mu)
        mus = np.array([mu]) if name == "one mu" else np.array([3.0 * mu, mu])
        values = smoother.held_out_folds(targets, mus, parts)
        assert values.shape == (len(mus), len(tested), 2)
        expected = np.concatenate([refits(rows, mu)[rows[test]] for rows, test in parts])
        case.close(values[-1] / case.s[tested], expected, mu, np.abs(case.Y).max())


@pytest.mark.parametrize("setting", [each for each in ALL_SETTINGS if "confounds" not in each])
def test_folds_of_few_rows_need_no_decomposition_of_their_own(setting, monkeypatch):
    """By small systems, with the same result as by moments."""
    model, refits = setup("landmarks", "rbf", setting)
    case = refits.case
    smoother, targets = model.make(case, 1.0)
    mus, parts = case.mus((1e-3, 0.1, 10.0)), deletions(case.n)
    monkeypatch.setattr("fitonce.core.thin.SMALL_FOLD", 0.0)
    expected = smoother.held_out_folds(targets, mus, parts)
    monkeypatch.setattr("fitonce.core.thin.SMALL_FOLD", 100.0)
    for elements in (1, 1 << 25):
        monkeypatch.setattr("fitonce.core.thin.FOLD_ELEMENTS", elements)
        values = smoother.held_out_folds(targets, mus, parts)
        np.testing.assert_allclose(values, expected, rtol=1e-7, atol=1e-8)


def test_folds_are_the_same_however_many_share_a_pass(monkeypatch):
    model, refits = setup("landmarks", "rbf", "weights")
    case = refits.case
    smoother, targets = model.make(case, 1.0)
    mus, parts = case.mus(), deletions(case.n)
    together = smoother.held_out_folds(targets, mus, parts)
    monkeypatch.setattr("fitonce.core.moments.FOLD_ELEMENTS", 1)
    alone = smoother.held_out_folds(targets, mus, parts)
    np.testing.assert_allclose(alone, together, rtol=1e-12, atol=1e-12)


@pytest.mark.pairwise
@pytest.mark.parametrize("dense_up_to", [0, 500], ids=["thin", "dense"])
@every_model
def test_residual_map_is_that_of_the_literal_hat_matrix(
    name, kernel, setting, dense_up_to, monkeypatch
):
    """As a matrix or by thin factors, in the order of the rows or in another."""
    monkeypatch.setattr("fitonce.core.spectrum.DENSE_UP_TO", dense_up_to)
    model, refits = setup(name, kernel, setting, n=40)
    case, nobody = refits.case, np.array([], dtype=int)
    rng = np.random.default_rng(8)
    Y = rng.normal(size=(3, 40))
    for mu in case.mus((1e-3, 0.1)):
        smoother, _ = model.make(case, mu)
        hat = Refits(model, replace(case, Y=np.eye(40)))(nobody, mu)
        expected = Y - Y @ (case.s * hat / case.s.T).T
        residual_map = smoother.residual_map(mu)
        low_rank = model.kind is Thin or (model.thin and model.norm == "function")
        assert (residual_map.dense is None) == (low_rank and dense_up_to == 0)
        case.close(residual_map(Y), expected, mu)


def test_a_path_gives_the_part_of_each_mu():
    case = make_case("dual", "rbf", "weights")
    mus = case.mus()
    path = case.smoother.path(case.targets, mus)
    whole = path.leave_one_out()
    for number, mu in enumerate(mus):
        part = path.at(mu).leave_one_out()
        np.testing.assert_array_equal(part.residual[0], whole.residual[number])
        np.testing.assert_array_equal(part.force[0], whole.force[number])
