"""The page in a real browser, offline: it shows what the library computes; people can use it."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import (
    load_iris,
    load_wine,
    make_blobs,
    make_classification,
    make_moons,
    make_regression,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitonce
from fitonce.report import write_report

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::fitonce.NumericalWarning")]

HOSTILE = [
    "<script>alert(1)</script>",
    "\"quoted' & <b>bold",
    "שלום \u202eabc",
    "🦄 </script><img src=x onerror=alert(2)>",
]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=arguments
        )
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page with everything that it complained about or asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def look_up(self, gamma: int, alpha: int) -> dict[str, Any]:
        """Everything at one stop, as the page reads it; null for what is not a number."""
        code = """([gamma, alpha]) => {
          const found = document.getElementById("explorer").fitonce.lookUp(gamma, alpha);
          return Object.fromEntries(Object.entries(found).map(([name, value]) =>
            [name, value?.map ? Array.from(value, (x) => Number.isNaN(x) ? null : x) : value]));
        }"""
        return self.page.evaluate(code, [gamma, alpha])

    @property
    def data(self) -> dict[str, Any]:
        return self.page.evaluate(
            "JSON.parse(document.getElementById('explorer-data').textContent)"
        )

    @property
    def error(self) -> float:
        """The figure of the page, unrounded; NaN where there is none."""
        text = self.page.evaluate("document.getElementById('explorer').dataset.error")
        return float("nan") if text == "null" else float(text)

    def until(self, condition: str, seconds: float = 60.0) -> None:
        """Wait for a condition.

        Playwright's own waiting evaluates strings in the page, which its security policy forbids.
        """
        end = time.monotonic() + seconds
        while not self.page.evaluate(f"() => Boolean({condition})"):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(5)

    def move(self, slider: str, value: int) -> float:
        self.page.evaluate(
            "([id, v]) => { const s = document.getElementById(id); s.value = v; "
            "s.dispatchEvent(new Event('input', {bubbles: true})); }",
            [slider, value],
        )
        return self.error


@pytest.fixture
def show(browser, tmp_path):
    contexts = []

    def opened(
        model: Any, X: Any, y: Any, *, phone: bool = False, dark: bool = False, **keywords: Any
    ) -> Opened:
        path = write_report(tmp_path / f"page{len(contexts)}.html", model, X, y, **keywords)
        viewport = {"width": 390, "height": 844} if phone else {"width": 1200, "height": 900}
        context = browser.new_context(
            offline=True, viewport=viewport, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        result = Opened(context.new_page())
        result.page.on("console", lambda message: result.complaints.append(message.text))
        result.page.on("pageerror", lambda error: result.complaints.append(str(error)))
        result.page.on("dialog", lambda dialog: result.complaints.append("a dialog"))
        result.page.on("request", lambda request: result.requests.append(request.url))
        result.page.goto(path.as_uri())
        result.until(
            "!document.getElementById('explorer') || "
            "document.getElementById('explorer').dataset.ready === '1'"
        )
        return result

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def bare(monkeypatch):
    """Pages without plots and with three values of gamma: what is tested is the explorer."""
    monkeypatch.setattr("fitonce.report.page.performance_figures", lambda *_: [])
    monkeypatch.setattr("fitonce.report.page.choice_figures", lambda *_: [])
    monkeypatch.setattr("fitonce.report.explorer.LADDER", ((1, 5),))


def wine() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X)[::2], y[::2]


def problems() -> dict[str, Any]:
    """(estimator, X, y, sample_weight) of every kind."""
    X, y = wine()
    moons = make_moons(80, noise=0.3, random_state=0)
    blobs = make_blobs(90, centers=4, cluster_std=2.0, random_state=1)
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    regression = make_regression(60, 5, noise=5.0, random_state=0)
    two_targets = make_regression(50, 4, n_targets=2, noise=5.0, random_state=0)
    many = make_blobs(120, n_features=4, centers=12, cluster_std=2.5, random_state=0)
    single = np.r_[y, 3]
    fisher, svc, ridge = (
        fitonce.KernelFisherDiscriminant,
        fitonce.LeastSquaresSVC,
        fitonce.KernelRidge,
    )
    return {
        "fisher-plane": (fisher(), *moons, None),
        "fisher-plane-classes": (fisher(penalty="dual"), *blobs, None),
        "fisher-axes": (fisher(), X, y, None),
        "fisher-dual": (fisher(penalty="dual"), X, y, None),
        "fisher-weights": (fisher(), X, y, weights),
        "fisher-dual-weights-priors": (
            fisher(penalty="dual", priors=[0.2, 0.3, 0.5]),
            X,
            y,
            weights,
        ),
        "fisher-priors": (fisher(priors=[0.1, 0.1, 0.8]), X, y, None),
        "fisher-linear": (fisher("linear"), X, y, None),
        "fisher-many-classes": (fisher(), *many, None),
        "fisher-many-classes-weights": (fisher(), *many, 0.5 + np.arange(120.0) % 3),
        "fisher-single-member": (fisher(), np.vstack([X, X[:1] + 3.0]), single, None),
        "fisher-landmarks": (fisher(landmarks=20, random_state=0), X, y, None),
        "fisher-landmarks-plane": (fisher(landmarks=25, random_state=0), *moons, None),
        "fisher-landmarks-dual": (
            fisher(landmarks=20, penalty="dual", random_state=0),
            *blobs,
            None,
        ),
        "fisher-landmarks-drop": (
            fisher(landmarks=20, shared_landmarks="drop", random_state=0),
            X,
            y,
            None,
        ),
        "svc": (svc(), *moons, None),
        "svc-classes": (svc(), X, y, None),
        "svc-no-intercept": (svc(fit_intercept=False), X, y, None),
        "svc-penalized": (svc(fit_intercept="penalized"), *moons, None),
        "svc-balanced-dual": (svc(penalty="dual", class_weight="balanced"), *moons, None),
        "svc-indefinite": (svc("sigmoid", coef0=-1.0), X, y, None),
        "svc-laplacian": (svc("laplacian"), *moons, None),
        "svc-poly": (svc("poly", degree=2), *moons, None),
        "ridge": (ridge(), *regression, None),
        "ridge-dual-targets": (ridge(penalty="dual"), *two_targets, None),
        "ridge-weights": (ridge(), *regression, 1.0 + np.arange(60.0) % 3),
        "repeated-rows": (
            fisher(),
            np.repeat(moons[0][:30], 2, axis=0),
            np.repeat(moons[1][:30], 2),
            None,
        ),
    }


def reference(
    model: Any, X: np.ndarray, y: np.ndarray, weights: Any, gamma: float | None, alpha: float
) -> Any:
    """The library's own fit at that stop; landmarks stay where they are."""
    fixed = {"alpha": alpha, "penalty": model.penalty_, "refine": False}
    fixed |= {} if gamma is None else {"gamma": gamma}
    if model.landmarks is not None:
        fixed |= {"landmarks": model.landmarks_, "shared_landmarks": True}
    return clone(model).set_params(**fixed).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("name", problems())
