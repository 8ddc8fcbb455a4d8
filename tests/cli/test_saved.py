"""A model file on other tables: external validation, intervals and sets of new rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from helpers_cli import FAST, N, pl, run, says, table
from sklearn.metrics import balanced_accuracy_score, log_loss, r2_score, roc_auc_score

from fitonce.io.saving import load


@pytest.fixture
def halves(folder):
    table()[:40].write_csv("first.csv")
    table()[40:].write_csv("second.csv")

    def fitted(target, *options):
        drop = {"label": "price", "price": "label"}[target]
        command = ("fit", "first.csv", "-t", target, "--drop", drop, "--no-page", *options)
        assert run(*command, *FAST, "--out", f"{target}.skops").exit_code == 0
        return f"{target}.skops"

    return fitted


def test_a_second_table_scores_the_model(halves):
    second, model = table()[40:], halves("label")
    found = json.loads(run("validate", model, "second.csv", "--json").stdout)["assessment"]
    scores = {name: score["value"] for name, score in found["intervals"].items()}
    estimator, y = load(model), second["label"].to_numpy()
    X = second.select("a", "b", "colour", "site")
    p = estimator.predict_proba(X)
    assert scores["accuracy"] == pytest.approx(np.mean(estimator.predict(X) == y))
    assert scores["balanced_accuracy"] == pytest.approx(
        balanced_accuracy_score(y, estimator.predict(X))
    )
    assert scores["roc_auc"] == pytest.approx(roc_auc_score(y, p[:, 1]))
    assert scores["log_loss"] == pytest.approx(log_loss(y, p))
    assert all(score["low"] < score["value"] for score in found["intervals"].values())

    numbers = json.loads(run("validate", halves("price"), "second.csv", "--json").stdout)
    predicted = load("price.skops").predict(X)
    assert numbers["assessment"]["intervals"]["r2"]["value"] == pytest.approx(
        r2_score(second["price"], predicted)
    )
    assert run("validate", model, "second.csv", "-q").stdout.startswith("0.")


def test_rows_that_the_model_has_seen_are_counted(halves):
    shown = " ".join(run("validate", halves("label"), "good.csv").stdout.split())
    assert f"40 of {N} rows equal a row that the model was fitted on" in shown
    assert "equal a row" not in run("validate label.skops second.csv").stdout


def test_a_second_table_must_have_the_classes_of_the_first(halves):
    model = halves("label")
    table().with_columns(label=pl.Series(["yes", "maybe"] * 30)).write_csv("other.csv")
    shown = " ".join(run("validate", model, "other.csv").stdout.split())
    assert f"does not know the classes ['maybe']: it predicts none of their {N // 2} rows" in shown
    says(run("validate", model, "other.csv", "--group", "nothing"), "no column 'nothing'")


def test_groups_are_units_of_the_intervals(halves):
    """Four copies of a row, in one group, say no more than the row."""
    model = halves("label", "--group", "site")
    pl.concat([table()[40:]] * 4).write_csv("copies.csv")

    def bounds(*options):
        answer = json.loads(run("validate", model, *options, "--json").stdout)
        return [answer["assessment"]["intervals"]["log_loss"][end] for end in ("low", "high")]

    single = bounds("second.csv", "--group", "id")
    np.testing.assert_allclose(bounds("copies.csv", "--group", "id"), single, rtol=1e-9)
    assert bounds("second.csv") != single  # the groups of the model


@pytest.mark.parametrize("options", [(), ("--weight", "w"), ("--group", "site")])
def test_intervals_need_no_table(halves, options):
    """They are those of the model that was fitted, before it was saved."""
    second = table()[40:]
    X = second.select("a", "b", "colour", *(["site"] if "--group" not in options else []))
    for target in ("price", "label"):
        model = halves(target, *options)
        estimator = load(model)
        result = run("predict", model, "second.csv", "--interval", "0.8")
        assert result.exit_code == 0, result.stderr
        rows = pl.read_csv(result.stdout.encode())
        first = table()[:40]
        given = {
            name: first[column].to_numpy()
            for name, column in (("sample_weight", "w"), ("groups", "site"))
            if f"--{name.split('_')[-1].rstrip('s')}" in options
        }
        known = estimator[-1]
        fresh = type(known)(alpha=1.0, gamma=known.gamma_)
        fresh.fit(estimator[:-1].transform(first.select(X.columns)), first[target], **given)
        Z = estimator[:-1].transform(X)
        if target == "price":
            found = rows.select("lower_80", "upper_80").to_numpy()
            np.testing.assert_allclose(found, fresh.predict_interval(Z, 0.8), rtol=1e-9)
        else:
            sets = fresh.predict_set(Z, 0.8, per_class=True)
            names = [" | ".join(np.array(["no", "yes"])[one]) for one in sets]
            assert rows["set_80"].fill_null("").to_list() == names


def test_intervals_of_models_without_their_rows_are_refused(halves):
    model = halves("price", "--landmarks", "10")
    says(run("predict", model, "second.csv", "--interval", "0.9"), "models with landmarks")
    model = halves("price", "--force")
    says(run("predict", model, "second.csv", "--interval", "9"), "between 0 and 1")
