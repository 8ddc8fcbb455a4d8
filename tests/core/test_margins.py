"""Margins of two classes against the rule, and their derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest

from fitonce.core.jets import Jet
from fitonce.core.readout import Evidence, Indicators, Numbers, Readout, Signs, two_class_margins
from problems import NORMS, Case, classes_case, scatter_of


def moving(t: float) -> tuple[np.ndarray, float]:
    """A predicted indicator (n, 1) and a residual scatter that follow a parameter."""
    x = np.linspace(-1.0, 2.0, 7)[:, None]
    return np.sin(x + 0.7 * t) + x**2 * np.exp(-0.3 * t), 2.0 + np.cos(1.3 * t)


def moving_jets(t: float) -> tuple[Jet, Jet]:
    """The same with their derivatives, by hand."""
    x = np.linspace(-1.0, 2.0, 7)[:, None]
    P, e = moving(t)
    falling = x**2 * np.exp(-0.3 * t)
    return (
        Jet(
            P,
            0.7 * np.cos(x + 0.7 * t) - 0.3 * falling,
            -0.49 * np.sin(x + 0.7 * t) + 0.09 * falling,
        ),
        Jet(e, -1.3 * np.sin(1.3 * t), -1.69 * np.cos(1.3 * t)),
    )


def derivatives(function, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Two central differences, of fourth order."""
    h = 1e-3
    ahead2, ahead, here, behind, behind2 = (function(t + k * h) for k in (2, 1, 0, -1, -2))
    first = (behind2 - 8 * behind + 8 * ahead - ahead2) / (12 * h)
    return first, (-ahead2 + 16 * ahead - 30 * here + 16 * behind - behind2) / (12 * h**2)


@pytest.mark.parametrize("sizes", [(9.0, 9.0), (4.0, 15.5)])
def test_two_class_margins_are_the_rule_and_jets_of_them_its_derivatives(sizes):
    sizes, t = np.array(sizes), 0.4
    log_odds = float(np.log(sizes[1] / sizes[0]))
    P, e = moving(t)
    decision, separation = two_class_margins(P, e, sizes, log_odds)
    E = e * np.array([[1.0, -1.0], [-1.0, 1.0]])
    indicators = np.hstack([1.0 - P, P])
    for definite in (False, True):
        rule = Indicators(2).rule(Evidence(E, sizes), definite)
        np.testing.assert_allclose(rule.decide(indicators), decision, rtol=1e-10)
        np.testing.assert_allclose(rule.separation[0, 1], separation, rtol=1e-10)
    jets = two_class_margins(*moving_jets(t), sizes, log_odds)
    for number, jet in enumerate(jets):
        np.testing.assert_allclose(jet.value, (decision, separation)[number], rtol=1e-12)
        first, second = derivatives(
            lambda t, part=number: two_class_margins(*moving(t), sizes, log_odds)[part], t
        )
        np.testing.assert_allclose(jet.first, first, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(jet.second, second, rtol=1e-6, atol=1e-6)


def margins_by_the_rule(case: Case, readout: Readout, mu: float) -> np.ndarray:
    """Margins (n, 1) of held-out values in units of the separation, by the rule of all rows."""
    held = case.smoother.leave_one_out(case.targets, np.array([mu])).residual[0]
    P = case.Y - held
    if not readout.needs_scatter:
        return case.Y * P
    rule = readout.rule(Evidence(scatter_of(case, mu), case.Y.sum(axis=0)))
    own = np.sign(case.Y[:, 1:] - case.Y[:, :1])
    return own * readout.read(P, rule) / rule.separation[0, 1]


@pytest.mark.parametrize("readout", [Indicators(2), Indicators(2, (0.3, 0.7)), Signs(2)], ids=str)
@pytest.mark.parametrize("norm", NORMS)
def test_margins_of_held_out_values_and_their_derivatives(norm, readout):
    case, y = classes_case(norm, (12, 7))
    case = Case(norm, case.X, case.K, readout.targets(y))
    sizes = np.bincount(y).astype(float)
    for mu in case.mus((1e-2, 1.0)):
        jets = case.smoother.jets(case.targets, mu)
        scatter = jets.residual.map(lambda part: case.Y.T @ part)
        margins = readout.margins(jets.held_out, scatter, case.Y, sizes)
        expected = margins_by_the_rule(case, readout, mu)
        np.testing.assert_allclose(margins.value, expected, rtol=1e-8, atol=1e-8)
        first, second = derivatives(
            lambda t: margins_by_the_rule(case, readout, float(np.exp(t))), float(np.log(mu))
        )
        size = np.abs(expected).max()
        np.testing.assert_allclose(margins.first, first, rtol=1e-6, atol=1e-7 * size)
        np.testing.assert_allclose(margins.second, second, rtol=1e-5, atol=1e-5 * size)


@pytest.mark.parametrize("readout", [Indicators(3), Signs(3), Numbers()], ids=str)
def test_only_two_classes_have_margins_with_derivatives(readout):
    assert readout.margins(None, None, None, None) is None
