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
        {"name": "b", "kind": "number", "source": "b"},
        {"name": "site", "kind": "category", "source": "site"},
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
    for words, *options in (("regressed out",), ("included", "--confounding", "include")):
        result = run("evaluate", csv, *given, *FAST, "--json", *options)
        answer = json.loads(result.stdout)
        assert answer["assessment"]["confounds"].startswith(f"colour, {words}")
    best = ("--effort", "best", "--folds", "2", "--permutations", "0", "--json")
    answer = json.loads(run("evaluate", csv, *given, *best).stdout)
    assert answer["assessment"]["confounds"].startswith("colour, regressed out")
    permuted = run("permute", csv, *given, "--permutations", "9", "--folds", "3", "--json")
    assert "within levels" in json.loads(permuted.stdout)["permutation"]["exchange"]
    says(run("evaluate", csv, *given, *FAST, "--confounding", "erase"), "remove")
    says(run("compare", csv, *given), "compare does not support --confound")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_dates_are_days(tmp_path, ending):
    """As numbers of days; text with the year first, or declared a category."""
    rows = table().with_row_index("day")
    day = 20_000 + 0.5 * rows["day"].cast(pl.Float64)
    when = (86_400_000 * day).cast(pl.Int64).cast(pl.Datetime("ms"))
    dated = rows.drop("day").with_columns(when.alias("day"))
    counted = rows.with_columns(day.alias("day"))
    given = ("-t", "label", "--drop", "price", "--confound", "day", *FAST)
    predicted = []
    for name, frame in (("dated", dated), ("counted", counted)):
        path = tmp_path / f"{name}.{ending}"
        frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
        out = tmp_path / f"{name}.skops"
        assert run("fit", path, *given, "--no-page", "-o", out).exit_code == 0
        answer = run("predict", out, path)
        predicted.append(
            pl.read_csv(answer.stdout.encode()).select(pl.selectors.float()).to_numpy()
        )
    np.testing.assert_allclose(*predicted, atol=1e-9)
    other = tmp_path / f"counted.{ending}"
    says(run("predict", tmp_path / "dated.skops", other), "must have dates")
    says(
        run("predict", tmp_path / "counted.skops", tmp_path / f"dated.{ending}"),
        "must have numbers",
    )


def test_dates_whose_order_is_unknown(tmp_path):
    path = tmp_path / "table.csv"
    days = [f"{1 + number % 2}.{1 + number % 3}.2024" for number in range(table().height)]
    table().with_columns(pl.Series("day", days)).write_csv(path)
    given = ("-t", "label", "--drop", "price", "--confound", "day", *FAST)
    says(run("fit", path, *given), "day", "2024-12-31", "--categorical")
    declared = run(
        "fit", path, *given, "--categorical", "day", "--no-page", "-o", tmp_path / "m.skops"
    )
    assert declared.exit_code == 0, declared.output
    assert read_metadata(tmp_path / "m.skops")["confounds"][0]["kind"] == "category"
