"""What a user is told: what was wrong, what was given, why it matters, what to do."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import fitonce
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from fitonce.rows import open_rows
from fitonce.tuning.gamma_search import GammaLattice, alpha_lattice

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)
ALL = np.arange(40)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", "cosine", "sigmoid"])
@pytest.mark.parametrize("size", [1e160, 1e300])
def test_features_whose_squares_overflow(kernel, size):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (X * size, sp.csr_matrix(X * size)):
            with pytest.raises(ValueError, match=r"X has values as large as .* use squares"):
                LeastSquaresSVC(kernel).fit(rows, Y)
        with pytest.raises(ValueError, match=r"block 0 .* has values as large as"):
            LeastSquaresSVC(kernel, landmarks=9).fit(open_rows([(X * size, Y)]))


def test_targets_and_kernels_whose_squares_overflow():
    with pytest.raises(ValueError, match=r"y has values as large as .*Scale the targets"):
        KernelRidge().fit(X, X[:, 0] * 1e200)
    with pytest.raises(ValueError, match="X has values as large as"):
        LeastSquaresSVC("precomputed").fit(X @ X.T * 1e200, Y)


def test_large_features_are_no_fault():
    """Labels and ranks are those of the same features in another unit."""
    for kernel in ("rbf", "linear"):
        large = LeastSquaresSVC(kernel).fit(X * 2.0**200, Y).decision_function(X * 2.0**200)
        np.testing.assert_allclose(
            large, LeastSquaresSVC(kernel).fit(X, Y).decision_function(X), rtol=1e-6, atol=1e-8
        )


class Huge:
    trace, largest, lower_bound = 1e307, 1e307, 0.0


def test_windows_that_cannot_be_placed():
    with pytest.raises(ValueError, match=r"has an eigenvalue of 1\.0e\+307"):
        alpha_lattice(Huge(), 10.0)
    for gamma in (0.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="gamma cannot be tuned"):
            GammaLattice.around(gamma)


NO_ROWS = np.array([], dtype=int)
SPLITS = {
    "empty test": ([(ALL[:20], [])], "split 0 has no test rows"),
    "second empty": ([(ALL[:20], ALL[20:]), (ALL[:20], NO_ROWS)], "split 1 has no test rows"),
    "too large": ([(ALL[:20], [40])], "the test rows of split 0 contain row 40, but there are 40"),
    "in training": ([([0, 50], [5])], "the training rows of split 0 contain row 50"),
    "too small": ([(ALL[:20], [-41])], "contain row -41"),
    "not whole": ([(ALL[:20], [30.5])], "must be a list of row indices, .* got an array of float"),
    "two axes": ([(ALL[:20], [[30, 31]])], r"of shape \(1, 2\)"),
    "short mask": ([(np.ones(10, dtype=bool), ALL[20:])], r"array of bool of shape \(10,\)"),
    "no splits": ([], "at least one split"),
}


@pytest.mark.parametrize("case", SPLITS)
def test_splits_that_are_none(case):
    cv, message = SPLITS[case]
    with pytest.raises(ValueError, match=message):
        LeastSquaresSVC(gamma=0.5, alpha=[0.1, 1.0], cv=cv).fit(X, Y)
    if "empty" not in case:  # which scikit-learn scores as NaN, and so do we
        fixed = LeastSquaresSVC(gamma=0.5, alpha=0.1)
        for function in (fitonce.cross_val_score, fitonce.permutation_test_score):
            with pytest.raises(ValueError, match=message):
                function(fixed, X, Y, cv=cv)


def test_splits_that_train_nothing():
    with pytest.raises(ValueError, match="split 1 of cv has no training rows"):
        LeastSquaresSVC(gamma=0.5, cv=[(ALL[:20], ALL[20:]), ([], ALL[20:])]).fit(X, Y)


def test_splits_from_the_end_and_by_masks_are_rows():
    mask = ALL < 20
    plain, other = (
        LeastSquaresSVC(gamma=0.5, alpha=0.1, cv=[split]).fit(X, Y).held_out_decision_
        for split in ((ALL[:20], ALL[20:]), (mask, ALL[20:] - 40))
    )
    np.testing.assert_array_equal(plain, other)


@pytest.mark.parametrize("answer", [None, "good", np.ones(3), 1j, [0.5]])
def test_a_criterion_that_returns_no_number(answer):
    with pytest.raises(TypeError, match="criterion must return one number for each candidate, got"):
        LeastSquaresSVC(gamma=0.5, criterion=lambda y, decision: answer).fit(X, Y)


@pytest.mark.parametrize("answer", [0.5, 1, True, np.float32(0.5), np.array(0.5), np.bool_(True)])
def test_a_criterion_that_returns_a_number(answer):
    model = LeastSquaresSVC(gamma=0.5, criterion=lambda y, decision: answer).fit(X, Y)
    assert model.best_score_ == float(answer)


def test_a_criterion_that_is_never_finite():
    with pytest.raises(ValueError, match=r"not finite for any alpha.*a user-defined criterion"):
        LeastSquaresSVC(gamma=0.5, criterion=lambda y, decision: np.nan).fit(X, Y)


@pytest.mark.parametrize("kind", [KernelFisherDiscriminant, LeastSquaresSVC])
def test_nothing_that_could_be_verified(kind):
    """The one split leaves out a whole class."""
    few = np.r_[0, 0, np.ones(38, dtype=int)]
    model = kind(gamma=0.5, alpha=1.0, cv=[(ALL[2:], ALL[:2])], calibration=None).fit(X, few)
    found = model.verify()
    assert not found.passed and found.n_refits == 0
    assert str(found).startswith("No literal refit was possible, so nothing was compared")
    assert "DISAGREE" not in str(found) and "Not compared" in found._repr_html_()


def test_splits_that_cannot_be_refitted_are_passed_over():
    few = np.r_[0, 0, np.ones(19, dtype=int), np.zeros(19, dtype=int)]
    lost = (ALL[2:21], ALL[:2])  # the training rows have one class
    cv = [lost] * 10 + [(np.r_[:30], np.r_[30:40]), (np.r_[0:2, 10:40], np.r_[2:10])]
    found = LeastSquaresSVC(gamma=0.5, alpha=1.0, cv=cv).fit(X, few).verify(2)
    assert found.passed and found.n_refits == 2


@pytest.mark.parametrize("n_refits", [0, -1, 1.5, "all"])
def test_refits_that_are_no_number(n_refits):
    model = LeastSquaresSVC(gamma=0.5, alpha=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="n_refits must be an integer of at least 1"):
        model.verify(n_refits)


@pytest.mark.parametrize("missing", ["jinja2", "markupsafe", "matplotlib.pyplot"])
def test_a_report_without_its_extra(missing, monkeypatch, tmp_path):
    from fitonce.report import write_report

    model = LeastSquaresSVC(gamma=0.5, alpha=1.0).fit(X, Y)
    for name in [name for name in sys.modules if name.split(".")[0] == "jinja2"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=r"reports need .* pip install 'fitonce\[report\]'"):
        write_report(tmp_path / "page.html", model, X, Y)
