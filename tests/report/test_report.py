"""The page as text: what it says, what it refuses, what it leaves out, how large it is.

The browser has a file of its own.
"""

from __future__ import annotations

import base64
import html
import itertools
import json
import pickle
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_wine,
    make_blobs,
    make_classification,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitonce
from fitonce.assessment import assess
from fitonce.assessment.render import SCORES, joined, score_name
from fitonce.report import Origin, write_report
from fitonce.report.drawings import Figure, choice_figures
from fitonce.report.explorer import LADDER, script_json
from fitonce.report.results import Channel, boundary
from fitonce.report.subject import Subject
from fitonce.report.tables import Column, importance

pytestmark = pytest.mark.filterwarnings("ignore::fitonce.NumericalWarning")


FIGURES_ONLY = {"kind", "alphas", "gammas", "factors", "chosen", "errors"}


@pytest.fixture(autouse=True)
def few_stops(monkeypatch):
    """Three values of gamma and five of alpha; all for `assessed` and tests with `all_stops`."""
    monkeypatch.setattr("fitonce.report.explorer.LADDER", ((1, 2),))


@pytest.fixture
def all_stops(few_stops, monkeypatch):
    monkeypatch.setattr("fitonce.report.explorer.LADDER", LADDER)


@pytest.fixture
def undrawn(monkeypatch):
    """For tests that look at text and numbers outside the figures; all other pages are drawn."""
    monkeypatch.setattr(
        "fitonce.report.drawings.figure", lambda name, _, *words: Figure(name, "", *words)
    )


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    pipeline = make_pipeline(
        StandardScaler(), fitonce.KernelFisherDiscriminant(gamma=0.05, alpha=[0.01, 0.1, 1.0])
    ).fit(X, names)
    return X, names, pipeline


@pytest.fixture(scope="module")
def assessed(wine, tmp_path_factory):
    X, y, pipeline = wine
    found = assess(pipeline, X, y, cv=4, permutations=30, random_state=0)
    path = write_report(
        tmp_path_factory.mktemp("page") / "wine.html",
        pipeline,
        X,
        y,
        assessment=found,
        title="Wine",
    )
    return found, path.read_text(encoding="utf-8")


def page_of(folder, model, X, y, **options) -> str:
    return write_report(folder / "a.html", model, X, y, **options).read_text(encoding="utf-8")


def text_of(page: str) -> str:
    """What a reader sees: no tags, scripts or styles; one blank between words."""
    page = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def embedded(page: str) -> dict:
    return json.loads(
        re.search(
            r'<script type="application/json" id="explorer-data">(.*?)</script>', page, re.DOTALL
        )[1]
    )


def shown(data: dict, name: str, gamma: int, alpha: int) -> np.ndarray:
    """The numbers of a channel at one stop, as the page reads them."""
    channel, stop = data["channels"][name], gamma * len(data["alphas"]) + alpha
    kind = {8: "<u1", 16: "<u2"}[channel["bits"]]
    codes = np.frombuffer(base64.b64decode(channel["data"]), dtype=kind)
    codes = codes.reshape(len(channel["low"]), -1)[stop].astype(float)
    codes[codes == 2 ** channel["bits"] - 1] = np.nan
    return channel["low"][stop] + channel["step"][stop] * codes


def test_it_says_what_the_assessment_found(assessed):
    found, page = assessed
    text = text_of(page)
    score = found.score
    assert (
        f"{100 * score.value:.1f} %" in text
        and f"{100 * score.low:.1f} % to {100 * score.high:.1f} %" in text
    )
    assert score.method in text
    assert f"{100 * found.baseline.value:.1f} %" in text
    assert "30 labelings" in text
    assert found.cv in text
    for row, counts in zip(found.classes, found.confusion, strict=True):
        cells = re.search(rf'<th scope="row"><bdi>{row}</bdi></th>(.*?)</tr>', page, re.DOTALL)[1]
        assert [float(cell) for cell in re.findall(r">([\d.]+)</td>", cells)] == counts.tolist()
    assert f"fitonce {fitonce.__version__}" in text and np.__version__ in text


@pytest.mark.usefixtures("undrawn")
def test_sentences_are_apart(assessed, wine, tmp_path):
    X, y, pipeline = wine
    verification = pipeline[-1].verify(n_refits=1)
    path = write_report(tmp_path / "a.html", pipeline, X, y, verification=verification)
    for page in (assessed[1], path.read_text(encoding="utf-8")):
        text = re.sub(r"\s+", " ", re.sub(r"<(script|style|svg).*?</\1>", "", page, flags=re.S))
        assert not re.search(r"[a-z)]\.[A-Z]|\band\d| [.,;]|\d\.\d+\.\d+ literal", text)