def test_the_page_shows_what_the_library_computes(name, bare, show):
    model, X, y, weights = problems()[name]
    model.fit(X, y, sample_weight=weights)
    opened = show(model, X, y, sample_weight=weights)
    data, active = opened.data, np.arange(len(y)) if weights is None else np.flatnonzero(weights)
    assert data["rows"] == active.tolist()
    for gamma in {0, data["chosen"]["gamma"], len(data["factors"]) - 1}:
        for alpha in {0, data["chosen"]["alpha"], len(data["alphas"]) - 1}:
            found = opened.look_up(gamma, alpha)
            if opened_gap(found):
                continue
            exact = reference(model, X, y, weights, data["gammas"][gamma], data["alphas"][alpha])
            assert found["error"] == pytest.approx(
                error_figure(exact, y, weights), abs=1e-12, rel=1e-9
            )
            if data["gammas"][0] is not None and alpha == data["chosen"]["alpha"]:
                assert opened.move("explorer-gamma", gamma) == found["error"]
            held_out = outputs(exact)[active]
            if model.__class__ is fitonce.KernelRidge:
                value = held_out.reshape(len(active), -1)[:, 0]
            else:
                codes = np.searchsorted(exact.classes_, y[active])
                predicted = codes_of(held_out)
                assert found["predicted"] == predicted.tolist()
                assert found["wrong"] == (predicted != codes).tolist()
                value = own_margin(held_out, codes)
            shown = np.array(found["value"], dtype=float)
            known = np.isfinite(value)
            np.testing.assert_array_equal(np.isfinite(shown), known)
            step = np.ptp(value[known]) / 65534
            np.testing.assert_allclose(shown[known], value[known], rtol=0, atol=0.6 * step)
    assert not opened.complaints


