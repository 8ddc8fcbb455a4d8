"""Labels and folds that move together: the draws, their scores against literal refits, and every
p-value of a small problem by brute force.
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
import sklearn.model_selection
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from fitonce.inference import ValidityWarning, permutation_test_score
from fitonce.inference.placements import Cosets, Labelling, placement_sizes
from fitonce.inference.question import Question
from fitonce.inference.run import labellings_of
from fitonce.inference.validity import MODES, make_exchange, movable_atoms

N = 36
FISHER = KernelFisherDiscriminant(gamma=0.2, alpha=0.3)
LSSVM = LeastSquaresSVC(gamma=0.2, alpha=0.3)
NUMBERS = KernelRidge(gamma=0.2, alpha=0.3)


def problem(n_classes: int = 2, n: int = N, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.minimum(np.arange(n) % (n_classes + 1), n_classes - 1))
    return rng.normal(size=(n, 3)) + 0.5 * y[:, None], y


def drawn(question: Question, total: int, seed: int = 0, shuffled: bool = False) -> list[Labelling]:
    return list(labellings_of(question, total, False, np.random.RandomState(seed), shuffled))


def asked(X: Any, y: Any, cv: Any, groups: Any = None, exchange: Any = None) -> Question:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Question.of(FISHER, X, y, groups, cv, "cosets", exchange)


def roles(splits: Any, n: int) -> list[tuple[int, ...]]:
    """What every row is in each split: out of it, trained on, tested."""
    role = np.zeros((n, len(splits)), dtype=int)
    for number, (train, test) in enumerate(splits):
        role[train, number], role[test, number] = 1, 2
    return list(map(tuple, role))


# ---- the draws -----------------------------------------------------------------------------------

SPLITTERS = {
    "folds": KFold(4),
    "stratified": StratifiedKFold(3, shuffle=True, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "overlapping": ShuffleSplit(3, test_size=0.3, train_size=0.5, random_state=0),
}


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("splitter", SPLITTERS)
def test_every_row_brings_its_folds(splitter: str, shuffled: bool) -> None:
    """(label, role in every split) of the rows are a permutation of the observed ones.

    The placement, which the closed form works with, has the same training and test sets.
    """
    X, y = problem()
    question = asked(X, y, SPLITTERS[splitter])
    observed = Counter(zip(y, roles(question.splits, N), strict=True))
    different = set()
    for labelling in drawn(question, 40, shuffled=shuffled):
        permuted = y[labelling.rearrangement.indices]
        moved = roles(labelling.splits, N)
        assert Counter(zip(permuted, moved, strict=True)) == observed
        assert roles(labelling.placement.splits, N) == moved
        different.add((tuple(permuted), tuple(moved)))
    assert len(different) > 30


@pytest.mark.parametrize("exchange", ["within", "whole", "sign", "shift"])
@pytest.mark.parametrize("cv", [KFold(4), GroupKFold(3)])
def test_rows_move_as_the_exchange_says(exchange: str, cv: Any) -> None:
    """Inside groups, as whole groups, as pairs, round a circle: with their folds."""
    groups = np.repeat(np.arange(9), 4)
    y = np.tile([0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 1], 3)
    X = np.random.default_rng(0).normal(size=(N, 3))
    question = asked(X, y, cv, groups, exchange)
    observed = list(zip(y, roles(question.splits, N), strict=True))
    units = Counter(tuple(observed[4 * g : 4 * g + 4]) for g in range(9))
    for labelling in drawn(question, 30):
        permuted = y[labelling.rearrangement.indices]
        pairs = list(zip(permuted, roles(labelling.splits, N), strict=True))
        blocks = [tuple(pairs[4 * g : 4 * g + 4]) for g in range(9)]
        assert roles(labelling.placement.splits, N) == roles(labelling.splits, N)
        if exchange == "whole":
            assert Counter(blocks) == units
            continue
        for g, block in enumerate(blocks):
            before = observed[4 * g : 4 * g + 4]
            assert Counter(block) == Counter(before)
            if exchange == "shift":
                assert block in {tuple(before[-s:] + before[:-s]) for s in range(4)}


def test_sizes() -> None:
    """One placement where the folds need not move, twenty where inside them labels are free, one
    for each labelling where hardly anything can move inside.
    """
    X, y = problem(n=60)

    def sizes(y: np.ndarray, cv: Any, total: int = 1001) -> list[int]:
        question = asked(X, y, cv)
        atoms = question.atoms
        assert atoms is not None
        found = Cosets(question.exchange, atoms, question.targets, question.observed, total - 1)
        assert sum(found.sizes) == total and min(found.sizes) > 0
        assert max(found.sizes) - min(found.sizes) <= 1
        return found.sizes

    assert len(sizes(y, LeaveOneOut())) == 1
    assert len(sizes(y, LeavePOut(2))) == 1
    assert len(sizes(y, StratifiedKFold(3))) == 20
    assert len(sizes(y, StratifiedKFold(3), 12)) == 12
    assert len(sizes(np.sort(y), KFold(2))) > 200  # labels lie as the folds do
    assert len(sizes(y, RepeatedKFold(n_splits=5, n_repeats=6, random_state=0))) > 200
    numbers = np.sort(X[:, 0])
    question = Question.of(KernelRidge(), X, numbers, None, KFold(5), None, None)
    assert question.atoms is not None
    kept = question.exchange.keeping(question.atoms)
    assert len(placement_sizes(question.exchange, kept, question.targets, 1001)) > 500


def test_observed_labelling_is_any_of_them() -> None:
    """It lies in a placement with a probability in proportion to its size."""
    X, y = problem()
    question = asked(X, y, KFold(4))
    assert question.atoms is not None
    cosets = Cosets(question.exchange, question.atoms, question.targets, question.observed, 29)
    assert sorted(set(cosets.sizes)) == [1, 2]
    others = [
        sum(labelling.placement.number == 0 for labelling in cosets.draw(rng, False))
        for rng in map(np.random.RandomState, range(400))
    ]
    share = sum(size for size in cosets.sizes if size == 2) / 30
    assert np.mean(others) == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 400))


def test_atoms_of_single_rows() -> None:
    """Folds of one row trade places, where all other rows are trained on."""
    X, _ = problem(n=6)
    assert len(set(movable_atoms(None, list(LeaveOneOut().split(X)), 6))) == 1
    mixed = [(np.arange(2, 6), np.arange(2)), (np.r_[0, 1, 3:6], np.array([2]))]
    mixed += [(np.r_[0:3, 4:6], np.array([3])), (np.arange(4), np.array([4, 5]))]
    atoms = movable_atoms(None, mixed, 6)
    assert atoms[0] == atoms[1] and atoms[2] == atoms[3] and atoms[4] == atoms[5]
    assert len(set(atoms)) == 3
    single = [(np.arange(1, 6), np.array([0])), (np.r_[0:4], np.array([4, 5]))]
    atoms = movable_atoms(None, single, 6)
    assert len(set(atoms)) == 3 and len(set(atoms[1:4])) == 1 and atoms.min() >= 0
    partly = [(np.array([2, 3]), np.array([0])), (np.array([2, 3]), np.array([1]))]
    assert len(set(movable_atoms(None, partly, 4))) == 3


# ---- scores against literal refits ---------------------------------------------------------------


def literal_scores(
    model: Any, X: Any, y: Any, labellings: list[Labelling], scoring: str, weights: Any
) -> list[float]:
    """Everything refitted by scikit-learn's means, labelling by labelling."""
    scorer, scores = get_scorer(scoring), []
    for labelling in labellings:
        permuted, each = y[labelling.rearrangement.indices], []
        for train, test in labelling.splits:
            params = {} if weights is None else {"sample_weight": weights[train]}
            fitted = clone(model).fit(X[train], permuted[train], **params)
            each.append(scorer(fitted, X[test], permuted[test]))
        scores.append(float(np.mean(each)))
    return scores