def test_the_table_has_the_nested_predictions(assessed, wine):
    found, page = assessed
    rows = re.findall(r'<tr data-row="(\d+)" data-wrong="(\d)".*?>(.*?)</tr>', page, re.DOTALL)
    assert len(rows) == len(wine[1])
    wrong = {int(row) for row, flag, _ in rows if flag == "1"}
    assert wrong == set(np.flatnonzero(found.predictions != found.y))
    assert [flag for _, flag, _ in rows] == sorted(
        (flag for _, flag, _ in rows), reverse=True
    )  # misclassified rows come first
    first = dict((int(row), cells) for row, _, cells in rows)[0]
    assert f"{wine[0].iloc[0, 0]:.4g}".rstrip("0") in first  # columns as given, before the scaler


@pytest.mark.usefixtures("undrawn")
def test_without_an_assessment_it_makes_one(wine, tmp_path):
    X, y, pipeline = wine
    page = page_of(tmp_path, pipeline, X, y)
    found = assess(pipeline, X, y, permutations=0)
    given = write_report(tmp_path / "b.html", pipeline, X, y, assessment=found)
    assert page == given.read_text(encoding="utf-8") and found.cv in text_of(page)


@pytest.mark.usefixtures("undrawn")
def test_why_there_is_no_held_out_score(tmp_path):
    X, _ = make_blobs(30, centers=2, random_state=0)
    model = fitonce.KernelRidge(gamma=0.1, alpha=0.1).fit(X, X)
    text = text_of(page_of(tmp_path, model, X, X))
    assert "no held-out score: y must have one value per row, got shape (30, 2)" in text


def test_every_tag_is_closed_and_every_id_is_unique(assessed):
    void = {
        "meta",
        "input",
        "br",
        "img",
        "link",
        "hr",
        "path",
        "use",
        "rect",
        "line",
        "stop",
        "polyline",
    }

    class Checker(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.ids, self.faults = [], [], []

        def handle_starttag(self, tag, attributes):
            self.ids += [value for name, value in attributes if name == "id"]
            if tag not in void:
                self.open.append(tag)

        def handle_endtag(self, tag):
            if tag in void:
                return
            if not self.open or self.open[-1] != tag:
                self.faults.append((tag, self.open[-3:]))
            else:
                self.open.pop()

        def handle_startendtag(self, tag, attributes):
            self.ids += [value for name, value in attributes if name == "id"]

    checker = Checker()
    checker.feed(assessed[1])
    assert not checker.faults and not checker.open
    assert len(checker.ids) == len(set(checker.ids))
    references = set(re.findall(r'(?:href="|url\()#([^")]+)', assessed[1]))
    assert references <= set(checker.ids)


def test_nothing_points_outside(assessed):
    page = assessed[1]
    addresses = [
        address
        for address in re.findall(r"https?://[^\s\"'<)]+", page)
        if "www.w3.org" not in address
    ]
    assert not addresses  # names of XML vocabularies are no requests
    assert not re.search(r"<(link|iframe|object|embed|img|base)\b|@import|\bsrc=", page)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert "default-src &#39;none&#39;" in policy or "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        "\"'><img src=x onerror=alert(1)>",
        "</script><script>alert(1)</script>",
        "{{ 7 * 7 }}",
    ],
)
def test_names_cannot_become_markup(name, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) + np.arange(30)[:, None] % 2
    y = np.where(np.arange(30) % 2, name, "other")
    model = fitonce.KernelFisherDiscriminant("linear", alpha=1.0).fit(X, y)
    page = page_of(
        tmp_path, model, X, y, feature_names=[name, "b"], row_names=[name] * 30, title=name
    )
    assert page.count("<script") == 2 and page.count("</script>") == 2
    assert not re.search(r"<img|<script>alert", page)
    assert embedded(page)["names"][0] == name
    assert html.escape(name, quote=False) in page.replace("&#34;", '"').replace("&#39;", "'")


