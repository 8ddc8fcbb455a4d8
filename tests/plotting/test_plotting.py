"""Displays: what they draw is what the library computed, and they can be called in one line."""

from __future__ import annotations

import subprocess
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import fitonce
from fitonce.plotting import (
    BarDisplay,
    CalibrationDisplay,
    CriterionMapDisplay,
    InfluenceDisplay,
    PermutationNullDisplay,
    ProjectionDisplay,
    RegularizationPathDisplay,
    activation_patterns,
)
from fitonce.plotting.style import COLORS, MARKERS, look


@pytest.fixture(scope="module")
def two():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X[:150])
    return X, y[:150], fitonce.KernelFisherDiscriminant().fit(X, y[:150])


@pytest.fixture(scope="module")
def three():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return X, y, fitonce.KernelFisherDiscriminant().fit(X, y)


@pytest.fixture(scope="module")
def regression():
    X, y = load_diabetes(return_X_y=True)
    return X[:120], y[:120], fitonce.KernelRidge().fit(X[:120], y[:120])


@pytest.mark.parametrize(
    "display",
    [
        RegularizationPathDisplay,
        CriterionMapDisplay,
        ProjectionDisplay,
        CalibrationDisplay,
        InfluenceDisplay,
    ],
    ids=lambda d: d.__name__,
)
def test_one_line_and_scikit_learns_manner(display, three):
    model = three[2]
    drawn = display.from_estimator(model)
    assert drawn.figure_ is drawn.ax_.figure and drawn.ax_.get_xlabel() and drawn.ax_.get_ylabel()
    _, ax = plt.subplots()
    assert display.from_estimator(model, ax=ax).ax_ is ax
    again = drawn.plot()
    assert again is drawn and drawn.ax_ is not ax
    with pytest.raises(TypeError, match="one of fitonce's"):
        display.from_estimator(SVC())


def test_pipelines_are_read_through(three):
    X, y = load_wine(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), fitonce.KernelFisherDiscriminant()).fit(X, y)
    np.testing.assert_allclose(
        ProjectionDisplay.from_estimator(pipeline).values,
        ProjectionDisplay.from_estimator(three[2]).values,
        rtol=1e-6,
    )


def test_the_path_holds_every_candidate_and_marks_the_choice(two, regression):
    model = two[2]
    display = RegularizationPathDisplay.from_estimator(model)
    assert len(display.values) == len(model.cv_results_["params"])
    np.testing.assert_array_equal(display.values, -model.cv_results_["mean_test_score"])
    assert (
        display.chosen_.get_xdata()[0] == model.alpha_
        and display.chosen_.get_ydata()[0] == -model.best_score_
    )
    x, y = display.line_.get_data()
    tried = zip(model.cv_results_["params"], model.cv_results_["mean_test_score"], strict=True)
    own = [(p["alpha"], -score) for p, score in tried if p["gamma"] == model.gamma_]
    np.testing.assert_array_equal(np.column_stack([x, y]), sorted(own))
    auc = fitonce.LeastSquaresSVC("linear", criterion="auc").fit(*two[:2])
    display = RegularizationPathDisplay.from_estimator(auc)
    assert (
        display.value == auc.best_score_ == display.values.max()
        and "AUC" in display.ax_.get_ylabel()
    )


def test_the_path_of_a_single_alpha_and_after_refinement(two):
    X, y, _ = two
    RegularizationPathDisplay.from_estimator(
        fitonce.LeastSquaresSVC(gamma=0.1, alpha=1.0).fit(X, y)
    )
    refined = fitonce.LeastSquaresSVC(refine=True).fit(X, y)
    assert RegularizationPathDisplay.from_estimator(refined).alpha == refined.alpha_
    assert CriterionMapDisplay.from_estimator(refined).gamma == refined.gamma_


def test_the_map_has_a_tile_for_every_candidate(two):
    model = two[2]
    display = CriterionMapDisplay.from_estimator(model)
    paths = [path.get_extents() for path in display.tiles_.get_paths()]
    assert len(paths) == len(model.cv_results_["params"])
    inside = [box.contains(np.log2(model.gamma_), np.log2(model.alpha_)) for box in paths]
    assert sum(inside) == 1
    np.testing.assert_allclose(
        display.tiles_.get_array()[np.flatnonzero(inside)[0]], -model.best_score_
    )
    area = sum(box.width * box.height for box in paths)
    union = np.zeros(
        (800, 800), dtype=bool
    )  # tiles do not overlap: their area is that of their union
    low = np.min([box.min for box in paths], axis=0)
    span = np.max([box.max for box in paths], axis=0) - low
    for box in paths:
        (x0, y0), (x1, y1) = (
            np.rint((box.min - low) / span * 800).astype(int),
            np.rint((box.max - low) / span * 800).astype(int),
        )
        union[x0:x1, y0:y1] = True
    assert union.mean() * span.prod() == pytest.approx(area, rel=0.02)
    with pytest.raises(ValueError, match="chosen among several"):
        CriterionMapDisplay.from_estimator(fitonce.KernelFisherDiscriminant("linear").fit(*two[:2]))