WEIGHTS = np.random.default_rng(5).uniform(0.5, 2.0, size=N)
CASES: dict[str, tuple[Any, int, Any, Any]] = {
    "two classes": (LSSVM, 2, KFold(4), None),
    "three classes": (FISHER, 3, StratifiedKFold(3), None),
    "dual": (clone(FISHER).set_params(penalty="dual"), 3, KFold(4), None),
    "leave-one-out": (FISHER, 2, LeaveOneOut(), None),
    "overlapping": (FISHER, 3, SPLITTERS["overlapping"], None),
    "one split": (FISHER, 2, ShuffleSplit(1, test_size=0.3, random_state=0), None),
    "never tested": (FISHER, 3, PredefinedSplit(np.arange(N) % 4 - 1), None),
    "one row tested": (NUMBERS, 0, PredefinedSplit(np.r_[0, 1, 1, np.full(N - 3, -1)]), None),
    "weights stay with rows": (FISHER, 2, KFold(3), WEIGHTS),
    "pipeline": (make_pipeline(StandardScaler(), FISHER), 3, KFold(3), None),
    "tuned": (KernelFisherDiscriminant(gamma=0.2, alpha=[0.1, 10.0]), 2, 3, None),
    "tuned by folds in order": (
        LeastSquaresSVC(gamma=0.2, alpha=[0.01, 100.0], cv=KFold(3)),
        2,
        KFold(3),
        None,
    ),
    "numbers": (NUMBERS, 0, KFold(4), None),
    "numbers, pipeline": (make_pipeline(StandardScaler(), NUMBERS), 0, KFold(4), None),
}