def test_json_in_a_script_element():
    text = script_json({"a": "</script><!-- & \u2028 é"})
    assert not set(text) & set("<>&\u2028é")
    assert json.loads(text) == {"a": "</script><!-- & \u2028 é"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json([float("nan")])


def test_control_characters_and_surrogates_do_not_stop_it(tmp_path):
    X, y = make_blobs(20, centers=2, random_state=0)
    model = fitonce.KernelFisherDiscriminant("linear", alpha=1.0).fit(X, y)
    path = write_report(
        tmp_path / "a.html",
        model,
        X,
        y,
        row_names=["\x00\x07\ud800 a"] * 20,
        title="a\nb\x1b[31m" + "x" * 5000,
    )
    assert (
        "\x00" not in path.read_text(encoding="utf-8")
        and len(path.read_text(encoding="utf-8")) < 400_000
    )


def test_without_data_nothing_of_a_row_is_in_the_page(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:60], y[:60] + np.linspace(0.1234, 0.9876, 60)
    model = fitonce.KernelRidge(gamma=1.0, alpha=0.1).fit(X, y)
    names = [f"patient-{index}" for index in range(60)]
    page = page_of(tmp_path, model, X, y, include_data=False, row_names=names)
    assert "patient-" not in page and "<tr data-row=" not in page
    assert set(embedded(page)) == FIGURES_ONLY
    assert not any(f"{value:.6g}" in page for value in y)
    assert "does not contain the training rows" in text_of(page)
    wine, labels = load_wine(return_X_y=True)
    classifier = fitonce.KernelFisherDiscriminant("linear", alpha=1.0).fit(wine, labels)
    page = page_of(tmp_path, classifier, wine, labels, include_data=False)
    assert "projection" not in re.findall(
        r'id="(\w+)-figure_1"', page
    ) and "influence" not in re.findall(r'id="(\w+)-figure_1"', page)


@pytest.mark.slow
@pytest.mark.usefixtures("all_stops")
def test_the_size_is_stated_and_bounded(tmp_path):
    X, y = make_classification(400, 20, n_informative=10, random_state=0)
    model = fitonce.KernelFisherDiscriminant(gamma=0.05, alpha=0.1).fit(X, y)
    stops = {}
    for limit in (0.4, 1.0, 4.0):
        path = write_report(tmp_path / f"{limit}.html", model, X, y, max_megabytes=limit)
        size = path.stat().st_size
        assert size <= limit * 1e6
        page = path.read_text(encoding="utf-8")
        stated = re.search(r"This file is ([\d.]+) (MB|kB)", page)
        assert float(stated[1]) * {"MB": 1e6, "kB": 1e3}[stated[2]] == pytest.approx(size, rel=0.1)
        if 'id="explorer-data"' in page:
            data = embedded(page)
            stops[limit] = len(data["factors"]), len(data["alphas"])
        else:
            assert "it does not fit into the page" in text_of(page)
            stops[limit] = 0, 0
    assert stops[0.4] < stops[1.0] < stops[4.0] == (9, 41)
    with pytest.raises(ValueError, match="max_megabytes must be at least"):
        write_report(tmp_path / "no.html", model, X, y, max_megabytes=0.01)
    with pytest.raises(ValueError, match="max_megabytes must be positive"):
        write_report(tmp_path / "no.html", model, X, y, max_megabytes=0)


@pytest.mark.slow
@pytest.mark.usefixtures("all_stops")
def test_a_thousand_rows_take_at_most_two_megabytes(tmp_path):
    X, y = make_classification(1000, 12, n_informative=8, random_state=0)
    model = fitonce.KernelFisherDiscriminant().fit(X, y)
    path = write_report(tmp_path / "a.html", model, X, y)
    data = embedded(path.read_text(encoding="utf-8"))
    assert path.stat().st_size <= 2e6
    assert len(data["factors"]) >= 5 and len(data["alphas"]) >= 25


@pytest.mark.usefixtures("undrawn")
def test_progress_is_told(tmp_path):
    X, y = make_blobs(30, centers=2, random_state=0)
    calls = []
    write_report(
        tmp_path / "a.html",
        fitonce.LeastSquaresSVC(gamma=0.1, alpha=1.0).fit(X, y),
        X,
        y,
        progress=lambda *call: calls.append(call),
    )
    assert calls == [("explorer", done, 15) for done in range(1, 16)]


def test_rounded_numbers_are_within_half_a_step():
    rng = np.random.default_rng(0)
    for values in (rng.normal(size=50), 1e9 + rng.normal(size=50), np.full(50, 3.25), np.zeros(50)):
        values[7] = np.nan
        for bits in (8, 16):
            channel = Channel(bits, 50)
            channel.append(values)
            packed = {"alphas": [1.0], "channels": {"value": channel.packed()}}
            read = shown(packed, "value", 0, 0)
            assert np.array_equal(np.isnan(read), np.isnan(values))
            spread = np.nanmax(values) - np.nanmin(values)
            atol = 0.51 * spread / (2**bits - 2) + 1e-6 * (spread == 0)
            np.testing.assert_allclose(read, values, rtol=0, atol=atol)
    classes = Channel(8, 4, whole=True)
    classes.append(np.array([0.0, 253.0, np.nan, 7.0]))
    packed = {"alphas": [1.0], "channels": {"value": classes.packed()}}
    np.testing.assert_array_equal(shown(packed, "value", 0, 0), [0, 253, np.nan, 7])


def test_a_boundary_keeps_its_place():
    """Where a decision is linear, leads of neighbours say exactly where it vanishes."""
    x, y = np.meshgrid(np.arange(40.0), np.arange(40.0))
    decision = (x + 0.5 * y - 23.3).reshape(-1)
    found = boundary(decision)
    region, lead = found["region"].reshape(40, 40), found["distance"].reshape(40, 40)
    np.testing.assert_array_equal(found["region"], decision > 0)
    for row in range(40):
        left = np.flatnonzero(np.diff(region[row]))
        for column in left:
            share = lead[row, column] / (lead[row, column] + lead[row, column + 1])
            assert column + share == pytest.approx(23.3 - 0.5 * row)


def test_leads_are_cut_to_those_beside_a_boundary():
    decision = np.random.default_rng(0).normal(size=(40, 40, 3)).cumsum(axis=0).cumsum(axis=1)
    region = decision.argmax(axis=2)
    ordered = np.sort(decision, axis=2)
    lead = ordered[..., 2] - ordered[..., 1]
    steps = ((0, 1), (1, 0), (0, -1), (-1, 0))
    inside = [(i, j) for i in range(40) for j in range(40)]
    most = max(
        lead[i, j]
        for i, j in inside
        for a, b in steps
        if (i + a, j + b) in inside and region[i + a, j + b] != region[i, j]
    )
    found = boundary(decision.reshape(-1, 3))
    np.testing.assert_array_equal(found["region"], region.reshape(-1))
    np.testing.assert_allclose(found["distance"], np.minimum(lead, most).reshape(-1))


def test_names_in_a_sentence():
    assert joined([]) == ""
    assert joined(["a"]) == "a"
    assert joined(["a", "b", "c"]) == "a, b and c"
    assert joined(list("abcdefgh")) == "a, b, c, d, e, f and 2 more"


def test_a_score_has_one_name():
    assert all(score_name(name) == said for name, said in SCORES.items())
    assert score_name("squared_error") == "squared error"
    assert score_name(max) == "user-defined criterion"


def refit(model, X, y, alpha, gamma, **keywords):
    fixed = {"alpha": alpha, "refine": False} | ({} if gamma is None else {"gamma": gamma})
    return clone(model).set_params(**fixed).fit(X, y, **keywords)


@pytest.mark.parametrize("kind", ["fisher", "classes", "weights", "groups", "random cv", "ridge"])
@pytest.mark.usefixtures("undrawn")
def test_the_table_has_what_the_library_computes(kind, tmp_path):
    """Another fit for every stop, by other names of the same numbers: scikit-learn's scores."""
    X, y = load_wine(return_X_y=True)
    X, keywords = StandardScaler().fit_transform(X)[::2], {}
    model, y = fitonce.KernelFisherDiscriminant(gamma=0.02, alpha=0.5), y[::2]
    if kind in ("fisher", "groups", "random cv"):
        y = np.minimum(y, 1)
    if kind == "weights":
        keywords = {"sample_weight": np.arange(len(y)) % 3 + 0.5}
    if kind == "groups":
        keywords = {"groups": np.arange(len(y)) // 7}
    if kind == "random cv":
        splits = list(KFold(4, shuffle=True, random_state=1).split(X))
        model = model.set_params(cv=KFold(4, shuffle=True, random_state=np.random.RandomState(1)))
    if kind == "ridge":
        model, y = fitonce.KernelRidge(), X[:, :2] @ [[1.0, 2.0], [3.0, -1.0]]
        X = X[:, 2:]
    model.fit(X, y, **keywords)
    page = page_of(tmp_path, model, X, y)
    data, weights = embedded(page), keywords.get("sample_weight")
    assert data["gammas"][1] == model.gamma_ and data["alphas"][2] == model.alpha_
    assert data["chosen"] == {"gamma": 1, "alpha": 2}
    if kind == "random cv":
        model = clone(model).set_params(cv=splits)
    for (g, gamma), (a, alpha) in itertools.product(
        enumerate(data["gammas"]), enumerate(data["alphas"])
    ):
        exact = refit(model, X, y, alpha, gamma, **keywords)
        stop = g * 5 + a
        assert data["dof"][stop] == pytest.approx(exact.effective_dof_, rel=1e-6)
        leverage = shown(data, "leverage", g, a)
        np.testing.assert_allclose(leverage, exact.leverage_, atol=0.003)
        if kind == "ridge":
            held_out = exact.held_out_prediction_
            rmse = mean_squared_error(y, held_out) ** 0.5
            assert data["errors"][stop] == pytest.approx(rmse, rel=1e-9)
            assert data["r2"][stop] == pytest.approx(r2_score(y, held_out), rel=1e-9)
            value = held_out[:, 0]
        else:
            decision = exact.held_out_decision_
            codes = (decision > 0) * 1 if decision.ndim == 1 else decision.argmax(axis=1)
            np.testing.assert_array_equal(shown(data, "predicted", g, a), codes)
            error = np.average(codes != y, weights=weights)
            assert data["errors"][stop] == pytest.approx(error, rel=1e-12)
            if decision.ndim == 1:
                value = np.where(y == 1, decision, -decision)
            else:
                others = np.where(np.eye(decision.shape[1])[y] > 0, -np.inf, decision)
                value = decision[np.arange(len(y)), y] - others.max(axis=1)
        found = shown(data, "value", g, a)
        np.testing.assert_allclose(found, value, atol=2e-5 * np.ptp(value))
    assert ("without its group or fold" in text_of(page)) == (kind in ("groups", "random cv"))


@pytest.mark.usefixtures("all_stops", "undrawn")
def test_stops_without_a_model_are_gaps(tmp_path):
    """An indefinite kernel allows no alpha below the size of its most negative eigenvalue."""
    X, y = load_wine(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[::3], np.minimum(y[::3], 1)
    model = fitonce.LeastSquaresSVC("sigmoid", gamma=0.05, coef0=-1.0, alpha=1.0).fit(X, y)
    data = embedded(page_of(tmp_path, model, X, y))
    errors = np.array(data["errors"], dtype=float).reshape(len(data["gammas"]), -1)
    gamma, alpha = data["chosen"]["gamma"], data["chosen"]["alpha"]
    assert np.isnan(errors[gamma, 0]) and np.isfinite(errors[gamma, alpha:]).all()
    for stop in (0, alpha):
        known = np.isfinite(shown(data, "predicted", gamma, stop))
        assert known.all() == np.isfinite(errors[gamma, stop]) == known.any()
    with pytest.raises(ValueError, match="alpha"):
        model.at(data["alphas"][0])


@pytest.mark.usefixtures("undrawn")
def test_rows_that_are_not_the_training_rows_are_refused(wine, tmp_path):
    X, y, pipeline = wine
    target = tmp_path / "a.html"
    with pytest.raises(ValueError, match="must be the 178 rows"):
        write_report(target, pipeline, X[:100], y[:100])
    with pytest.raises(ValueError, match="must be the 178 rows"):
        write_report(target, pipeline, X, y[:100])
    model = clone(pipeline[-1]).set_params(alpha=0.1).fit(np.asarray(X), y)
    model = pickle.loads(pickle.dumps(model))  # as read from a file: nothing but the rows tells
    with pytest.raises(ValueError, match="gives a different model"):
        write_report(target, model, np.asarray(X)[::-1], y)
    with pytest.raises(TypeError, match="must be one of fitonce's"):
        write_report(target, LogisticRegression(max_iter=5000).fit(X, y), X, y)
    with pytest.raises(ValueError, match="row_names must have one name"):
        write_report(target, pipeline, X, y, row_names=["a"])
    with pytest.raises(ValueError, match="feature_names must have one name"):
        write_report(target, pipeline, X, y, feature_names=["a"])
    with pytest.raises(TypeError, match=re.escape("the result of fitonce.assess")):
        write_report(target, pipeline, X, y, assessment={"accuracy": 1.0})
    with pytest.raises(FileNotFoundError, match="create it first"):
        write_report(tmp_path / "nowhere" / "a.html", pipeline, X, y)
    assert not list(tmp_path.iterdir())


def test_shuffled_rows_of_a_model_that_keeps_its_own_are_refused(wine, tmp_path):
    X, y, pipeline = wine
    with pytest.raises(ValueError, match="must be the data that the model was fitted on"):
        write_report(tmp_path / "a.html", pipeline, X.iloc[::-1], y[::-1])


@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_write_leaves_the_old_page(wine, tmp_path, monkeypatch):
    X, y, pipeline = wine
    target = tmp_path / "a.html"
    target.write_text("old", encoding="utf-8")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_report(target, pipeline, X, y)
    assert target.read_text(encoding="utf-8") == "old" and list(tmp_path.iterdir()) == [target]


@pytest.mark.usefixtures("undrawn")
def test_a_model_from_a_file_has_the_same_explorer(tmp_path):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    weights, groups = 1.0 + np.arange(len(y)) % 2, np.arange(len(y)) // 5
    model = fitonce.KernelFisherDiscriminant(gamma=0.05, alpha=0.1)
    model.fit(X, y, sample_weight=weights, groups=groups)
    fitonce.save(model, tmp_path / "model.skops")
    loaded = fitonce.load(tmp_path / "model.skops")
    given = {"sample_weight": weights, "groups": groups}
    pages = [
        write_report(tmp_path / f"{k}.html", m, X, y, **keywords).read_text(encoding="utf-8")
        for k, (m, keywords) in enumerate([(model, {}), (loaded, given)])
    ]
    first, second = map(embedded, pages)
    assert first["alphas"] == second["alphas"] and first["gammas"] == second["gammas"]
    np.testing.assert_allclose(first["errors"], second["errors"])
    with pytest.raises(ValueError, match="must be the data that the model was fitted on"):
        write_report(tmp_path / "no.html", loaded, X, y)
    path = write_report(tmp_path / "without.html", loaded, X, y, sample_weight=weights)
    assert "the model file does not contain its splits" in text_of(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", ["two classes", "three classes", "numbers", "file", "assessed"])
def test_a_committee_has_a_page(kind, tmp_path):
    """Weights of the members, held-out scores, calibration and confusions; nothing of one model."""
    X, y = load_wine(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[30:, :4], y[30:]
    if kind == "two classes":
        X, y = X[y < 2], y[y < 2]
    fisher, ridge = fitonce.KernelFisherDiscriminant, fitonce.KernelRidge
    if kind == "numbers":
        members = [ridge(0.1, gamma=0.2), ridge(1.0, kernel="linear")]
        y = X[:, 0] * X[:, 1]
        model = fitonce.KernelCommitteeRegressor(members).fit(X, y)
    else:
        members = [fisher(gamma=0.2, alpha=0.1), fisher("linear", alpha=1.0), fisher(gamma=2.0)]
        model = fitonce.KernelCommitteeClassifier(members).fit(X, y)
    answer = assess(model, X, y, cv=2, permutations=0) if kind == "assessed" else None
    if kind == "file":
        model = fitonce.load(fitonce.save(model, tmp_path / "model.skops"))
    page = page_of(tmp_path, model, X, y, assessment=answer)
    text = text_of(page)
    assert f"A committee of {len(model.members_)} member" in text
    assert "every member of the committee has settings of its own" in text
    for weight, name in zip(model.weights_, model.names_, strict=True):
        assert f"{name} ({100 * weight:.1f} %)" in text
    assert 'id="members-' in page and ('id="calibration-' in page) == (kind != "numbers")
    assert "leverage" not in text and "degrees of freedom" not in text
    score = (
        assess(model, X, y, permutations=0).score.value if answer is None else answer.score.value
    )
    assert (f"{score:.3f}" if kind == "numbers" else f"{100 * score:.1f} %") in text
    with pytest.raises(ValueError, match="fitted on"):
        write_report(tmp_path / "b.html", model, X[1:], y[1:])


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "sparse",
        "sparse plane",
        "precomputed",
        "callable",
        "list",
        "widths",
        "groups",
        "sigmoid",
        "targets",
        "zero weights",
        "landmarks",
        "dropped landmarks",
        "linear",
        "dual",
        "strings",
    ],
)
def test_every_kind_of_model_has_a_page(kind, tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = StandardScaler().fit_transform(X[:60])[:, :5], y[:60]
    keywords = {}
    fisher = fitonce.KernelFisherDiscriminant
    if kind == "sparse":
        model, X = fisher(gamma=0.1, alpha=0.1), sp.csr_array(np.where(X > 0, X, 0.0))
    elif kind == "sparse plane":
        model, X = fisher(gamma=0.1, alpha=0.1), sp.csr_array(X[:, :2])
    elif kind == "precomputed":
        model, X = fisher("precomputed", alpha=0.1), X @ X.T
    elif kind == "callable":
        model = fisher(lambda A, B: A @ B.T + 1.0, alpha=0.1)
    elif kind == "list":
        model, X, y = fisher(gamma=0.1, alpha=0.1), X.tolist(), y.tolist()
    elif kind == "widths":
        model = fitonce.LeastSquaresSVC(gamma=[0.1, 0.2, 0.1, 0.05, 0.1], alpha=0.1)
    elif kind == "groups":
        model, keywords = fisher(gamma=0.1), {"groups": np.arange(60) // 6}
    elif kind == "sigmoid":
        model = fitonce.LeastSquaresSVC(gamma=0.1, alpha=0.1, calibration="sigmoid")
    elif kind == "targets":
        model, y = fitonce.KernelRidge(gamma=0.1, alpha=0.1), X[:, :2] * 3.0
    elif kind == "zero weights":
        model, keywords = fisher(gamma=0.1, alpha=0.1), {"sample_weight": np.arange(60.0) % 3}
    elif kind == "landmarks":
        model = fisher(landmarks=15, random_state=0)
    elif kind == "dropped landmarks":
        model = fisher(landmarks=15, shared_landmarks="drop", random_state=0)
    elif kind == "linear":
        model = fisher("linear", alpha=0.1)
    elif kind == "dual":
        model = fitonce.LeastSquaresSVC(penalty="dual")
    else:
        model, y, X = (
            fisher(gamma=0.1, alpha=0.1),
            np.where(y, "ü", "ß").astype(object),
            pd.DataFrame(X, index=[f"r{i}" for i in range(60)]),
        )
    model.fit(X, y, **keywords)
    page = page_of(tmp_path, model, X, y)
    data, text = embedded(page), text_of(page)
    assert all(error is not None for error in data["errors"])
    no_gamma = kind in ("precomputed", "callable", "linear")
    assert len(data["factors"]) == (1 if no_gamma else 3)
    assert ('id="explorer-gamma"' in page) != no_gamma
    assert (data["gammas"][0] is None) == (no_gamma or kind == "widths")
    chosen = data["errors"][data["chosen"]["gamma"] * 5 + data["chosen"]["alpha"]]
    if kind not in ("targets", "zero weights", "dropped landmarks"):
        wrong = (model.held_out_decision_ > 0) != (np.asarray(y) == model.classes_[1])
        assert chosen == pytest.approx(np.mean(wrong), rel=1e-12)
    assert ("without its group or fold" in text) == (kind == "groups")
    assert ("calibration moved the threshold" in text) == (kind == "sigmoid")
    assert ("rows with zero weight are not shown" in text) == (kind == "zero weights")
    assert ("landmarks of the model stay" in text) == ("landmarks" in kind)
    if kind == "strings":
        assert data["names"][:2] == ["r0", "r1"] and data["classes"] == ["ß", "ü"]


@pytest.mark.usefixtures("undrawn")
def test_a_verification_is_quoted(wine, tmp_path):
    X, y, pipeline = wine
    verification = pipeline[-1].verify(n_refits=2)
    page = page_of(tmp_path, pipeline, X, y, verification=verification)
    assert "2 literal refits agree" in text_of(page)


@pytest.mark.usefixtures("undrawn")
def test_too_many_rows_have_a_reason(monkeypatch, tmp_path):
    monkeypatch.setattr("fitonce.report.explorer.NO_EXPLORER_ABOVE", 50)
    X, y = make_blobs(60, centers=2, random_state=0)
    page = page_of(tmp_path, fitonce.KernelFisherDiscriminant(gamma=0.1, alpha=1.0).fit(X, y), X, y)
    assert "no explorer for more than 50 rows" in text_of(page) and 'id="explorer-data"' not in page


@pytest.mark.usefixtures("undrawn")
def test_many_rows_have_the_chosen_gamma_only(monkeypatch, tmp_path):
    monkeypatch.setattr("fitonce.report.explorer.DECOMPOSE_UP_TO", 50)
    X, y = make_blobs(60, centers=2, random_state=0)
    model = fitonce.KernelFisherDiscriminant(gamma=0.1, alpha=1.0).fit(X, y)
    page = page_of(tmp_path, model, X, y)
    assert embedded(page)["factors"] == [1.0] and 'id="explorer-gamma"' not in page
    assert "at the chosen gamma; other values were not computed for 60 rows" in text_of(page)
    fitonce.save(model, tmp_path / "model.skops")
    loaded = fitonce.load(tmp_path / "model.skops")
    page = page_of(tmp_path, loaded, X, y)
    assert "would have to be decomposed again" in text_of(page)


@pytest.mark.usefixtures("undrawn")
def test_the_first_sentence_says_what_is_predicted_from_what(wine, tmp_path):
    X, y, pipeline = wine
    notes = ["left out: 'id' (an <b>identifier</b>)", "12 missing values: medians"]
    origin = Origin("wine <cellar>", "cultivar", notes)
    page = page_of(tmp_path, pipeline, X, y, origin=origin)
    text = text_of(page)
    sentence = (
        "Predicting cultivar ( barbera , barolo , grignolino ) from 13 columns of wine <cellar> ."
    )
    assert sentence in text and "<title>wine &lt;cellar&gt;</title>" in page
    assert "(an <b>identifier</b>)" in text and notes[1] in text
    assert "random sample" not in text
    hidden = write_report(tmp_path / "b.html", pipeline, X, y, origin=origin, include_data=False)
    assert "identifier" not in text_of(hidden.read_text("utf-8"))  # notes may quote values


@pytest.mark.usefixtures("undrawn")
def test_a_series_names_its_target(tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, y = X[:60], y[:60].rename("progression")
    X.iloc[3, 2] = X.iloc[7, 1] = np.nan
    model = make_pipeline(SimpleImputer(), fitonce.KernelRidge(gamma=1.0, alpha=0.1)).fit(X, y)
    text = text_of(page_of(tmp_path, model, X, y))
    assert f"Predicting progression ({y.min():g} to {y.max():g}) from 10 columns." in text
    assert "2 missing values (0.3 %), imputed by the pipeline" in text
    private = write_report(tmp_path / "b.html", model, X, y, include_data=False)
    assert "Predicting progression from 10 columns." in text_of(private.read_text("utf-8"))


@pytest.mark.usefixtures("undrawn")
def test_a_page_about_a_sample_says_so(tmp_path):
    X, y = make_blobs(60, centers=2, random_state=0)
    model = fitonce.KernelFisherDiscriminant(gamma=0.1, alpha=1.0).fit(X, y)
    origin = Origin("galaxies", n_rows=1_000_000)
    text = text_of(page_of(tmp_path, model, X, y, origin=origin))
    assert "This page is about a random sample of 60 of 1,000,000 rows." in text


def test_margin_and_prediction_are_of_one_model(assessed):
    """A row has a margin below zero exactly where its prediction is another class."""
    found, page = assessed
    rows = re.findall(r'<tr data-row="(\d+)" data-wrong="(\d)".*?>(.*?)</tr>', page, re.DOTALL)
    for row, wrong, cells in rows:
        margin = float(re.findall(r"<td.*?>(.*?)</td>", cells)[3])
        assert (margin < 0) == (wrong == "1")
        own = found.classes == found.y[int(row)]
        decision = found.decisions[int(row)]
        assert margin == pytest.approx(decision[own][0] - decision[~own].max(), rel=1e-3)


def test_a_regression_has_one_r2(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:50], y[:50]
    model = fitonce.KernelRidge(gamma=1.0, alpha=0.1).fit(X, y)
    found = assess(model, X, y, permutations=0)
    page = page_of(tmp_path, model, X, y, assessment=found)
    text = text_of(re.sub(r'<section id="columns">.*?</section>', "", page, flags=re.DOTALL))
    said = {float(value) for value in re.findall(r"R²(?:, held out| of| =)? (-?\d\.\d+)", text)}
    assert said == {round(r2_score(y, found.predictions), 3)}
    residuals = re.findall(r'<tr data-row="(\d+)".*?>(.*?)</tr>', page, re.DOTALL)
    for row, cells in residuals:
        observed, predicted, residual = map(float, re.findall(r"<td>(.*?)</td>", cells)[:3])
        assert observed == y[int(row)]
        assert predicted == pytest.approx(found.predictions[int(row)], rel=1e-3)
        assert residual == pytest.approx(observed - found.predictions[int(row)], rel=1e-3, abs=0.1)


def test_columns_that_matter(tmp_path):
    """Of many rows a sample; the page has the numbers of `column_importance`."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = X @ [2.0, 1.0, 0.0, 0.0] + 0.3 * rng.normal(size=150)
    model = fitonce.KernelRidge(kernel="linear", alpha=[0.1, 1.0]).fit(X, y)
    found = importance(Subject.of(model, X, y))
    expected = fitonce.column_importance(model, X, y)
    np.testing.assert_allclose(found.loss, expected.loss)
    text = text_of(page_of(tmp_path, model, X, y))
    for loss, low, high in zip(found.loss, found.low, found.high, strict=True):
        assert f"{loss:+.3f} [{low:+.3f}, {high:+.3f}]" in text


def test_no_label_of_an_axis_is_a_formula():
    """Labels are drawn as they are; those of short logarithmic axes would be mathematics."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    for alphas in ([0.03, 0.1, 0.3], [0.2, 0.8]):
        model = fitonce.KernelFisherDiscriminant(gamma=0.1, alpha=alphas).fit(X, y)
        figures = choice_figures(Subject.of(model, X, y), include_data=True)
        path = next(found.svg for found in figures if found.name == "path")
        assert "$" not in path and (">0.1<" in path or ">0.2<" in path)


def test_columns_that_cannot_be_left_out():
    X, y = make_blobs(40, centers=2, random_state=0)
    fisher = fitonce.KernelFisherDiscriminant
    assert (
        importance(Subject.of(fisher("precomputed", alpha=0.1).fit(X @ X.T, y), X @ X.T, y)) is None
    )
    sparse = sp.csr_array(X)
    assert importance(Subject.of(fisher(gamma=0.1, alpha=0.1).fit(sparse, y), sparse, y)) is None
    single = X[:, :1]
    assert importance(Subject.of(fisher(gamma=0.1, alpha=0.1).fit(single, y), single, y)) is None


def test_without_data_no_parameter_gives_rows_away(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    points = X[:6] + 0.123456

    def near(A, B, places, scale):
        return np.exp(-scale * ((A[:, None] - B) ** 2).sum(axis=2)) + 0.0 * places.sum()

    fisher = fitonce.KernelFisherDiscriminant
    for model in (
        fisher(landmarks=points, gamma=0.2, alpha=0.1),
        fisher(near, kernel_params={"places": points, "scale": 0.25}, alpha=0.1),
        fisher(near, kernel_params={"places": points, "scale": 0.25}, alpha=[0.1, 0.2]),
    ):
        model.fit(X, y)
        page = page_of(tmp_path, model, X, y, include_data=False)
        for value in [*points.reshape(-1), *X.reshape(-1)]:
            assert f"{value:.4g}" not in page and f"{value:.8f}"[:8] not in page
        assert "array of shape (6, 2)" in page
    assert "scale=0.25" in page and "alpha=[0.1, 0.2]" in page


def test_half_characters_in_labels_do_not_stop_it(tmp_path):
    X, y = make_blobs(45, centers=3, cluster_std=3.0, random_state=0)
    labels = np.array(["a\ud800b", "a\ud801b", "ok"])[y]
    labels[0] = "c\ud802"  # a class of one row, of which the assessment warns
    model = fitonce.KernelFisherDiscriminant(gamma=0.1, alpha=1.0).fit(X, labels)
    with pytest.warns(UserWarning, match="is missing from their training rows"):
        found = assess(model, X, labels, permutations=0)
    origin = Origin("d\ud800", "t\udfff", ["\ud800"])
    for include_data in (True, False):
        path = write_report(
            tmp_path / "a.html",
            model,
            X,
            labels,
            assessment=found,
            origin=origin,
            include_data=include_data,
        )
        assert "a?b" in path.read_text(encoding="utf-8")


def test_tiny_numbers_of_a_column_are_zero():
    column = Column("influence", "", np.array([1.0, 9.263e-10, 1234.5678, np.nan, -0.04567891]))
    shown = [column.cell(row, False)["text"] for row in range(5)]
    assert shown == ["1", "0", "1235", "–", "-0.04568"]
    small = Column("mass", "", np.array([9.263e-10, 2.5e-10]))
    assert small.cell(0, False)["text"] == "9.263e-10"


def test_without_jinja_the_extra_is_named(tmp_path):
    code = f"""
import sys
sys.modules["jinja2"] = None
import numpy as np, fitonce
from fitonce.report import write_report
X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
model = fitonce.KernelFisherDiscriminant("linear", alpha=1.0).fit(X, y)
try:
    write_report({str(tmp_path / "a.html")!r}, model, X, y)
except ImportError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True
    )
    assert "pip install 'fitonce[report]'" in result.stdout
    assert not list(Path(tmp_path).iterdir())
