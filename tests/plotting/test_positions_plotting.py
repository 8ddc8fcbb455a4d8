"""The displays draw what the results say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from sklearn.model_selection import KFold

from fitonce import KernelFisherDiscriminant
from fitonce.plotting import GeneralizationDisplay, TimeCourseDisplay
from fitonce.positions import cross_val_score, generalize, group_test, permutation_test
from optional import require

MODEL = KernelFisherDiscriminant("linear", alpha=1.0)


@pytest.fixture(scope="module")
def epochs():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(40) % 2)
    X = rng.normal(size=(40, 3, 12))
    X[:, :, 4:7] += 1.5 * y[:, None, None]
    return X, y, np.linspace(-0.1, 1.0, 12)


@pytest.fixture(scope="module")
def test(epochs):
    X, y, _ = epochs
    return permutation_test(MODEL, X, y, cv=KFold(4), n_permutations=99)


def spans(display) -> list[tuple[float, float]]:
    return [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in display.bars_]


@pytest.mark.parametrize(
    ("correction", "attribute"),
    [
        ("cluster", "pvalue_cluster"),
        ("max", "pvalue_max"),
        ("fdr", "pvalue_fdr"),
        ("none", "pvalue"),
    ],
)
def test_a_time_course(epochs, test, correction, attribute):
    times = epochs[2]
    display = TimeCourseDisplay.from_predictions(
        test, times=times, correction=correction, name="accuracy"
    )
    np.testing.assert_array_equal(display.line_.get_xydata(), np.column_stack([times, test.score]))
    np.testing.assert_allclose(display.chance_.get_ydata(), test.null.mean(axis=0))
    significant = getattr(test, attribute) <= 0.05
    covered = [any(start < time < end for start, end in spans(display)) for time in times]
    np.testing.assert_array_equal(covered, significant)
    assert significant.any() and display.ax_.get_ylabel() == "accuracy"
    lower, upper = np.quantile(test.null, [0.025, 0.975], axis=0)
    corners = display.band_.get_paths()[0].vertices
    for values in (lower, upper):
        assert all(
            np.any(np.all(np.isclose(corners, point), axis=1))
            for point in zip(times, values, strict=True)
        )


def test_scores_of_folds_and_of_groups(epochs):
    X, y, times = epochs
    scores = cross_val_score(MODEL, X, y, cv=KFold(4))
    display = TimeCourseDisplay.from_predictions(scores, chance=0.5)
    np.testing.assert_allclose(display.line_.get_ydata(), scores.mean(axis=1))
    np.testing.assert_allclose(display.band[1] - display.score, scipy.stats.sem(scores, axis=1))
    assert display.bars_ == [] and display.ax_.get_legend() is not None
    subjects = 0.5 + 0.1 * np.random.default_rng(0).normal(size=(9, 12))
    subjects[:, 5:7] += 0.3
    group = group_test(subjects, chance=0.5)
    display = TimeCourseDisplay.from_predictions(group, times=times)
    low, high = scipy.stats.t.interval(
        0.95, 8, loc=subjects.mean(axis=0), scale=scipy.stats.sem(subjects)
    )
    np.testing.assert_allclose(display.band, [low, high])
    assert len(display.bars_) == 1


def test_a_matrix(epochs):
    X, y, times = epochs
    matrix = generalize(MODEL, X, y, cv=KFold(4))
    display = GeneralizationDisplay.from_predictions(
        matrix, times=times, chance=0.5, name="accuracy"
    )
    drawn = np.asarray(display.im_.get_array()).reshape(12, 12)
    np.testing.assert_allclose(
        drawn, matrix.mean(axis=2)
    )  # training positions upwards, test positions to the right
    assert sum(display.im_.get_clim()) == pytest.approx(1.0)  # chance in the middle
    assert display.outline_ is None and display.ax_.get_ylabel() == "training time (s)"
    assert [line.get_xdata()[0] for line in display.ax_.lines].count(0.0) == 2  # onset lines
    subjects = matrix.mean(axis=2) + 0.02 * np.random.default_rng(0).normal(size=(7, 12, 12))
    display = GeneralizationDisplay.from_predictions(group_test(subjects, chance=0.5), times=times)
    assert display.outline_ is not None
    axes = require("matplotlib.pyplot").subplots()[1]
    assert GeneralizationDisplay.from_predictions(matrix, ax=axes).ax_ is axes


def test_one_position():
    assert TimeCourseDisplay(score=[0.7], chance=0.5, significant=[True]).plot().bars_
    GeneralizationDisplay(scores=[[0.5]], chance=0.5, significant=[[True]]).plot()


def test_refused(test):
    with pytest.raises(ValueError, match="correction must be one of"):
        TimeCourseDisplay.from_predictions(test, correction="bonferroni")
    with pytest.raises(ValueError, match="increasing numbers"):
        TimeCourseDisplay.from_predictions(test, times=[1, 2, 3])
    with pytest.raises(ValueError, match="one score per position"):
        TimeCourseDisplay(score=np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"\(n_positions, n_folds\)"):
        TimeCourseDisplay.from_predictions(np.ones(4))
    with pytest.raises(ValueError, match="square"):
        GeneralizationDisplay(scores=np.ones((2, 3)))
    with pytest.raises(ValueError, match="MNE's scores have the folds first"):
        TimeCourseDisplay.from_predictions(np.ones((5, 12)), times=np.arange(12))
    with pytest.raises(ValueError, match="MNE's scores have the folds first"):
        GeneralizationDisplay.from_predictions(np.ones((5, 12, 12)))
    X, y = np.random.default_rng(0).normal(size=(20, 4)), np.arange(20) % 2
    cv = KFold(4, shuffle=True, random_state=0)
    light = permutation_test(MODEL, X, y, cv=cv, n_permutations=9, neighbors=[[0, 1], [2, 3]])
    with pytest.raises(ValueError, match="adjacent"):
        TimeCourseDisplay.from_predictions(light)