@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_refits(case: str) -> None:
    model, n_classes, cv, weights = CASES[case]
    X, y = problem(max(n_classes, 2))
    y = y if n_classes else X[:, 0] + np.random.default_rng(1).normal(size=N)
    scoring = "accuracy" if n_classes else "neg_mean_squared_error"
    params = None if weights is None else {"sample_weight": weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options: dict[str, Any] = {"cv": cv, "n_permutations": 45, "random_state": 3}
        result = permutation_test_score(model, X, y, scoring=scoring, params=params, **options)
        question = Question.of(model, X, y, None, cv, None, None)
        labellings = drawn(question, 45, seed=3)
        some = range(0, 45, 11 if case == "leave-one-out" else 7)
        expected = literal_scores(
            model, X, y, [labellings[number] for number in some], scoring, weights
        )
    assert result.mode == "cosets" and len(result.permutation_scores) == 45
    np.testing.assert_allclose(result.permutation_scores[list(some)], expected, rtol=1e-8)
    assert result.n_placements == len({other.placement.number for other in labellings} | {0})
    if case in ("pipeline", "tuned", "numbers, pipeline"):
        assert result.route.name == "per-fold"
        # those that share their placement with no other are fitted
        assert result.route.fitted_folds < 20


@pytest.mark.parametrize(
    "cv", [KFold(4), StratifiedKFold(3), LeaveOneOut(), SPLITTERS["overlapping"]]
)
def test_observed_score_is_scikit_learns_in_every_mode(cv: Any) -> None:
    X, y = problem()
    expected = sklearn.model_selection.cross_val_score(FISHER, X, y, cv=cv).mean()
    for mode in MODES:
        stratified = isinstance(cv, StratifiedKFold) and mode == "free"
        nothing = isinstance(cv, LeaveOneOut) and mode == "within-folds"
        if not (stratified or nothing):
            result = permutation_test_score(FISHER, X, y, cv=cv, permute=mode, n_permutations=3)
            assert result.score == pytest.approx(expected, abs=1e-12) and result.mode == mode


# ---- every p-value by brute force ----------------------------------------------------------------


@pytest.mark.parametrize("cv", [KFold(3), LeaveOneOut(), StratifiedKFold(3)])
def test_exact_pvalue_by_brute_force(cv: Any) -> None:
    """All 720 orders of the rows of X, with labels and folds as they are; the LS-SVM by its
    equations.
    """
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(6, 2)), np.array([0, 1, 0, 1, 0, 1])
    splits = list(cv.split(X, y))

    def right(moved: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        m, K = len(train), moved @ moved.T
        system = np.block([[np.zeros((1, 1)), np.ones((1, m))], [np.ones((m, 1)), np.eye(m)]])
        system[1:, 1:] += K[np.ix_(train, train)]
        bias, *dual = np.linalg.solve(system, np.r_[0.0, 2.0 * y[train] - 1.0])
        return (K[np.ix_(test, train)] @ dual + bias > 0) == (y[test] == 1)

    scores = np.array(
        [
            np.mean([right(X[list(order)], train, test).mean() for train, test in splits])
            for order in itertools.permutations(range(6))
        ]
    )
    expected = np.mean(scores >= scores[0] - 1e-9)
    model = LeastSquaresSVC("linear", alpha=1.0)
    result = permutation_test_score(model, X, y, cv=cv, n_permutations=1000)
    some = permutation_test_score(model, X, y, cv=cv, n_permutations=2000, exact=False)
    assert result.score == pytest.approx(scores[0])
    assert result.exact and result.mode == "cosets"
    assert result.pvalue == pytest.approx(expected, abs=1e-12)
    assert some.pvalue == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 2000))