def opened_gap(found: dict[str, Any]) -> bool:
    """Stops where alpha is too small for the kernel have nothing."""
    return found["error"] is None and all(value is None for value in found["value"])


def outputs(model: Any) -> np.ndarray:
    if isinstance(model, fitonce.KernelRidge):
        return np.asarray(model.held_out_prediction_)
    return np.asarray(model.held_out_decision_)


def codes_of(decision: np.ndarray) -> np.ndarray:
    return (decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)


def own_margin(decision: np.ndarray, codes: np.ndarray) -> np.ndarray:
    scores = np.column_stack([-decision, decision]) / 2 if decision.ndim == 1 else decision
    own = np.eye(scores.shape[1], dtype=bool)[codes]
    return scores[own] - np.where(own, -np.inf, scores).max(axis=1)


def error_figure(model: Any, y: np.ndarray, weights: Any) -> float:
    """The share of active rows misclassified, or the root of the mean squared residual."""
    held_out, w = outputs(model), np.ones(len(y)) if weights is None else weights
    if isinstance(model, fitonce.KernelRidge):
        squared = ((y - held_out) ** 2).reshape(len(y), -1).mean(axis=1)
        return float(np.sqrt(np.average(squared, weights=w)))
    return float(np.average(model.classes_[codes_of(held_out)] != y, weights=w))


@pytest.mark.parametrize("name", ["fisher-plane", "fisher-weights", "ridge"])
def test_the_page_agrees_with_literal_refits(name, bare, show):
    """Without the library's closed forms: the row is deleted and the model fitted again."""
    model, X, y, weights = problems()[name]
    model.fit(X, y, sample_weight=weights)
    opened = show(model, X, y)
    data = opened.data
    gamma, alpha = data["chosen"]["gamma"], data["chosen"]["alpha"] + 1
    found = opened.look_up(gamma, alpha)
    active = np.array(data["rows"])
    for position in range(0, len(active), 17):
        rest, row = np.delete(active, position), active[position]
        refit = clone(model).set_params(gamma=model.gamma_, alpha=data["alphas"][alpha])
        refit.fit(X[rest], y[rest], sample_weight=None if weights is None else weights[rest])
        if name == "ridge":
            value = refit.predict(X[[row]])[0]
        else:
            value = own_margin(refit.decision_function(X[[row]]), np.array([y[row]]))[0]
            assert model.classes_[int(found["predicted"][position])] == refit.predict(X[[row]])[0]
        spread = np.ptp(np.array(found["value"], dtype=float))
        assert found["value"][position] == pytest.approx(value, abs=2e-5 * spread)


@pytest.mark.parametrize(
    "name",
    [
        "fisher-plane",
        "fisher-plane-classes",
        "fisher-landmarks-plane",
        "fisher-landmarks-dual",
        "svc",
        "svc-penalized",
        "svc-balanced-dual",
        "svc-laplacian",
        "svc-poly",
    ],
)
def test_the_boundary_is_the_models(name, bare, show):
    """On both sides of every piece of line the model predicts different classes."""
    model, X, y, weights = problems()[name]
    model.fit(X, y, sample_weight=weights)
    opened = show(model, X, y)
    data = opened.data
    for alpha in (data["chosen"]["alpha"], data["chosen"]["alpha"] + 2):
        opened.move("explorer-alpha", alpha)
        pieces = np.array(
            opened.page.evaluate("document.getElementById('explorer').fitonce.boundaryLines(40)")
        )
        here = model.at(data["alphas"][alpha])
        low, high = np.array(data["box"])
        ends = low + pieces.reshape(-1, 2) * (high - low) / 39
        found = opened.look_up(data["chosen"]["gamma"], alpha)
        x, y_ = np.linspace(low, high, 40).T
        grid = np.column_stack([np.tile(x, 40), np.repeat(y_, 40)])
        expected = np.searchsorted(here.classes_, here.predict(grid))
        assert found["region"] == expected.tolist()
        assert len(ends) > 20
        cell = (high - low) / 39
        around = [
            ends + cell * 0.25 * np.array(step) for step in ((1, 0), (-1, 0), (0, 1), (0, -1))
        ]
        labels = np.stack([here.predict(points) for points in around])
        assert np.mean(np.any(labels != labels[0], axis=0)) > 0.97