def test_the_null_distribution(two):
    X, y, _ = two
    test = fitonce.permutation_test_score(
        fitonce.KernelFisherDiscriminant(gamma=0.01, alpha=0.1),
        X,
        y,
        n_permutations=60,
        random_state=0,
    )
    display = PermutationNullDisplay.from_predictions(test)
    assert sum(bar.get_height() for bar in display.histogram_) == 60
    assert display.line_.get_xdata()[0] == test.score
    plain = PermutationNullDisplay.from_predictions(tuple(test))
    assert plain.pvalue == test.pvalue and plain.pvalue_interval is None
    with pytest.raises(ValueError, match="metric must be one of"):
        PermutationNullDisplay.from_predictions(test, metric="speed")
    for null in ([0.5], [0.5] * 9, [0.4, np.nan, 0.6], list(np.linspace(0, 1, 99))):
        PermutationNullDisplay(null=np.array(null), score=0.7, pvalue=0.1).plot()


def test_held_out_projections_are_those_of_refits_up_to_axes(three):
    """The class scores of a row on the common axes follow from its distance to the centroids.

    A literal refit gives its decision.
    """
    X, y, model = three
    values = ProjectionDisplay.from_estimator(model).values
    fixed = fitonce.KernelFisherDiscriminant(gamma=model.gamma_, alpha=model.alpha_)
    distances = ((values[:, None, :] - model.means_[None, :, :]) ** 2).sum(axis=2)
    predicted = np.argmin(distances - 2 * np.log(model.priors_), axis=1)
    decided = np.argmax(model.held_out_decision_, axis=1)
    assert np.mean(predicted == decided) > 0.97  # axes of the whole fit instead of the row's own
    row = 130
    refit = fixed.fit(np.delete(X, row, 0), np.delete(y, row))
    np.testing.assert_allclose(
        refit.decision_function(X[[row]])[0], model.held_out_decision_[row], rtol=1e-5
    )
    in_sample = ProjectionDisplay.from_estimator(model, X, y).values
    np.testing.assert_array_equal(in_sample, model.transform(X))
    assert np.abs(values - in_sample).max() > 1.0


def test_projections_of_two_classes_are_decisions(two):
    X, y, model = two
    display = ProjectionDisplay.from_estimator(model, class_names=["malignant", "benign"])
    np.testing.assert_array_equal(display.values, model.held_out_decision_)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == [f"malignant ({np.sum(y == 0)})", f"benign ({np.sum(y == 1)})"]
    with pytest.raises(ValueError, match="class_names must have one entry for each of the 2"):
        ProjectionDisplay.from_estimator(model, class_names=["one"])
    with pytest.raises(ValueError, match="y is needed with X"):
        ProjectionDisplay.from_estimator(model, X)
    with pytest.raises(TypeError, match="needs a classifier"):
        ProjectionDisplay.from_estimator(fitonce.KernelRidge(alpha=1.0, gamma=1.0).fit(X, y))


def test_projections_leave_out_rows_of_zero_weight(three):
    X, y, _ = three
    weights = np.ones(len(y))
    weights[::5] = 0
    model = fitonce.KernelFisherDiscriminant(gamma=0.1, alpha=0.1).fit(X, y, sample_weight=weights)
    assert len(ProjectionDisplay.from_estimator(model).values) == int(weights.sum())
    assert len(
        InfluenceDisplay.from_estimator(model, row_names=[str(i) for i in range(len(y))]).values
    ) == int(weights.sum())


def test_calibration_is_scikit_learns_for_two_classes(two):
    X, y, model = two
    p = fitonce.cross_val_predict(model, X, y, cv=5, method="predict_proba")
    display = CalibrationDisplay.from_predictions(y, p, n_bins=5, strategy="uniform")
    observed, predicted = calibration_curve(y, p[:, 1], n_bins=5, strategy="uniform")
    np.testing.assert_allclose(display.curves[0]["observed"], observed)
    np.testing.assert_allclose(display.curves[0]["predicted"], predicted)
    assert display.curves[0]["count"].sum() == len(y)
    alone = CalibrationDisplay.from_predictions(y, p[:, 1], n_bins=5, strategy="uniform")
    np.testing.assert_array_equal(alone.curves[0]["observed"], display.curves[0]["observed"])


