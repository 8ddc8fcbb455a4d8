"""Models of all rows and without some, against models solved from their definitions."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from fitonce.kernels import Kernel
from fitonce.tuning.problem_from_rows import exact_problem
from fitonce.tuning.specification import Data
from problems import NORMS, Case, make_case


def data_of(case: Case, X: np.ndarray) -> Data:
    """The rows of a case, or its kernel, as data that train."""
    row_scale = None if case.weights is None else case.s
    return Data(X.copy(), case.Y, None, case.Y, case.weights, row_scale)


@pytest.mark.parametrize("kernel_name", ["precomputed", "rbf", "linear"])
@pytest.mark.parametrize("setting", ["bias", "no bias", "penalised bias", "weights"])
@pytest.mark.parametrize("norm", NORMS)
def test_problem_gives_the_model_and_its_refits(norm, setting, kernel_name):
    case = make_case(norm, "singular" if kernel_name == "linear" else "rbf", setting)
    function = Kernel(kernel_name, {"gamma": 0.3} if kernel_name == "rbf" else {})
    X = case.K if kernel_name == "precomputed" else case.X
    deleted = np.array([3, 20, 8, 0])
    for mu, single in zip(case.mus((1e-5, 1.0, 1e-2)), (False, False, True), strict=True):
        problem = exact_problem(
            data_of(case, X), function, norm, case.intercept, mu if single else None
        )
        fitted = problem.fit(mu)
        train = reference.complement(deleted, case.n)
        without = problem.without(fitted, deleted, mu)
        case.close(without.values(deleted[::-1]), case.reference_held_out(deleted[::-1], mu), mu)
        mixed = np.array([8, 5, 0])
        model = case.reference_refit(train, mu)
        case.close(without.values(mixed), model.predict(case.K[np.ix_(mixed, train)]), mu)
        for solution, expected, rows in (
            (problem.solution(fitted, mu), case.reference_fit(mu), np.arange(case.n)),
            (problem.solution(without.refitted, mu), model, train),
        ):
            case.close(solution.dual_coef[rows], expected.alpha, mu)
            scale = max(np.abs(case.Y).max(), np.abs(case.K[:, rows] @ expected.alpha).max())
            case.close(solution.intercept, expected.b, mu, scale)
            if kernel_name == "linear":
                case.close(case.X @ solution.coef, case.K[:, rows] @ expected.alpha, mu, scale)