# ---- what cannot move ----------------------------------------------------------------------------


class ByFirstFeature:
    """Folds of rows that resemble each other."""

    def get_n_splits(self, *_: Any) -> int:
        return 3

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        for test in np.array_split(np.argsort(X[:, 0]), 3):
            yield np.setdiff1d(np.arange(len(X)), test), np.sort(test)


class EveryThird(ByFirstFeature):
    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        for number in range(3):
            test = np.arange(len(X)) % 3 == number
            yield np.flatnonzero(~test), np.flatnonzero(test)


def test_splits_that_follow_the_rows_stay() -> None:
    X, y = problem()
    with pytest.warns(ValidityWarning, match="follow the order of the rows"):
        series = permutation_test_score(FISHER, X, y, cv=TimeSeriesSplit(3), n_permutations=3)
    assert series.mode == "free"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options: dict[str, Any] = {"cv": TimeSeriesSplit(3), "n_permutations": 3}
        shifted = permutation_test_score(FISHER, X, y, exchange="shift", exact=False, **options)
        named = permutation_test_score(FISHER, X, y, permute="free", **options)
        clustered = permutation_test_score(FISHER, X, y, cv=ByFirstFeature(), n_permutations=3)
        third = permutation_test_score(FISHER, X, y, cv=EveryThird(), n_permutations=3)
    assert (shifted.mode, named.mode) == ("free", "free")
    assert (clustered.mode, third.mode) == ("resplit", "cosets")
    for cv, message in (
        (TimeSeriesSplit(3), "follow the order of the rows"),
        (ByFirstFeature(), "depend on X"),
    ):
        with pytest.raises(ValueError, match=message):
            permutation_test_score(FISHER, X, y, cv=cv, permute="cosets")


def test_subgroups() -> None:
    """What moves while the folds stay, for every kind of exchange."""
    y, groups = np.tile([0, 1], 6), np.repeat(np.arange(6), 2)
    atoms = np.repeat([0, 1, 2], 4)
    crossing = np.r_[0, 1, 0, 0, np.ones(8)].astype(int)
    for kind in ("within", "rows", "whole", "sign"):
        exchange = make_exchange(kind, y, groups, None, True, 2)
        assert exchange.keeping(np.zeros(12)) is exchange
        for names in (atoms, crossing):
            kept = exchange.keeping(names)
            rng = np.random.RandomState(0)
            for _ in range(20):
                np.testing.assert_array_equal(names[kept.draw(rng).indices], names)
        assert 0.0 <= exchange.stays(exchange.keeping(crossing), np.eye(2)[y]) < 1.0
    pairs = make_exchange("sign", y, groups, None, True, 2)
    assert pairs.keeping(atoms) is pairs and pairs.keeping(crossing).count == 2**5
    assert pairs.stays(pairs.keeping(crossing), np.eye(2)[y]) == pytest.approx(2 / 12)
    circle = make_exchange("shift", y, None, None, True, 2)
    assert circle.keeping(atoms).count == 1 and circle.stays(circle.keeping(atoms), y) == 1.0
