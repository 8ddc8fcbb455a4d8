"""What each command answers and writes, beside the library."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from helpers_cli import FAST, names_of, pl, read_metadata, run, says, table

import fitonce
import fitonce._public
from fitonce.cli.columns import design
from fitonce.cli.model import pipeline
from fitonce.cli.table import read_table


def test_fit_tells_what_the_library_finds_and_writes_the_model(folder):
    result = run(
        "fit good.csv -t label --drop price --folds 3 --permutations 19 --no-page", "--alpha", 1
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.rstrip().splitlines()[-1] == "model: good-fitonce.skops"
    parts = design(read_table("good.csv"), "label", drop=["price"])
    estimator, _ = pipeline(parts, alpha="1")
    answer = fitonce.assess(estimator, parts.X, parts.y, cv=3, permutations=0)
    assert str(answer.accuracy) in result.stdout and str(answer.baseline) in result.stdout
    for words in (
        "balanced accuracy",
        "AUC",
        "nested cross-validation, 3 folds, 5 times",
        "Confusion",
        "Calibration",
        "Chosen on all rows",
        "p = ",
    ):
        assert words in result.stdout
    assert "left out: 'id'" in result.stdout
    model = fitonce.load("good-fitonce.skops")
    fitted = estimator.fit(parts.X, parts.y)
    np.testing.assert_allclose(
        model.predict_proba(parts.X), fitted.predict_proba(parts.X), rtol=1e-10
    )


def test_preprocessing_is_refitted_inside_the_folds(folder):
    """An outlier far away in one fold must not move the other folds' scaling.

    With shared scaling the numbers would differ.
    """
    import sklearn.model_selection
    from sklearn.model_selection import StratifiedKFold

    frame = table().with_columns(
        pl.when(pl.col("id") == 7).then(1e4).otherwise(pl.col("a")).alias("a")
    )
    frame.write_csv("far.csv")
    parts = design(read_table("far.csv"), "label", drop=["price"])
    estimator, _ = pipeline(parts, gamma="scale", alpha="1")
    answer = fitonce.assess(estimator, parts.X, parts.y, cv=3, permutations=0)
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    refitted = sklearn.model_selection.cross_val_predict(
        estimator, parts.X, parts.y, cv=cv, method="predict_proba"
    )
    np.testing.assert_allclose(answer.probabilities, refitted, atol=1e-8)
    outside = estimator[0].fit_transform(parts.X)
    shared = sklearn.model_selection.cross_val_predict(
        estimator[-1], outside, parts.y, cv=cv, method="predict_proba"
    )
    assert np.max(np.abs(shared - refitted)) > 0.01


def test_json_is_one_object(folder):
    result = run("fit good.csv -t label --json --no-page", *FAST)
    answer = json.loads(result.stdout)
    assert answer["assessment"]["score"]["method"] == "nested cross-validation, 3 folds, 5 times"
    assert answer["files"] == {"model": "good-fitonce.skops"} and answer["task"] == "classification"
    assert [column["name"] for column in answer["columns"]] == [
        "a",
        "b",
        "colour",
        "price",
        "site",
    ]  # w is constant, id an identifier
    assert (
        read_metadata("good-fitonce.skops")["assessment"]["score"] == answer["assessment"]["score"]
    )


def test_quiet_prints_paths_only(folder):
    options = ["-t", "label", "-q", "--no-page", "--out", "new/results", *FAST]
    result = run("fit good.csv", *options)  # makes the folder
    assert result.stdout == f"{Path('new/results') / 'good-fitonce.skops'}\n"
    result = run("fit good.csv -t label -q --no-page --out mine.skops", *FAST)
    assert result.stdout == "mine.skops\n" and (folder / "mine.skops").exists()


def test_fit_writes_the_page(folder):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    result = run("fit good.csv -t label -q", *FAST)
    assert result.stdout.splitlines() == ["good-fitonce.skops", "good-fitonce.html"]
    page = (folder / "good-fitonce.html").read_text(encoding="utf-8")
    assert "good.csv" in page
    again = run(
        "report good-fitonce.skops good.csv --out again.html --permutations 0", "--folds", 3
    )
    assert again.stdout.strip().endswith("again.html") and (folder / "again.html").exists()


def test_the_same_seed_gives_the_same_model(folder):
    for name, seed in (("one", 3), ("two", 3)):
        run("fit good.csv -t label -q --no-page --out", f"{name}.skops", "--seed", seed, *FAST)
    one, two = (read_metadata(f"{name}.skops") for name in ("one", "two"))
    one["assessment"].pop("seconds"), two["assessment"].pop("seconds")
    assert one == two


def test_groups_and_weights(folder):
    result = run("fit good.csv -t label --group site --weight w --json --no-page", *FAST)
    answer = json.loads(result.stdout)["assessment"]
    assert answer["grouped"] and answer["weighted"]
    names = [column["name"] for column in json.loads(result.stdout)["columns"]]
    assert "site" not in names and "w" not in names


def test_regression(folder):
    result = run("fit good.csv -t price --drop label --no-page", *FAST, "--permutations", 19)
    assert (
        result.exit_code == 0
        and "R²" in result.stdout
        and "3 folds, 5 times, on log(1 - R²)" in result.stdout
    )
    assert "looks continuous" in result.stdout and "kernel ridge regression" in result.stdout


def test_report_keeps_the_groups_and_weights_of_the_fit(folder):
    """A page of a grouped model that divides groups between folds would show scores that are too
    good.
    """
    table().with_columns(w=pl.col("id") % 3 + 1).write_csv("grouped.csv")
    run("fit grouped.csv -t label --group site --weight w --no-page", *FAST)
    result = run("report grouped-fitonce.skops grouped.csv --folds 3 --permutations 0")
    assert result.exit_code == 0, result.output
    page = Path("grouped-fitonce.html").read_text()
    assert "keep groups together" in page
    table().drop("site").write_csv("without.csv")
    says(run("report grouped-fitonce.skops without.csv"), "no column 'site' (--group)")


def test_predict_says_which_categories_are_new(folder):
    run("fit good.csv -t label --drop price --no-page", *FAST)
    table().head(4).with_columns(colour=pl.Series(["red", "pink", "pink", None])).write_csv(
        "new.csv"
    )
    result = run("predict good-fitonce.skops new.csv")
    assert (
        "3 values of 'colour' were not in the training table ('pink', '(missing)')" in result.stderr
    )
    assert len(result.stdout.splitlines()) == 5 and "pink" not in result.stdout
    assert "were not in the training table" not in run("predict good-fitonce.skops good.csv").stderr


def test_repeats_say_whose_confusions_are_shown(folder):
    shown = run("evaluate good.csv -t label --repeats 2", *FAST).stdout
    assert "by column (first of 2 repeats)" in shown and re.search(
        r"expected error [\d.]+ \(first of 2 repeats\)", shown
    )
    assert "repeats" not in run("evaluate good.csv -t label", *FAST).stdout


def test_permute_is_the_librarys_test(folder):
    result = run("permute good.csv -t label --drop price --permutations 39 --folds 3", "--json")
    test = json.loads(result.stdout)["permutation"]
    assert test["mode"] == "within-folds" and test["n_permutations"] == 39 == len(
        test["null"]["accuracy"]
    )
    reached = sum(score >= test["scores"]["accuracy"] - 1e-10 for score in test["null"]["accuracy"])
    assert test["pvalue"] == pytest.approx((1 + reached) / 40)
    assert (
        "with permuted labels 0."
        in run("permute good.csv -t label --permutations 19 --folds 3").stdout
    )
    says_invalid = run("permute good.csv -t label --mode free --permutations 5")
    assert says_invalid.exit_code == 1 and "not valid" in says_invalid.stderr


def test_predictions_are_the_models(folder):
    run("fit good.csv -t label -q --no-page", *FAST)
    frame = table(seed=1)
    frame.select(reversed(frame.columns)).write_parquet("new.parquet")
    result = run("predict good-fitonce.skops new.parquet --keep id --out labels.parquet")
    assert result.exit_code == 0 and "`fitonce validate` scores the model" in result.stderr
    found = pl.read_parquet("labels.parquet")
    model = fitonce.load("good-fitonce.skops")
    X = frame.select(names_of("good-fitonce.skops")).with_columns(pl.col(pl.Int64).cast(pl.Float64))
    assert found["prediction"].to_list() == model.predict(X).tolist()
    np.testing.assert_allclose(found["probability_yes"], model.predict_proba(X)[:, 1], rtol=1e-12)
    text = run("predict good-fitonce.skops new.parquet -q").stdout
    own = ["prediction", "probability_no", "probability_yes"]
    assert pl.read_csv(io.StringIO(text)).columns == ["id", *own]  # left out as an identifier
    kept = run("predict good-fitonce.skops new.parquet -q --keep colour").stdout
    assert pl.read_csv(io.StringIO(kept)).columns == ["colour", *own]
    says(run("predict good-fitonce.skops new.parquet --keep nothing"), "'nothing'")


def test_export_agrees_in_onnxruntime(folder):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    run("fit good.csv -t label -q --no-page --drop colour", *FAST)
    result = run("export good-fitonce.skops --rows good.csv")
    assert result.exit_code == 0 and result.stdout.splitlines()[-1] == "graph: good-fitonce.onnx"
    model = fitonce.load("good-fitonce.skops")
    X = table().select(names_of("good-fitonce.skops")).cast(pl.Float64)
    session = runtime.InferenceSession("good-fitonce.onnx")
    outputs = dict(
        zip(
            [output.name for output in session.get_outputs()],
            session.run(None, {"X": X.to_numpy().astype(np.float32)}),
            strict=True,
        )
    )
    np.testing.assert_allclose(outputs["probabilities"], model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize(("target", "drop"), [("label", "price"), ("price", "label")])
def test_best_effort_fits_a_committee_and_predicts_with_it(folder, target, drop):
    options = ("--drop", drop, "--folds", 2, "--permutations", 0, "--effort", "best")
    result = run("fit good.csv -t", target, *options)
    assert result.exit_code == 0, result.output
    assert "Committee: " in result.stdout and "no report" not in result.output
    assert ", random forest 0." in result.stdout  # only where it was asked for the best
    model = fitonce.load("good-fitonce.skops")
    assert read_metadata("good-fitonce.skops")["members"] == model[-1].describe()
    parts = design(read_table("good.csv"), target, drop=[drop])
    predicted = run("predict good-fitonce.skops good.csv")
    found = pl.read_csv(io.StringIO(predicted.stdout))["prediction"]
    expected = model.predict(parts.X)
    assert [str(label) for label in found] == [str(label) for label in expected.tolist()]


def test_best_effort_leaves_no_choice_to_others(folder):
    result = run("fit good.csv -t label --effort best --kernel linear")
    says(result, "--effort best", "--kernel")