def test_the_projection_is_the_models(bare, show):
    from fitonce.plotting import ProjectionDisplay

    model, X, y, _ = problems()["fisher-axes"]
    model.fit(X, y)
    expected = ProjectionDisplay.from_estimator(model).values
    opened = show(model, X, y)
    chosen = opened.data["chosen"]
    found = opened.look_up(chosen["gamma"], chosen["alpha"])
    np.testing.assert_allclose(
        np.column_stack([found["x"], found["y"]]), expected, atol=2e-5 * np.ptp(expected)
    )


def test_moving_the_sliders_changes_the_figure(bare, show):
    X, y = make_moons(80, noise=0.35, random_state=0)
    model = fitonce.KernelFisherDiscriminant().fit(X, y)
    opened = show(model, X, y)
    data, seen = opened.data, set()
    for stop, alpha in enumerate(data["alphas"]):
        error = opened.move("explorer-alpha", stop)
        exact = model.at(alpha)
        wrong = (exact.held_out_decision_ > 0) != y
        assert error == np.mean(wrong)
        shown = float(opened.page.inner_text("#explorer-error").removesuffix(" %"))
        assert shown == pytest.approx(100 * error, abs=0.0501)
        detail = opened.page.inner_text("#explorer-detail")
        assert f"{wrong.sum()} of 80 rows misclassified" in detail
        assert f"effective degrees of freedom {exact.effective_dof_:.1f}" in detail
        changed = (exact.held_out_decision_ > 0) != (model.held_out_decision_ > 0)
        if stop != data["chosen"]["alpha"]:
            assert f"{changed.sum()} predictions differ" in detail
        seen.add(error)
    assert len(seen) > 2
    error = opened.move("explorer-gamma", len(data["gammas"]) - 1)
    exact = fitonce.KernelFisherDiscriminant(gamma=data["gammas"][-1], alpha=alpha).fit(X, y)
    assert error == np.mean((exact.held_out_decision_ > 0) != y)
    opened.page.click("#explorer-reset")
    assert "this is the chosen model" in opened.page.inner_text("#explorer-detail")
    assert opened.error == np.mean((model.held_out_decision_ > 0) != y)
    opened.page.click("#explorer-curve", position={"x": 60, "y": 80})
    assert opened.page.input_value("#explorer-alpha") == "0"
    assert not opened.complaints


def test_a_stop_without_a_model_says_so(show):
    X, y = wine()
    y = np.minimum(y, 1)
    model = fitonce.LeastSquaresSVC("sigmoid", gamma=0.05, coef0=-1.0, alpha=1.0).fit(X, y)
    opened = show(model, X, y)
    opened.page.evaluate("document.getElementById('explorer-alpha').value = 0")
    opened.move("explorer-gamma", opened.data["chosen"]["gamma"])
    assert opened.page.inner_text("#explorer-error") == "–"
    assert "alpha is too small" in opened.page.inner_text("#explorer-detail")
    opened.page.focus("#explorer-view")
    opened.page.keyboard.press("ArrowRight")
    assert "margin –" in opened.page.inner_text("#explorer-row")
    assert not opened.complaints


def test_nothing_is_asked_of_the_network(show):
    model = fitonce.KernelFisherDiscriminant().fit(*wine())
    opened = show(model, *wine())
    assert not opened.complaints
    assert len(opened.requests) == 1 and opened.requests[0].startswith("file:")
    assert (
        opened.page.evaluate(
            "document.querySelectorAll('[src], link, iframe, object, embed').length"
        )
        == 0
    )


