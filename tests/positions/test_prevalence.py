"""Prevalence against the formulas of Allefeld, Görgen & Haynes (2016) written out, all second-level
permutations in loops, and its level by simulation.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq

from fitonce import KernelFisherDiscriminant
from fitonce.positions import permutation_test, prevalence_test


def subjects(n_subjects, n_null, q, effect=0.0, share=1.0, seed=0, digits=None):
    """Scores (N, q), some of them with an effect, and null scores (N, P, q)."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_subjects, q)) + effect * (rng.random((n_subjects, q)) < share)
    null = rng.normal(size=(n_subjects, n_null, q))
    return (scores, null) if digits is None else (scores.round(digits), null.round(digits))


@pytest.mark.parametrize("digits", [None, 0])  # 0: many ties
def test_all_second_level_permutations_in_a_loop(digits):
    scores, null = subjects(3, 4, 6, effect=1.5, seed=2, digits=digits)
    every = np.concatenate([scores[:, None], null], axis=1)  # (N, P, q)
    minima = np.array(
        [
            [min(every[k, i[k], v] for k in range(3)) for v in range(6)]
            for i in itertools.product(range(5), repeat=3)
        ]
    )
    observed = minima[0]
    single = np.mean(minima >= observed, axis=0)
    corrected = np.mean(minima.max(axis=1)[:, None] >= observed, axis=0)
    found = prevalence_test(scores, null=null, gamma0=0.3)
    assert found.exact and found.n_permutations_done == 124
    np.testing.assert_array_equal(found.minimum, scores.min(axis=0))
    np.testing.assert_array_equal(found.median, np.median(scores, axis=0))
    np.testing.assert_allclose(found.pvalue_global, single, rtol=1e-12)
    np.testing.assert_allclose(found.pvalue_global_max, corrected, rtol=1e-12)
    for v in range(6):
        p = (0.7 * single[v] ** (1 / 3) + 0.3) ** 3
        assert found.pvalue[v] == pytest.approx(p)
        assert found.pvalue_max[v] == pytest.approx(min(1.0, max(6 * p, corrected[v])))


def test_the_largest_prevalence_is_where_the_corrected_p_value_is_the_level():
    scores, null = subjects(10, 50, 20, effect=4.0, share=0.95, seed=1)
    found = prevalence_test(scores, null=null, level=0.1, n_permutations=2000)
    known = np.isfinite(found.prevalence)
    assert 0 < known.sum() < 20
    for v in range(20):

        def excess(gamma0, v=v):
            return found.at(gamma0=gamma0).pvalue_max[v] - 0.1

        if known[v]:
            assert found.prevalence[v] == pytest.approx(brentq(excess, 0.0, 1 - 1e-9), abs=1e-9)
        else:
            assert excess(0.0) > 0


def test_drawn_permutations_estimate_all_of_them():
    scores, null = subjects(3, 9, 4, effect=1.0, seed=4)
    every = prevalence_test(scores, null=null, exact=True)
    drawn = prevalence_test(scores, null=null, exact=False, n_permutations=5000, random_state=1)
    assert not drawn.exact and every.exact
    np.testing.assert_array_equal(drawn.pvalue_global, every.pvalue_global)
    error = np.sqrt(every.pvalue_global_max * (1 - every.pvalue_global_max) / 5000) + 1 / 5000
    assert np.all(np.abs(drawn.pvalue_global_max - every.pvalue_global_max) <= 4 * error)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5])
def test_level_of_the_prevalence_null(share):
    """A share of the population has an effect so large that it is always seen: the test of this
    share rejects as often as it says, and the test of a smaller one more often.
    """
    draws, level = 2000, 0.1  # positions are independent here
    scores, null = subjects(6, 40, draws, effect=50.0, share=share, seed=5)
    found = prevalence_test(scores, null=null, gamma0=share, n_permutations=1)
    rejected = np.mean(found.pvalue <= level)
    error = np.sqrt(level * (1 - level) / draws)
    assert rejected <= level + 3 * error
    assert rejected >= 0.2 * level
    if share:
        assert np.mean(found.at(gamma0=0.0).pvalue <= level) > rejected + 3 * error


