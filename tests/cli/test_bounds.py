"""Intervals and sets beside the predictions of a model file."""

from __future__ import annotations

import numpy as np
import pytest
from helpers_cli import FAST, pl, run, says, table

from fitonce import load


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bounds")
    table().write_csv(folder / "good.csv")
    table(1).write_csv(folder / "new.csv")
    for target, other in (("price", "label"), ("label", "price")):
        (folder / target).mkdir()
        given = ("--target", target, "--drop", other, *FAST, "--no-page", "--out", folder / target)
        result = run("fit", folder / "good.csv", *given)
        assert result.exit_code == 0, result.output
    return folder


def file_of(place, name):
    return next((place / name).glob("*.skops"))


def predicted(place, name, *options):
    result = run("predict", file_of(place, name), place / "new.csv", "-q", *options)
    assert result.exit_code == 0, result.output
    return pl.read_csv(result.stdout.encode())


def test_intervals_are_those_of_the_model_fitted_again(place):
    options = ("--interval", "0.8", "--trained-on", place / "good.csv")
    found = predicted(place, "price", *options)
    assert found.columns == ["id", "prediction", "lower", "upper"]
    frame = table(1)
    inside = (found["lower"] <= frame["price"]) & (frame["price"] <= found["upper"])
    assert 0.6 < inside.mean() < 0.98
    estimator = load(file_of(place, "price"))
    kept = ["a", "b", "colour", "site"]  # "id" and "w" are left out
    estimator.fit(table().select(kept), table()["price"].to_numpy())
    rows = estimator[:-1].transform(frame.select(kept))
    expected = estimator[-1].predict_interval(rows, 0.8)
    np.testing.assert_allclose(found.select("lower", "upper").to_numpy(), expected, rtol=1e-6)


def test_labels_have_sets(place):
    options = ("--interval", "0.9", "--trained-on", place / "good.csv")
    found = predicted(place, "label", *options)
    assert found.columns[-2:] == ["in_set_no", "in_set_yes"]
    right = np.where(table(1)["label"] == "yes", found["in_set_yes"], found["in_set_no"])
    assert right.mean() > 0.8


def test_what_is_refused(place):
    model, rows = file_of(place, "price"), place / "new.csv"
    says(run("predict", model, rows, "--interval", "0.9"), "--trained-on")
    says(run("predict", model, rows, "--trained-on", rows), "--interval 0.9")
    options = ("--interval", "90", "--trained-on", place / "good.csv")
    says(run("predict", model, rows, *options), "between 0 and 1")
    options = ("--interval", "0.9", "--trained-on", rows)
    says(run("predict", model, rows, *options, "-q"), "gives a different model")