def test_keyboard(bare, show):
    X, y = wine()
    model = fitonce.KernelFisherDiscriminant(gamma=0.5, alpha=1.0).fit(X, y)
    opened = show(model, X, y)
    page = opened.page
    page.focus("#explorer-alpha")
    before = page.inner_text("#explorer-alpha-value")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#explorer-alpha-value") != before
    assert page.get_attribute("#explorer-alpha", "aria-valuetext").startswith("alpha ")
    page.focus("#explorer-view")
    page.keyboard.press("ArrowRight")
    worst = page.inner_text("#explorer-row")
    exact = model.at(opened.data["alphas"][opened.data["chosen"]["alpha"] + 1])
    margins = own_margin(exact.held_out_decision_, y)
    assert worst.startswith(f"row {np.argmin(margins)} ") and "predicted" in worst
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#explorer-row") != worst
    page.keyboard.press("Enter")
    opened.until(
        "document.activeElement.tagName === 'TR' && "
        "document.activeElement.classList.contains('selected')"
    )
    page.focus("#explorer-view")
    page.keyboard.press("Escape")
    assert not page.query_selector("tr.selected")
    page.focus("#rows thead th:nth-child(5) button")
    page.keyboard.press("Enter")
    assert page.get_attribute("#rows thead th:nth-child(5)", "aria-sort") == "ascending"
    values = [
        float(v)
        for v in page.eval_on_selector_all(
            "#rows tbody tr td:nth-child(5)", "cells => cells.map(c => c.textContent)"
        )
    ]
    assert values == sorted(values)
    assert not opened.complaints


def test_points_and_table_are_linked(bare, show):
    X, y = make_moons(60, noise=0.3, random_state=0)
    model = fitonce.KernelFisherDiscriminant().fit(X, y)
    opened = show(model, X, y, row_names=[f"sample {i}" for i in range(60)])
    page = opened.page
    place = page.evaluate("() => document.getElementById('explorer').fitonce.screen()[7]")
    page.locator("#explorer-view").scroll_into_view_if_needed()
    box = page.locator("#explorer-view").bounding_box()
    page.mouse.move(box["x"] + place[0], box["y"] + place[1])
    opened.until("document.querySelector('tr.selected')")
    assert page.inner_text("#explorer-row").startswith("sample ")
    assert page.is_visible("#explorer-tip")
    page.click('#rows tr[data-row="30"]')
    assert page.inner_text("#explorer-row").startswith("sample 30 ")
    page.check("#only-wrong")
    wrong = page.eval_on_selector_all(
        "#rows tbody tr:not([hidden])", "rows => rows.every(r => r.dataset.wrong === '1')"
    )
    assert wrong


def test_hostile_names_are_text(show):
    rng = np.random.default_rng(0)
    X, y = (
        rng.normal(size=(60, 4)) + np.arange(60)[:, None] % 4,
        np.array(HOSTILE)[np.arange(60) % 4],
    )
    model = fitonce.KernelFisherDiscriminant(gamma=0.2, alpha=1.0).fit(X, y)
    opened = show(
        model,
        X,
        y,
        feature_names=HOSTILE,
        row_names=[f"{HOSTILE[i % 4]} {i}" for i in range(60)],
        title=HOSTILE[3] + HOSTILE[0],
    )
    page = opened.page
    page.hover("#explorer-view")
    page.focus("#explorer-view")
    page.keyboard.press("ArrowRight")
    assert not opened.complaints
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    assert page.evaluate("document.querySelectorAll('img, b').length") == 0
    assert page.title() == HOSTILE[3] + HOSTILE[0]
    assert page.inner_text("#rows thead").count("<script>alert(1)</script>") == 1


def test_fifty_classes_and_two_rows(bare, show):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(50), 3)
    X = rng.normal(size=(150, 4)) + 3 * rng.normal(size=(50, 4))[labels]
    model = fitonce.KernelFisherDiscriminant(gamma=0.05, alpha=0.5).fit(X, labels)
    opened = show(model, X, labels)
    assert not opened.complaints and not opened.page.query_selector("table.confusion thead td")
    two = fitonce.LeastSquaresSVC(gamma=1.0, alpha=0.5, calibration=None).fit(
        [[0.0, 1.0], [1.0, 0.0]], ["a", "b"]
    )
    opened = show(two, np.array([[0.0, 1.0], [1.0, 0.0]]), ["a", "b"])
    assert not opened.complaints and not opened.page.query_selector("#explorer, table.confusion")
    text = opened.page.inner_text("main")
    assert "its class would be missing" in text and "no row has a held-out prediction" in text
    assert "of 0 rows" not in text and "Every row was predicted" not in text


