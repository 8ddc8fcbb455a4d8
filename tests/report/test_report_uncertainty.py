"""What a page says of uncertainty: how far off, and which rows the others depend on."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitonce
from fitonce import compare
from fitonce.assessment.render import score_text
from fitonce.plotting.style import rounded
from fitonce.report.subject import Subject
from fitonce.report.tables import class_sets, dependence
from problems import labelled_rows, numbered_rows

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
from fitonce.report import write_report
from fitonce.report.drawings import performance_figures


def subject_of(model, X, y, **given) -> Subject:
    return Subject.of(model, X, y, **given)


def test_the_rows_on_which_the_others_depend_are_those_of_refits():
    X, y = numbered_rows(25)
    model = fitonce.KernelRidge(0.3, gamma=0.4).fit(X, y)
    found = dependence(subject_of(model, X, y))
    moved = []
    for row in range(25):
        kept = np.delete(np.arange(25), row)
        other = fitonce.KernelRidge(0.3, gamma=0.4).fit(X[kept], y[kept])
        moved.append(np.abs(other.predict(X[kept]) - model.predict(X[kept])).mean())
    assert [item["row"] for item in found] == [f"row {row}" for row in np.argsort(moved)[::-1][:5]]
    unit = np.std(model.held_out_prediction_)
    assert found[0]["mean"] == rounded(max(moved) / unit)


def test_classes_and_weights_have_them_too():
    X, y = labelled_rows(30)
    weights = np.ones(30)
    weights[4] = 0.0
    model = fitonce.KernelFisherDiscriminant(gamma=0.4, alpha=0.3).fit(X, y, weights)
    found = dependence(subject_of(model, X, y, sample_weight=weights))
    assert len(found) == 5 and all(item["row"] != "row 4" for item in found)


def test_groups_and_models_from_files_have_none(tmp_path):
    X, y = numbered_rows(30)
    grouped = fitonce.KernelRidge(0.3, gamma=0.4).fit(X, y, groups=np.arange(30) // 2)
    assert dependence(subject_of(grouped, X, y)) == []


def test_a_caption_says_where_nine_of_ten_rows_lie(tmp_path):
    X, y = numbered_rows(49)
    model = fitonce.KernelRidge(0.3, gamma=0.4).fit(X, y)
    figures = {each.name: each for each in performance_figures(subject_of(model, X, y), True)}
    found = fitonce.assess(model, X, y, permutations=0)
    radius = np.sort(np.abs(y - found.predictions))[44]  # the 45th of 49
    assert f"within {rounded(radius)} of their prediction" in figures["fit"].caption
    page = write_report(tmp_path / "page.html", model, X, y).read_text(encoding="utf-8")
    assert 'id="dependence"' in page
    hidden = write_report(tmp_path / "page.html", model, X, y, include_data=False)
    assert 'id="dependence"' not in hidden.read_text(encoding="utf-8")


def test_the_first_table_has_other_models_in_the_same_folds(tmp_path):
    X, y = labelled_rows(60)
    y = np.array(["no", "yes"])[(y > 0).astype(int)]
    model = make_pipeline(StandardScaler(), fitonce.LeastSquaresSVC(gamma=0.4, alpha=0.3)).fit(X, y)
    answer = fitonce.assess(model, X, y, cv=3, permutations=0)
    others = {
        name: make_pipeline(StandardScaler(), other)
        for name, other in {
            "linear model": fitonce.LeastSquaresSVC("linear"),
            "random forest": RandomForestClassifier(100, random_state=1),
        }.items()
    }
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    with pytest.warns(fitonce.RefitWarning):
        found = compare({"this model": answer}, others, X, y)
    for name, other in others.items():
        literal = cross_val_predict(other, X, y, cv=cv)
        assert found.scores[name].value == pytest.approx(np.mean(literal == y))
    assert found.scores["this model"].value == pytest.approx(answer.score.value)
    page = write_report(tmp_path / "page.html", model, X, y, assessment=answer, others=found)
    text = page.read_text(encoding="utf-8")
    first = text[text.index("<table") : text.index("</table>")]
    names = ["this model", *others, "baseline (majority class)"]
    places = [first.index(name) for name in names]
    assert places == sorted(places)
    assert all(score_text(found.scores[name].value, True) in first for name in others)


def test_a_better_model_is_told(tmp_path):
    X, y = labelled_rows(60)
    model = fitonce.LeastSquaresSVC(gamma=1e-3, alpha=1e3).fit(X, (y > 0).astype(int))
    truth = np.asarray((y > 0).astype(int))
    answer = fitonce.assess(model, X, truth, cv=3, permutations=0)
    with pytest.warns(fitonce.RefitWarning):
        found = compare({"this model": answer}, {"oracle": Oracle(X, truth)}, X, truth)
    assert found.clearly_better("this model") == "oracle"
    page = write_report(tmp_path / "page.html", model, X, truth, assessment=answer, others=found)
    assert "Oracle is clearly better on the same rows" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("estimator", [fitonce.KernelRidge, fitonce.LeastSquaresSVC])
def test_landmarks_chosen_by_labels_have_nested_scores_alone(estimator, tmp_path):
    X, y = numbered_rows(60) if estimator is fitonce.KernelRidge else labelled_rows(60)
    model = estimator(alpha=1.0, gamma=0.1, landmarks=9, landmark_method="greedy", random_state=0)
    with pytest.warns(UserWarning, match="intervals and sets from them are too small"):
        model.fit(X, y)
    page = write_report(tmp_path / "page.html", model, X, y).read_text(encoding="utf-8")
    assert "so no scored row influenced the model that predicted it" in page and ">nan<" not in page
    assert "There is no explorer: no row has a held-out prediction." in page
    assert not dependence(subject_of(model, X, y))


class Oracle(ClassifierMixin, BaseEstimator):
    """Knows the answer."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.y[[int(np.flatnonzero((row == self.X).all(axis=1))[0]) for row in X]]