def test_calibration_of_more_classes(three):
    _, y, model = three
    display = CalibrationDisplay.from_estimator(model, n_bins=4)
    assert [curve["name"] for curve in display.curves] == ["0", "1", "2"]
    for curve in display.curves:
        assert curve["count"].sum() == len(y)
        assert np.all(curve["lower"] <= curve["observed"]) and np.all(
            curve["observed"] <= curve["upper"]
        )
    many = np.random.default_rng(0).dirichlet(np.ones(9), size=200)
    top = CalibrationDisplay.from_predictions(np.arange(200) % 9, many)
    assert len(top.curves) == 1 and top.curves[0]["predicted"].min() > 1 / 9
    with pytest.raises(ValueError, match="a column for each of the 3 classes"):
        CalibrationDisplay.from_predictions(y, many)
    with pytest.raises(ValueError, match="strategy must be"):
        CalibrationDisplay.from_predictions(y, np.full((len(y), 3), 1 / 3), strategy="best")


def test_calibration_fitted_on_the_rows_is_refused(two):
    X, y, _ = two
    with pytest.raises(ValueError, match="would look too good"):
        CalibrationDisplay.from_estimator(
            fitonce.LeastSquaresSVC(gamma=0.1, alpha=1.0, calibration="isotonic").fit(X, y)
        )
    with pytest.raises(ValueError, match="this classifier has no probabilities"):
        CalibrationDisplay.from_estimator(
            fitonce.LeastSquaresSVC(gamma=0.1, alpha=1.0, calibration=None).fit(X, y)
        )


def test_influence_names_the_rows_that_matter(three, regression):
    X, y, model = three
    display = InfluenceDisplay.from_estimator(model, n_named=3)
    wrong = np.argmax(model.held_out_decision_, axis=1) != y
    np.testing.assert_array_equal(display.values < 0, wrong)
    np.testing.assert_array_equal(display.leverage, model.leverage_)
    assert len(display.named_) == 3
    X, y, ridge = regression
    moved = y.copy()
    moved[17] += 1000.0
    display = InfluenceDisplay.from_estimator(
        fitonce.KernelRidge(gamma=ridge.gamma_, alpha=ridge.alpha_).fit(X, moved)
    )
    assert display.named_[0] == 17
    np.testing.assert_allclose(
        display.values,
        moved
        - fitonce.KernelRidge(gamma=ridge.gamma_, alpha=ridge.alpha_)
        .fit(X, moved)
        .held_out_prediction_,
    )
    with pytest.raises(ValueError, match="row_names must have one entry"):
        InfluenceDisplay(leverage=[0.1, 0.2], values=[1.0, 2.0], row_names=["a"]).plot()


def test_names_are_drawn_where_there_is_room():
    """Of two points at the same place the one that matters more is named."""
    display = InfluenceDisplay(
        leverage=[0.1, 0.5, 0.5001, 0.9],
        values=[5.0, 9.0, 8.99, -9.0],
        kind="residual",
        row_names=list("abcd"),
    ).plot()
    assert [text.get_text() for text in display.ax_.texts] == ["d", "b", "a"]


def test_every_class_is_in_the_legend():
    labels = np.repeat(np.arange(40), 2)
    display = ProjectionDisplay(values=np.column_stack([labels, labels]), y=labels).plot()
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == [f"{label} (2)" for label in range(40)]


def test_discrete_scores_have_a_bar_for_each():
    null = np.repeat([0.4, 0.5, 0.55], [2, 5, 3])
    display = PermutationNullDisplay(null=null, score=0.7, pvalue=0.1).plot()
    assert [bar.get_height() for bar in display.histogram_ if bar.get_height()] == [2, 5, 3]


