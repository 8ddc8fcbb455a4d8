"""The promise on random problems: decisions, and scores that rank and threshold them."""

import warnings

import numpy as np
import pytest

import fitonce
from fitonce import NumericalWarning
from promise import compare, problem


@pytest.mark.parametrize("block", range(4))
def test_random_problems(block):
    outcomes = [compare(problem(seed)) for seed in range(8 * block, 8 * block + 8)]
    assert sum(outcome.splits for outcome in outcomes if not outcome.doubtful) >= 12
    assert [outcome for outcome in outcomes if not outcome.kept] == []


def test_a_linear_model_without_bias_far_from_the_origin():
    outcome = compare(problem(248))
    assert outcome.kept and not outcome.doubtful and outcome.deviation < 0.01


def test_held_out_values_that_are_rounding_of_the_targets_are_told():
    """A narrow kernel without bias: the values are 1e-12 of the targets, from which they come."""
    case = problem(395)
    model = fitonce.LeastSquaresSVC(**case.estimator.get_params())
    with pytest.warns(NumericalWarning, match="no row affects another.*relative error of 0.0"):
        model.fit(case.X, case.y)
    assert model.verify().passed
    with pytest.warns(NumericalWarning, match="no row affects another"):
        fitonce.cross_val_score(model, case.X, case.y)
    quiet = fitonce.LeastSquaresSVC(**case.estimator.get_params() | {"gamma": 1.0})
    assert quiet.fit(case.X, case.y).verify().passed
    assert np.isfinite(quiet.held_out_decision_).all()


def test_a_discriminant_that_explains_almost_nothing_is_told():
    """A smooth kernel and a huge alpha: decisions are what is left of targets less 1 - 1e-9."""
    case = problem(1427)
    with pytest.warns(NumericalWarning, match=r"explains only 1e-09.*smaller alpha"):
        case.estimator.fit(case.X, case.y)
    with pytest.warns(NumericalWarning, match="explains only"):
        fitonce.cross_val_score(case.estimator, case.X, case.y)
    assert compare(case).doubtful
    quiet = fitonce.KernelFisherDiscriminant(**case.estimator.get_params() | {"alpha": 1e-3})
    with warnings.catch_warnings():
        warnings.simplefilter("error", NumericalWarning)
        quiet.fit(case.X, case.y)
