"""--confound: numbers and categories, in fit, predict, evaluate, permute and the page."""

from __future__ import annotations

import json

import numpy as np
import pytest
from helpers_cli import FAST, pl, read_metadata, run, says, table

from fitonce.io.saving import load


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "table.csv"
    table().write_csv(path)
    return path


def test_fit_predict_and_page(csv, tmp_path):
    given = ("--confound", "b", "--confound", "site", "--categorical", "site")
    out = tmp_path / "model.skops"
    result = run("fit", csv, "-t", "label", *given, *FAST, "--drop", "price", "-o", out)
    assert result.exit_code == 0, result.output
    assert "confounds: b, site, regressed out of the features" in " ".join(result.output.split())
    known = read_metadata(out)
    assert known["confounds"] == [
        {"name": "b", "category": False},
        {"name": "site", "category": True},
    ]
    assert {column["name"] for column in known["columns"]} == {"a", "colour", "w"} - {"w"}
    page = (tmp_path / "model.html").read_text(encoding="utf-8")
    assert "b and site, regressed out of the features on every training set" in page
    predicted = run("predict", out, csv)
    assert predicted.exit_code == 0, predicted.output
    model, rows = load(out), table()
    confounds = pl.DataFrame({"b": rows["b"], "site": rows["site"].cast(pl.String)})
    X = model[:-1].transform(rows.select("a", "colour"))
    expected = model[-1].predict(X, confounds=confounds)
    found = pl.read_csv(predicted.stdout.encode())["prediction"].to_numpy()
    np.testing.assert_array_equal(found, expected)
    table().drop("site").write_csv(csv)
    says(run("predict", out, csv), "no column 'site'", "confound")


def test_evaluate_permute_and_what_is_refused(csv):
    given = ("-t", "price", "--confound", "colour", "--drop", "label")
    result = run("evaluate", csv, *given, *FAST, "--json", "--versus", "confounding=include")
    answer = json.loads(result.stdout)
    assert answer["assessment"]["confounds"].startswith("colour, regressed out")
    assert answer["versus"]["assessment"]["confounds"].startswith("colour, included")
    permuted = run("permute", csv, *given, "--permutations", "9", "--folds", "3", "--json")
    assert "within levels" in json.loads(permuted.stdout)["permutation"]["exchange"]
    says(run("evaluate", csv, *given, *FAST, "--confounding", "erase"), "remove")
    says(run("compare", csv, *given), "compare does not support --confound")
