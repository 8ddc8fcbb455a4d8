"""What a page says of uncertainty: how far off, and which rows the others depend on."""

from __future__ import annotations

import numpy as np
import pytest

import fitonce
from fitonce.plotting.style import rounded
from fitonce.report.subject import Subject
from fitonce.report.tables import dependence
from problems import labelled_rows, numbered_rows

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
from fitonce.report.drawings import performance_figures
from fitonce.report.page import write_report


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
    radius = np.sort(np.abs(y - model.held_out_prediction_))[44]  # the 45th of 49
    assert f"within {rounded(radius)} of their prediction" in figures["fit"].caption
    assert "spread" in figures
    dual = fitonce.KernelRidge(0.3, gamma=0.4, penalty="dual").fit(X, y)
    names = [each.name for each in performance_figures(subject_of(dual, X, y), True)]
    assert "spread" not in names
    page = write_report(tmp_path / "page.html", model, X, y).read_text(encoding="utf-8")
    assert 'id="dependence"' in page
    hidden = write_report(tmp_path / "page.html", model, X, y, include_data=False)
    assert 'id="dependence"' not in hidden.read_text(encoding="utf-8")
