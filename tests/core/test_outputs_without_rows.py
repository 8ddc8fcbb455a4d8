"""Outputs of every row by the model without it: as one batch, row by row, and by refits."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from fitonce.core.readout import Indicators, Numbers, Readout, Signs
from fitonce.kernels import Kernel
from fitonce.landmarks.choice import Landmarks
from fitonce.tuning.outputs import outputs_without_each, read_without
from fitonce.tuning.problem import Problem
from fitonce.tuning.problem_from_rows import exact_problem, landmark_problem
from fitonce.tuning.specification import Data
from problems import NORMS, rbf

KERNEL = Kernel("rbf", {"gamma": 0.3})
MU = 0.4
READOUTS = [
    Numbers(2, single=False),
    Signs(2),
    Signs(3),
    Signs(3, free_bias=False),
    Indicators(2),
    Indicators(3),
    Indicators(3, (0.2, 0.5, 0.3)),
]


def data_of(readout: Readout, weighted: bool, sizes: tuple[int, ...] = (9, 7, 6)) -> Data:
    """Overlapping classes, or numbers; landmarks that are rows."""
    rng = np.random.default_rng(7)
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes)) % max(readout.n_classes, 2)
    n = len(codes)
    X = rng.normal(size=(n, 3)) + 1.2 * np.eye(3)[codes]
    y = codes if readout.n_classes else np.column_stack([X[:, 0] ** 2, X[:, 1]])
    weights = rng.uniform(0.3, 2.5, size=n) if weighted else None
    rows = np.array([0, 4, 9, 13, 17])
    return Data(
        X,
        y,
        codes if readout.n_classes else None,
        readout.targets(y),
        weights,
        None if weights is None else np.sqrt(weights)[:, None],
        Landmarks(X[rows], rows),
    )


PROBLEMS = {
    "exact": lambda data, norm, bias: exact_problem(data, KERNEL, norm, bias, None),
    "one mu": lambda data, norm, bias: exact_problem(data, KERNEL, norm, bias, MU),
    "landmarks": lambda data, norm, bias: landmark_problem(data, KERNEL, norm, bias, False, ()),
    "dropped": lambda data, norm, bias: landmark_problem(data, KERNEL, norm, bias, True, ()),
}


def row_by_row(problem: Problem, readout: Readout, n: int) -> np.ndarray:
    fitted = problem.fit(MU)
    outputs = []
    for row in range(n):
        without = problem.without(fitted, np.array([row]), MU)
        outputs.append(read_without(without, readout, without.values(np.array([row]))))
    return np.concatenate(outputs)


@pytest.mark.pairwise
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("readout", READOUTS, ids=str)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", PROBLEMS)
def test_one_batch_is_every_row_on_its_own(kind, norm, readout, weighted):
    data = data_of(readout, weighted)
    bias = not (isinstance(readout, Signs) and not readout.free_bias)
    problem = PROBLEMS[kind](data, norm, bias)
    batch = outputs_without_each(problem, readout, problem.path(np.array([MU])))
    expected = row_by_row(problem, readout, len(data.y))
    n_outputs = 1 if readout.n_classes == 2 else readout.n_targets
    assert batch.shape == expected.shape == (len(data.y), n_outputs)
    np.testing.assert_allclose(batch, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("norm", NORMS)
def test_the_batch_is_fishers_discriminant_refitted_without_each_row(norm, classes, weighted):
    readout = Indicators(classes)
    data = data_of(readout, weighted)
    problem = exact_problem(data, KERNEL, norm, True, None)
    outputs = outputs_without_each(problem, readout, problem.path(np.array([MU])))
    K, n = rbf(data.X), len(data.y)
    for row in range(n):
        train = reference.complement(np.array([row]), n)
        scores = reference.kfda_brute(
            K, data.codes, MU, train, np.array([row]), data.weights, norm
        ).scores[0]
        expected = scores[1:] - scores[:1] if classes == 2 else scores
        np.testing.assert_allclose(outputs[row], expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", ["exact", "dropped"])
@pytest.mark.parametrize("norm", NORMS)
def test_the_only_row_of_a_class_is_never_told_to_be_of_it(kind, norm):
    readout = Indicators(3)
    data = data_of(readout, False, sizes=(9, 1, 8))
    problem = PROBLEMS[kind](data, norm, True)
    batch = outputs_without_each(problem, readout, problem.path(np.array([MU])))
    np.testing.assert_allclose(batch, row_by_row(problem, readout, 18), rtol=1e-8, atol=1e-8)
    alone = data.codes == 1
    assert np.all(batch[alone, 1] == -np.inf) and np.all(np.isfinite(batch[~alone]))