def test_without_data_there_are_none(show):
    X, y = load_iris(return_X_y=True)
    model = fitonce.KernelFisherDiscriminant().fit(X, y)
    opened = show(model, X, y, include_data=False)
    data = opened.data
    assert set(data) == {"kind", "alphas", "gammas", "factors", "chosen", "errors"}
    assert not opened.page.query_selector("#rows") and not opened.page.query_selector(
        "#explorer-view"
    )
    stop = len(data["alphas"]) - 5
    error = opened.move("explorer-alpha", stop)
    exact = model.at(data["alphas"][stop])
    assert error == pytest.approx(
        np.mean(np.argmax(exact.held_out_decision_, axis=1) != y), abs=1e-12
    )
    assert not opened.complaints


@pytest.mark.parametrize(
    ("phone", "dark"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_it_fits_the_screen_and_can_be_read(phone, dark, show):
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), fitonce.KernelFisherDiscriminant()).fit(X, y)
    opened = show(model, X, y, phone=phone, dark=dark)
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for selector in ("p.lead", ".soft", "figcaption", "#rows td", ".cards .more", "a", ".wrong"):
        assert contrast(page, selector) >= 4.5, selector
    unnamed = page.evaluate(
        "[...document.querySelectorAll('[role=img], canvas, input, [role=region]')]"
        ".filter(e => !e.getAttribute('aria-label') && !e.labels?.length).length"
    )
    assert unnamed == 0
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert not opened.complaints


def contrast(page: Any, selector: str) -> float:
    """The WCAG contrast of an element's text with the page."""
    code = """selector => {
      const of = (e, name) => getComputedStyle(e)[name].match(/[\\d.]+/g).map(Number);
      const text = document.querySelector(selector);
      return [of(text, "color"), of(document.body, "backgroundColor")];
    }"""
    luminance = []
    for colour in page.evaluate(code, selector):
        linear = [v / 3294.6 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in colour[:3]]
        luminance.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(luminance) + 0.05) / (min(luminance) + 0.05)


def test_printing_shows_everything(show):
    model = fitonce.KernelFisherDiscriminant().fit(*wine())
    opened = show(model, *wine(), dark=True)
    opened.page.emulate_media(media="print")
    assert (
        opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert not opened.page.is_visible("#explorer-reset")
    opened.page.set_viewport_size({"width": 720, "height": 1000})  # about a sheet of A4
    width = "document.getElementById('rows').getBoundingClientRect().width"
    assert opened.page.evaluate(f"{width} <= document.querySelector('main').clientWidth")
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert opened.page.pdf()[:4] == b"%PDF"


def test_numbers_that_hardly_differ(bare, show):
    """Spans of a few last digits, and of none: neither marks without end nor an error."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), 1e9 + np.spacing(1e9) * rng.integers(0, 3, 40)
    opened = show(fitonce.KernelRidge(gamma=1.0, alpha=1.0).fit(X, y), X, y)
    ticks = "([low, high]) => document.getElementById('explorer').fitonce.ticks([low, high], 6)"
    for low in (1.0, -1e9, 1e300, 0.0):
        for ulps in (0, 1, 2, 5):
            high = low + ulps * np.spacing(low)
            marks = opened.page.evaluate(ticks, [float(low), float(high)])
            assert len(marks) == len(set(marks)) < 20
    assert opened.page.evaluate(ticks, [0.0, 1.0]) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    near = 1.0 + np.spacing(1.0) * np.round(X)
    opened = show(fitonce.LeastSquaresSVC(gamma=1.0, alpha=1.0).fit(near, y > 1e9), near, y > 1e9)
    assert not opened.complaints


def test_cards_stand_in_line(bare, show):
    opened = show(fitonce.KernelFisherDiscriminant().fit(*wine()), *wine())
    tops = opened.page.evaluate(
        "[...document.querySelectorAll('.cards .figure')].map(e => e.getBoundingClientRect().top)"
    )
    assert len(tops) > 1 and len(set(tops)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [2, 12])
def test_a_move_takes_less_than_100_ms_at_a_thousand_rows(n_features, bare, show):
    """The quickest of several moves: other work on the machine only slows them down."""
    X, y = make_classification(1000, n_features, n_informative=2, n_redundant=0, random_state=0)
    opened = show(fitonce.KernelFisherDiscriminant().fit(X, y), X, y)
    code = """stop => { const slider = document.getElementById("explorer-alpha");
              const start = performance.now();
              slider.value = stop; slider.dispatchEvent(new Event("input"));
              return performance.now() - start; }"""
    times = [opened.page.evaluate(code, stop) for stop in range(10)]
    assert min(times) < 100
    assert not opened.complaints