def test_a_minority_at_many_positions_is_hardly_ever_a_majority_at_one():
    """True prevalence one half at each of 20 positions, of other subjects at each: without a
    correction, a majority is claimed at one of them in most experiments.
    """
    families, level, claims, uncorrected = 200, 0.05, 0, 0
    for seed in range(families):
        scores, null = subjects(8, 60, 20, effect=50.0, share=0.5, seed=seed)
        found = prevalence_test(scores, null=null, n_permutations=200, random_state=seed)
        claimed = found.pvalue_max <= level
        np.testing.assert_array_equal(claimed, np.nan_to_num(found.prevalence) >= 0.5)
        claims += claimed.any()
        uncorrected += (found.pvalue <= level).any()
    assert claims / families <= level + 3 * np.sqrt(level * (1 - level) / families)
    assert uncorrected / families > 0.3
    scores, null = subjects(12, 60, 20, effect=50.0)
    assert np.all(prevalence_test(scores, null=null).prevalence > 0.5)


def test_correction_over_positions_holds_the_familywise_level():
    families, level = 200, 0.1
    rejected = 0
    for seed in range(families):
        scores, null = subjects(4, 30, 8, seed=seed)
        found = prevalence_test(scores, null=null, n_permutations=400, random_state=seed)
        rejected += found.pvalue_global_max.min() <= level
        assert np.all(found.pvalue_max >= found.pvalue_global_max)
    assert rejected / families <= level + 3 * np.sqrt(level * (1 - level) / families)
    assert rejected > 0


def test_subjects_tests_and_grids():
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    model = KernelFisherDiscriminant("linear", alpha=1.0)
    tests = []
    for _ in range(3):
        X = rng.normal(size=(24, 3, 4))
        X[:, 0, 2] += 3.0 * y
        tests.append(permutation_test(model, X, y, n_permutations=30, cv=4))
    found = prevalence_test(tests, n_permutations=500)
    same = prevalence_test(
        [test.score for test in tests], null=[test.null for test in tests], n_permutations=500
    )
    np.testing.assert_array_equal(found.pvalue_max, same.pvalue_max)
    assert found.pvalue_global.argmin() == 2
    grid = prevalence_test(
        [test.score.reshape(2, 2) for test in tests],
        null=[test.null.reshape(-1, 2, 2) for test in tests],
        n_permutations=500,
    )
    np.testing.assert_array_equal(grid.pvalue_max.ravel(), found.pvalue_max)
    assert "3 subjects" in repr(found)


def test_undefined_scores_are_no_evidence():
    scores, null = subjects(3, 9, 2, effect=9.0)
    clean = prevalence_test(scores, null=null)
    null[1, :4, 0] = np.nan
    scores[2, 1] = np.nan
    found = prevalence_test(scores, null=null)
    assert found.pvalue_global[0] > clean.pvalue_global[0]
    assert found.pvalue_global[1] == found.pvalue_max[1] == 1.0
    assert np.isnan(found.prevalence[1])


def test_what_cannot_be_tested_is_refused():
    scores, null = subjects(3, 9, 2)
    for options, said in (
        ({}, "null must be given"),
        ({"null": null[:2]}, "two subjects"),
        ({"null": null[:, :, :1]}, "same positions"),
        ({"null": null, "gamma0": 1.0}, "gamma0"),
        ({"null": null, "level": -0.1}, "level"),
        ({"null": null, "n_permutations": 0}, "n_permutations"),
    ):
        with pytest.raises(ValueError, match=said):
            prevalence_test(scores, **options)
    with pytest.raises(ValueError, match="gamma0"):
        prevalence_test(scores, null=null).at(gamma0=2.0)
