"""`fitonce compare` beside the library's `compare`, and what it refuses."""

from __future__ import annotations

import json
import warnings

import pytest
from helpers_cli import run, says, table

import fitonce
from fitonce.cli.columns import design
from fitonce.cli.model import reference
from fitonce.cli.table import read_table

ASKED = ("compare", "good.csv", "-t", "label", "--drop", "price", "--folds", 3, "--repeats", 2)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The same by the library."""
    path = tmp_path_factory.mktemp("compared") / "good.csv"
    table().write_csv(path)
    parts = design(read_table(str(path)), "label", drop=["price"])
    models = {name: reference(name, parts, 0) for name in ("linear", "baseline", "forest")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fitonce.RefitWarning)
        return fitonce.compare(models, None, parts.X, parts.y, cv=3, repeats=2)


def test_it_tells_what_the_library_finds(expected, folder):
    pytest.importorskip("matplotlib")
    result = run(*ASKED, "--models", "linear, baseline,forest", "--out", "new/models.svg")
    assert result.exit_code == 0, result.output
    for score in expected.scores.values():
        assert str(score) in result.stdout
    for one in expected.differences:
        assert f"{one.first} - {one.second}" in result.stdout and one.estimate in result.stdout
    assert "refitted on every training set: baseline and forest" in result.stdout
    assert "[low, high]: 95 % interval" in result.stdout
    assert result.stdout.rstrip().splitlines()[-1].replace("\\", "/") == "picture: new/models.svg"
    with open("new/models.svg", encoding="utf-8") as file:
        assert "<svg" in file.read()


def test_as_json(expected, folder):
    answer = json.loads(run(*ASKED, "--models", "linear,baseline,forest", "--json").stdout)
    assert answer["command"] == "compare" and answer["files"] == {}
    assert answer["comparison"] == json.loads(json.dumps(expected.to_dict()))


def test_what_it_refuses(folder):
    says(run(*ASKED, "--models", "rbf"), "two or more different")
    says(run(*ASKED, "--models", "rbf,rbf"), "two or more different")
    says(run(*ASKED, "--models", "rbf,tree"), "forest")
    says(run(*ASKED, "--out", "models.csv"), ".png")