@pytest.mark.parametrize(
    "estimator", [fitonce.KernelFisherDiscriminant, fitonce.LeastSquaresSVC, fitonce.KernelRidge]
)
def test_activation_patterns_are_haufes(estimator, three):
    """A = Σ_X W Σ_ŝ⁻¹, with the covariances formed."""
    X, y, _ = three
    model = estimator(kernel="linear", alpha=0.5).fit(X, y)
    W = model.coef_.T if estimator is not fitonce.KernelFisherDiscriminant else model.scalings_
    W = W[:, None] if W.ndim == 1 else W
    expected = np.cov(X.T) @ W @ np.linalg.pinv(np.atleast_2d(np.cov((X @ W).T)), rcond=1e-10)
    np.testing.assert_allclose(
        activation_patterns(model, X), expected, atol=1e-8 * np.abs(expected).max()
    )
    display = BarDisplay.from_estimator(model, X, feature_names=np.arange(X.shape[1]))
    order = [int(name) for name in display.names]
    for drawn, whole in ((display.values, W), (display.beside, expected)):
        relative = whole[order, 0] / np.abs(whole[:, 0]).max()
        np.testing.assert_allclose(drawn, relative, atol=1e-8)
    lengths = np.maximum(np.abs(display.values), np.abs(display.beside))
    assert np.all(np.diff(lengths) <= 0)


def test_patterns_find_the_signal_where_weights_cancel_noise():
    rng = np.random.default_rng(0)
    signal, noise = np.repeat([-1.0, 1.0], 200), rng.normal(size=400)
    X = np.column_stack([signal + 2 * noise, noise])
    model = fitonce.LeastSquaresSVC("linear", alpha=1e-3).fit(X, signal)
    pattern = activation_patterns(model, X)[:, 0]
    assert abs(model.coef_[0, 1]) > abs(model.coef_[0, 0])
    assert abs(pattern[1]) < 0.1 * abs(pattern[0])


def test_weights_need_a_linear_kernel(two):
    X, _, model = two
    with pytest.raises(ValueError, match='need kernel="linear"'):
        BarDisplay.from_estimator(model, X)
    linear = fitonce.KernelFisherDiscriminant("linear", alpha=1.0).fit(X, two[1])
    with pytest.raises(ValueError, match="must have the 30 features"):
        BarDisplay.from_estimator(linear, X[:, :5])
    with pytest.raises(ValueError, match="X is needed"):
        BarDisplay.from_estimator(linear)
    with pytest.raises(ValueError, match="output must be from 0 to 0"):
        BarDisplay.from_estimator(linear, X, output=1)
    display = BarDisplay.from_estimator(linear, X, n_shown=7)
    assert len(display.ax_.patches) == 14 and display.ax_.get_ylabel() == "7 of 30"


def test_colours_can_be_told_apart_and_never_carry_alone():
    """Simulated protanopia, deuteranopia and tritanopia (Machado et al. 2009) keep them apart."""
    matrices = {
        "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    }
    rgb = np.array([to_rgb(colour) for colour in COLORS[:4]]) ** 2.2
    for matrix in matrices.values():
        seen = np.clip(rgb @ np.array(matrix).T, 0, 1) ** (1 / 2.2)
        distances = np.linalg.norm(seen[:, None] - seen[None], axis=2)[np.triu_indices(4, 1)]
        assert distances.min() > 0.1
    looks = {(look(k)["color"], look(k)["marker"]) for k in range(len(COLORS) * len(MARKERS))}
    assert len(looks) == len(COLORS) * len(MARKERS)


def test_names_with_dollars_and_length_are_plain_text(three):
    X, y, _ = three
    names = np.array(["$x^2$ and a very long name that goes on and on and on", "plain", "$"])[y]
    display = ProjectionDisplay.from_estimator(
        fitonce.KernelFisherDiscriminant(gamma=0.1, alpha=0.1).fit(X, names)
    )
    display.figure_.canvas.draw()
    assert all(len(text.get_text()) < 40 for text in display.ax_.get_legend().get_texts())


def test_names_are_imported_when_they_are_asked_for():
    code = """
import sys, fitonce.plotting as plotting
assert "matplotlib" not in sys.modules
assert all(callable(getattr(plotting, name)) for name in plotting.__all__)
print(sorted(dir(plotting)) == sorted(plotting.__all__))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True
    )
    assert result.stdout.strip() == "True"
    with pytest.raises(AttributeError, match="PieChart"):
        fitonce.plotting.PieChart  # noqa: B018


def test_without_matplotlib_the_extra_is_named(three):
    code = """
import sys
sys.modules["matplotlib"] = None
import numpy as np, fitonce
from fitonce.plotting import InfluenceDisplay
try:
    InfluenceDisplay(leverage=np.ones(3), values=np.ones(3)).plot()
except ImportError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True
    )
    assert "pip install 'fitonce[plot]'" in result.stdout