def test_sets_of_classes_hold_nine_of_ten_rows_of_each_class():
    X, _ = labelled_rows(59)
    codes = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.25, 0.5]))
    model = fitonce.KernelFisherDiscriminant(gamma=0.4, alpha=0.3).fit(X, codes)
    found = class_sets(subject_of(model, X, codes))
    decision = model.held_out_decision_
    margin = np.array([[d[c] - np.delete(d, c).max() for c in range(3)] for d in decision])
    own = margin[np.arange(59), codes]
    ranks = [int(np.ceil(0.9 * (np.sum(codes == c) + 1))) for c in range(3)]
    lowest = np.array([np.sort(own[codes == c])[::-1][ranks[c] - 1] for c in range(3)])
    sizes = (margin >= lowest).sum(axis=1)
    held = own >= lowest[codes]
    assert found["held"] == np.mean(held)
    assert min(np.mean(held[codes == c]) for c in range(3)) >= 0.9
    counted = {name: count for name, count, _ in found["sizes"]}
    assert counted.get("one class", 0) == np.sum(sizes == 1)
    assert sum(counted.values()) == 59
    few = fitonce.KernelFisherDiscriminant(gamma=0.4, alpha=0.3).fit(X[:8], np.arange(8) % 2)
    assert class_sets(subject_of(few, X[:8], np.arange(8) % 2)) is None


@pytest.mark.parametrize("alpha", [0.3, [0.3, 3.0]])
def test_one_feature_has_a_band(alpha):
    """Its caption says what tuning costs."""
    X, y = numbered_rows(40)
    model = fitonce.KernelRidge(alpha, gamma=0.4).fit(X[:, :1], y)
    subject = subject_of(model, X[:, :1], y)
    captions = {each.name: each.caption for each in performance_figures(subject, True)}
    assert ("tuned on the same rows" in captions["band"]) == (alpha != 0.3)
    names = [each.name for each in performance_figures(subject, False)]
    assert "band" not in names
