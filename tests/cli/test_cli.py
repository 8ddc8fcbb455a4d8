"""The command line.

Every command on good and bad files, exit codes, plain output, interruptions and full disks.
"""

from __future__ import annotations

import errno
import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pl = pytest.importorskip("polars")
pytest.importorskip("typer")
pytest.importorskip("skops")

from typer.testing import CliRunner  # noqa: E402

import fitonce  # noqa: E402
import fitonce._public  # noqa: E402
from fitonce.assessment.words import spread  # noqa: E402
from fitonce.cli import values as column_values  # noqa: E402
from fitonce.cli.app import UNTESTED, app  # noqa: E402
from fitonce.cli.columns import design  # noqa: E402
from fitonce.cli.errors import UserError  # noqa: E402
from fitonce.cli.models import pipeline  # noqa: E402
from fitonce.cli.options import Check, Request, Settings, unfolded  # noqa: E402
from fitonce.cli.screen import Bars  # noqa: E402
from fitonce.cli.tables import read_table  # noqa: E402
from fitonce.cli.values import ABSENT, as_number, kind_of  # noqa: E402

N = 60
FAST = ("--folds", "3", "--permutations", "0", "--alpha", "1", "--gamma", "scale")


def table(seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, N))
    colour = rng.choice(["red", "green", "blue"], N)
    label = np.where(a + b * (colour == "red") + 0.3 * rng.normal(size=N) > 0, "yes", "no")
    price = 2 * a + 0.3 * rng.normal(size=N)
    return pl.DataFrame(
        {
            "id": range(1, N + 1),
            "a": a,
            "b": b,
            "colour": colour,
            "label": label,
            "price": price,
            "site": np.arange(N) % 6,
            "w": np.ones(N),
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().write_csv("good.csv")
    return tmp_path


def run(*args, input=None):
    result = CliRunner().invoke(app, [str(arg) for arg in args], input=input)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def names_of(model):
    return [column["name"] for column in fitonce.saving.read_metadata(model)["columns"]]


def says(result, *words, code=1):
    """One sentence on standard error, and the exit code."""
    assert result.exit_code == code, result.output
    assert len(result.stderr.strip().splitlines()) == 1 and result.stderr.startswith("fitonce: ")
    assert all(word in result.stderr for word in words), result.stderr


# ---- fit -----------------------------------------------------------------------------------------


def test_fit_tells_what_the_library_finds_and_writes_the_model(folder):
    result = run(
        "fit",
        "good.csv",
        "-t",
        "label",
        "--drop",
        "price",
        "--folds",
        3,
        "--permutations",
        19,
        "--no-page",
        "--alpha",
        1,
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.rstrip().splitlines()[-1] == "good-fitonce.skops"
    parts = design(read_table("good.csv"), "label", drop=["price"])
    estimator, _ = pipeline(parts, Settings(alpha="1"), 0)
    answer = fitonce.assess(estimator, parts.X, parts.y, cv=3, permutations=0)
    assert str(answer.accuracy) in result.stdout and str(answer.baseline) in result.stdout
    for words in (
        "balanced accuracy",
        "AUC",
        "Wilson on pooled held-out labels",
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
    estimator, _ = pipeline(parts, Settings(gamma="scale", alpha="1"), 0)
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
    result = run("fit", "good.csv", "-t", "label", "--json", "--no-page", *FAST)
    answer = json.loads(result.stdout)
    assert answer["assessment"]["score"]["method"] == "Wilson on pooled held-out labels"
    assert answer["files"] == {"model": "good-fitonce.skops"} and answer["task"] == "classification"
    assert [column["name"] for column in answer["columns"]] == [
        "a",
        "b",
        "colour",
        "price",
        "site",
    ]  # w is constant, id an identifier
    assert (
        fitonce.saving.read_metadata("good-fitonce.skops")["assessment"]["score"]
        == answer["assessment"]["score"]
    )


def test_quiet_prints_paths_only(folder):
    (folder / "results").mkdir()
    result = run("fit", "good.csv", "-t", "label", "-q", "--no-page", "--out", "results", *FAST)
    assert result.stdout == f"{Path('results') / 'good-fitonce.skops'}\n"
    result = run("fit", "good.csv", "-t", "label", "-q", "--no-page", "--out", "mine.skops", *FAST)
    assert result.stdout == "mine.skops\n" and (folder / "mine.skops").exists()


def test_fit_writes_the_page(folder):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    result = run("fit", "good.csv", "-t", "label", "-q", *FAST)
    assert result.stdout.splitlines() == ["good-fitonce.skops", "good-fitonce.html"]
    page = (folder / "good-fitonce.html").read_text(encoding="utf-8")
    assert "good.csv" in page
    again = run(
        "report",
        "good-fitonce.skops",
        "good.csv",
        "--out",
        "again.html",
        "--permutations",
        0,
        "--folds",
        3,
    )
    assert again.stdout.strip().endswith("again.html") and (folder / "again.html").exists()


def test_the_same_seed_gives_the_same_model(folder):
    for name, seed in (("one", 3), ("two", 3)):
        run(
            "fit",
            "good.csv",
            "-t",
            "label",
            "-q",
            "--no-page",
            "--out",
            f"{name}.skops",
            "--seed",
            seed,
            *FAST,
        )
    one, two = (fitonce.saving.read_metadata(f"{name}.skops") for name in ("one", "two"))
    one["assessment"].pop("seconds"), two["assessment"].pop("seconds")
    assert one == two


def test_groups_and_weights(folder):
    result = run(
        "fit",
        "good.csv",
        "-t",
        "label",
        "--group",
        "site",
        "--weight",
        "w",
        "--json",
        "--no-page",
        *FAST,
    )
    answer = json.loads(result.stdout)["assessment"]
    assert (
        answer["grouped"] and answer["weighted"] and "effective size" in answer["score"]["method"]
    )
    names = [column["name"] for column in json.loads(result.stdout)["columns"]]
    assert "site" not in names and "w" not in names


def test_regression(folder):
    result = run(
        "fit",
        "good.csv",
        "-t",
        "price",
        "--drop",
        "label",
        "--no-page",
        "--folds",
        3,
        "--permutations",
        19,
        "--alpha",
        1,
    )
    assert (
        result.exit_code == 0
        and "R²" in result.stdout
        and "corrected resampled t over 3 splits" in result.stdout
    )
    assert "looks continuous" in result.stdout and "kernel ridge regression" in result.stdout


# ---- bad files, every command that takes a table -------------------------------------------------


def bad_files(folder):
    frame = table()
    frame.head(1).write_csv("one_row.csv")
    frame.select("label").write_csv("one_column.csv")
    (folder / "empty.csv").write_bytes(b"")
    (folder / "header.csv").write_text("a,b,label\n")
    (folder / "folder.csv").mkdir()
    frame.drop("label").write_csv("no_target.csv")
    frame.with_columns(pl.lit("same").alias("label")).write_csv("constant.csv")
    frame.with_columns(
        pl.Series("when", [f"2024-01-{1 + i % 28:02d}" for i in range(N)])
    ).write_csv("dates.csv")
    frame.with_columns(pl.Series("label", [f"name{i}" for i in range(N)])).write_csv(
        "all_different.csv"
    )
    (folder / "ragged.csv").write_text("a,b,label\n1,2,yes\n3,4,5,no\n")
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 8)
    (folder / "broken.parquet").write_bytes(b"hello")
    (folder / "sheet.xlsx").write_bytes(b"PK\x03\x04")


REFUSED = {
    "one_row.csv": "1 row",
    "one_column.csv": "only one column",
    "empty.csv": "is empty",
    "header.csv": "no rows",
    "folder.csv": "is a folder",
    "no_target.csv": "has no column 'label' (--target)",
    "nowhere.csv": "there is no file",
    "constant.csv": "one value only",
    "dates.csv": "--drop when",
    "all_different.csv": "60 classes in 60 rows",
    "ragged.csv": "row 3 has 4 fields where the first has 3",
    "binary.csv": "binary data",
    "broken.parquet": "cannot be read as a table",
    "sheet.xlsx": "save the table as CSV",
}


@pytest.mark.parametrize("command", ["fit", "evaluate", "permute"])
def test_what_cannot_be_used_is_refused_in_a_sentence(folder, command):
    bad_files(folder)
    before = sorted(os.listdir())
    for name, words in REFUSED.items():
        says(run(command, name, "--target", "label"), words)
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("command", ["predict", "export", "report"])
def test_commands_that_take_a_model_refuse_other_files(folder, command):
    bad_files(folder)
    rows = ["good.csv"] if command != "export" else []
    for name in [*REFUSED, "good.csv"]:
        if name not in ("no_target.csv",):
            says(run(command, name, *rows))


def test_rows_that_cannot_be_predicted_are_refused(folder):
    bad_files(folder)
    run("fit", "good.csv", "-t", "label", "-q", "--no-page", *FAST)
    for name in (
        "empty.csv",
        "header.csv",
        "folder.csv",
        "nowhere.csv",
        "ragged.csv",
        "binary.csv",
        "broken.parquet",
        "sheet.xlsx",
    ):
        says(run("predict", "good-fitonce.skops", name), REFUSED[name])
    says(run("predict", "good-fitonce.skops", "one_column.csv"), "lacks", "'a'")
    assert run("predict", "good-fitonce.skops", "one_row.csv").exit_code == 0


def test_files_without_permission(folder, monkeypatch):
    def refuse(self):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    says(run("fit", "good.csv", "-t", "label"), "good.csv cannot be read: permission denied")
    says(run("predict", "good.csv", "good.csv"), "permission denied")


def test_folders_without_permission_are_refused_before_the_work(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    says(run("fit", "good.csv", "-t", "label"), "cannot be written to")
    says(run("fit", "good.csv", "-t", "label", "--out", "nowhere"), "there is no folder nowhere")
    says(run("fit", "good.csv", "-t", "label", "--out", "model.pkl"), "ends in .skops or .html")


def test_a_missing_target_is_named_with_a_suggestion(folder):
    says(run("fit", "good.csv", "-t", "Label"), "'Label'", "'label'", "Did you mean")


# ---- files that need some care -------------------------------------------------------------------


@pytest.mark.parametrize("command", ["evaluate", "permute"])
def test_unusual_files_work_and_are_told_about(folder, command):
    frame = table()
    rng = np.random.default_rng(1)
    gaps = {
        name: pl.Series(
            name,
            [None if hole else v for v, hole in zip(frame[name], rng.random(N) < 0.3, strict=True)],
        )
        for name in ("a", "b", "colour")
    }
    frame.with_columns(*gaps.values(), pl.Series("label", [None, *frame["label"][1:]])).write_csv(
        "missing.csv"
    )
    lines = "\n".join(
        f"{row['a']:.3f};{row['b']:.2f};{row['label']}".replace(".", ",")
        for row in frame.iter_rows(named=True)
    )
    (folder / "semicolon.csv").write_text("a;b;label\n" + lines)
    (folder / "latin.csv").write_bytes(
        frame.rename({"colour": "größe"}).write_csv().encode("latin-1")
    )
    frame.select("a", "b", "site").write_csv("no_header.csv", include_header=False)
    mixed = ["unknown" if i % 9 == 0 else f"{value:.2f}" for i, value in enumerate(frame["a"])]
    frame.with_columns(pl.Series("mixed", mixed)).write_csv("mixed.csv")
    many = frame.select("a", "b").vstack(frame.select("a", "b")).vstack(frame.select("a", "b"))
    many.with_columns(pl.Series("label", [f"c{i % 50:02d}" for i in range(3 * N)])).write_csv(
        "fifty.csv"
    )
    expected = {
        "missing.csv": ("1 row without a target was left out", "missing values"),
        "semicolon.csv": ("separated by a semicolon", "decimal commas"),
        "latin.csv": ("read as latin-1",),
        "no_header.csv": ("there is no header",),
        "mixed.csv": ("are no numbers ('unknown')",),
        "fifty.csv": ("50 classes",),
    }
    options = ["--folds", 3, "--alpha", 1, "--gamma", "scale"] + (
        ["--permutations", 5] if command == "permute" else []
    )
    for name, words in expected.items():
        result = run(
            command, name, "-t", "column_3" if name == "no_header.csv" else "label", *options
        )
        assert result.exit_code == 0, result.output
        assert all(word in result.stdout.replace("\n", " ") for word in words), result.stdout


def test_formats_agree(folder):
    frame = table()
    (
        frame.write_parquet("good.parquet"),
        frame.write_ipc("good.arrow"),
        frame.write_csv("good.tsv", separator="\t"),
    )
    answers = []
    for name in ("good.csv", "good.tsv", "good.parquet", "good.arrow"):
        answer = json.loads(run("evaluate", name, "-t", "label", "--json", *FAST).stdout)[
            "assessment"
        ]
        answers.append({key: answer[key] for key in ("score", "metrics", "confusion", "choices")})
    assert all(answer == answers[0] for answer in answers[1:])
    piped = run("evaluate", "-", "-t", "label", "--json", *FAST, input=Path("good.csv").read_text())
    assert json.loads(piped.stdout)["assessment"]["score"] == answers[0]["score"]


def test_many_rows_use_landmarks_and_say_so(folder, monkeypatch):
    """The thresholds are lowered here; `test_two_hundred_thousand_rows` has the real ones."""
    monkeypatch.setattr("fitonce.cli.models.LANDMARKS_ABOVE", 50)
    monkeypatch.setattr("fitonce.cli.models.N_LANDMARKS", 20)
    monkeypatch.setattr("fitonce.cli.work.SAMPLE_ABOVE", 55)
    monkeypatch.setattr("fitonce.cli.work.SAMPLE", 40)
    result = run("fit", "good.csv", "-t", "label", "--folds", 3, "--permutations", 0)
    assert result.exit_code == 0, result.output
    assert "20 landmarks stand for them" in result.stdout and "random sample of 40" in result.stdout
    model = fitonce.load("good-fitonce.skops")[-1]
    assert model.landmarks_.shape[0] == 20
    assert (
        "landmarks"
        not in run("evaluate", "good.csv", "-t", "label", "--landmarks", "none", *FAST).stdout
    )


@pytest.mark.slow
def test_two_hundred_thousand_rows(folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 2))
    label = np.where((X**2).sum(axis=1) > 1.5, "out", "in")
    pl.DataFrame({"x": X[:, 0], "y": X[:, 1], "label": label}).write_csv("large.csv")
    result = run(
        "fit", "large.csv", "-t", "label", "--gamma", "scale", "--permutations", 0, "--folds", 2
    )
    assert (
        result.exit_code == 0 and "200,000 rows are more than 2,000: 300 landmarks" in result.stdout
    )
    assert (
        fitonce.saving.read_metadata("large-fitonce.skops")["assessment"]["score"]["value"] > 0.95
    )


# ---- columns -------------------------------------------------------------------------------------


def columns_of(text, target="y", **options):
    Path("t.csv").write_text(text, encoding="utf-8")
    return design(read_table("t.csv"), target, **options)


def rows(*columns):
    """Twelve rows of text from columns given as functions of the row number."""
    return "\n".join(",".join(str(column(i)) for column in columns) for i in range(12))


def test_identifiers_constants_and_empty_columns_are_left_out(folder):
    parts = columns_of(
        "patient_id,n,c,e,x,y\n"
        + rows(
            lambda i: 900 - 7 * i,
            lambda i: i,
            lambda i: 5,
            lambda i: "",
            lambda i: i % 5,
            lambda i: "ab"[i % 2],
        )
    )
    assert [column.name for column in parts.columns] == ["x"]
    said = " ".join(parts.notes)
    assert all(name in said for name in ("'patient_id'", "'n'", "'c'", "'e'"))
    kept = columns_of(Path("t.csv").read_text(), keep=["n"])
    assert [column.name for column in kept.columns] == ["n", "x"]


def test_commas_that_could_mean_two_things_are_refused(folder):
    with pytest.raises(UserError, match=r"1\.234 or 1234"):
        columns_of("x;y\n" + "\n".join(f"{i + 1},234;{'ab'[i % 2]}" for i in range(12)))
    assert columns_of("x;y\n" + "\n".join(f"{i},5;{'ab'[i % 2]}" for i in range(12))).X[
        "x"
    ].to_list() == [i + 0.5 for i in range(12)]


def test_missing_categories_and_new_ones_are_predicted(folder):
    text = "c,x,y\n" + rows(
        lambda i: ("u", "v", "NA")[i % 3], lambda i: i % 4, lambda i: "ab"[i % 2]
    )
    parts = columns_of(text)
    assert parts.X["c"].to_list()[:3] == ["u", "v", ABSENT]
    run("fit", "t.csv", "-t", "y", "-q", "--no-page", "--folds", 2, "--permutations", 0)
    result = run("predict", "t-fitonce.skops", "-", input="x,c\n1,u\n,\n2,never seen\n")
    assert result.exit_code == 0 and len(result.stdout.splitlines()) == 4


def test_a_header_of_numbers_is_one_if_the_user_names_it(folder):
    text = "2019,2020\n" + rows(lambda i: i % 5, lambda i: i % 2)
    Path("years.csv").write_text(text)
    assert read_table("years.csv", expected=("2020",)).frame.columns == ["2019", "2020"]
    with pytest.raises(UserError, match="has no column 'y'"):
        columns_of(text)


@pytest.mark.parametrize("weights", ["-1", "x", ""])
def test_bad_weights_are_refused(folder, weights):
    text = "x,w,y\n" + rows(
        lambda i: i % 5, lambda i: weights if i == 3 else 1, lambda i: "ab"[i % 2]
    )
    with pytest.raises(UserError, match="weights 'w' must be"):
        columns_of(text, weight="w")


# ---- evaluate, permute ---------------------------------------------------------------------------


def test_report_keeps_the_groups_and_weights_of_the_fit(folder):
    """A page of a grouped model that divides groups between folds would show scores that are too
    good.
    """
    table().with_columns(w=pl.col("id") % 3 + 1).write_csv("grouped.csv")
    run("fit", "grouped.csv", "-t", "label", "--group", "site", "--weight", "w", "--no-page", *FAST)
    result = run(
        "report", "grouped-fitonce.skops", "grouped.csv", "--folds", 3, "--permutations", 0
    )
    assert result.exit_code == 0, result.output
    page = Path("grouped-fitonce.html").read_text()
    assert "keep groups together" in page and "effective size" in page
    table().drop("site").write_csv("without.csv")
    says(run("report", "grouped-fitonce.skops", "without.csv"), "no column 'site' (--group)")


def test_a_column_that_may_name_groups_is_mentioned(folder):
    notes = design(read_table("good.csv"), "label").notes
    assert [
        note for note in notes if "'site' is used as a feature" in note and "--group site" in note
    ]
    grouped = design(read_table("good.csv"), "label", group="site").notes
    assert "6 groups in 'site': rows of one group are tested together" in grouped and not any(
        "used as a feature" in n for n in grouped
    )
    alone = table().with_columns(
        subject=pl.col("id") * 7 % 61, website=pl.col("id") % 5
    )  # one row each; another word
    alone.drop("site").write_csv("alone.csv")
    assert not any(
        "used as a feature" in note for note in design(read_table("alone.csv"), "label").notes
    )


def test_predict_says_which_categories_are_new(folder):
    run("fit", "good.csv", "-t", "label", "--drop", "price", "--no-page", *FAST)
    table().head(4).with_columns(colour=pl.Series(["red", "pink", "pink", None])).write_csv(
        "new.csv"
    )
    result = run("predict", "good-fitonce.skops", "new.csv")
    assert (
        "3 values of 'colour' did not occur when the model was fitted ('pink', '(missing)')"
        in result.stderr
    )
    assert len(result.stdout.splitlines()) == 5 and "pink" not in result.stdout
    assert "did not occur" not in run("predict", "good-fitonce.skops", "good.csv").stderr


def test_repeats_say_whose_confusions_are_shown(folder):
    shown = run("evaluate", "good.csv", "-t", "label", "--repeats", 2, *FAST).stdout
    assert "by column (first of 2 repeats)" in shown and re.search(
        r"expected error [\d.]+ \(first of 2 repeats\)", shown
    )
    assert "repeats" not in run("evaluate", "good.csv", "-t", "label", *FAST).stdout


@pytest.mark.parametrize(
    "values",
    [
        ["1.5", "2", "-3e2"],
        [" 1.5", "2 ", "3"],
        ["1.5", None, "2"],
        ["1.5", "inf", "2"],
        ["1", "nan", "2"],
    ],
)
def test_plain_numbers_are_read_as_the_long_way_reads_them(monkeypatch, values):
    series = pl.Series("x", values * 4)
    quick_notes = []
    quick = kind_of(series), as_number(series, quick_notes).to_list()
    monkeypatch.setattr(column_values, "plain_numbers", lambda series: None)
    notes = []
    assert quick == (kind_of(series), as_number(series, notes).to_list()) and quick_notes == notes


@pytest.mark.parametrize(
    ("values", "task"),
    [([1.5, 2.5], "classification"), ([-1, 1], "classification"), ([1.5, 2.5, 3.5], "regression")],
)
def test_two_numbers_are_classes(folder, values, task):
    text = "x,y\n" + rows(lambda i: i % 7, lambda i: values[i % len(values)])
    assert columns_of(text, "y").task == task


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["1.5 mg", "2 mg", "3,5 mg"], True),
        (["5%", "6%", "7.5%"], True),
        (["1a", "2b", "3c"], False),
    ],
)
def test_numbers_with_a_unit_are_mentioned(folder, values, said):
    text = "x;z;y\n" + "".join(f"{values[i % 3]};{i % 5};{'ab'[i % 2]}\n" for i in range(20))
    assert any("numbers with a unit" in note for note in columns_of(text).notes) is said


def test_changed_names_are_those_that_the_table_has(folder):
    parts = columns_of(
        "x,x,,,y\n" + "".join(f"{i},{i % 3},{i % 4},{i % 7},{'ab'[i % 2]}\n" for i in range(20))
    )
    note = next(note for note in parts.notes if "were changed" in note)
    assert all(name.strip("'") in parts.X.columns for name in note.split(": ")[1].split(", "))


def test_versus_is_the_corrected_paired_test(folder):
    options = ["--folds", 3, "--repeats", 2, "--alpha", 1, "--gamma", "scale"]
    result = run(
        "evaluate", "good.csv", "-t", "label", "--versus", "kernel=linear", "--json", *options
    )
    answer = json.loads(result.stdout)
    first = np.array(answer["assessment"]["fold_scores"]["accuracy"])
    second = np.array(answer["versus"]["assessment"]["fold_scores"]["accuracy"])
    assert answer["versus"]["comparison"]["difference"] == pytest.approx(
        np.mean(first - second)
    ) and first.shape == (2, 3)
    shown = run("evaluate", "good.csv", "-t", "label", "--versus", "kernel=linear", *options).stdout
    assert (
        "corrected resampled t, 6 splits" in shown
        and "corrected resampled t over 6 splits" in shown
    )
    says(run("evaluate", "good.csv", "-t", "label", "--versus", "linear"), "name=value")


def test_permute_is_the_librarys_test(folder):
    result = run(
        "permute",
        "good.csv",
        "-t",
        "label",
        "--drop",
        "price",
        "--permutations",
        39,
        "--folds",
        3,
        "--json",
    )
    test = json.loads(result.stdout)["permutation"]
    assert test["mode"] == "within-folds" and test["n_permutations"] == 39 == len(
        test["null"]["accuracy"]
    )
    reached = sum(score >= test["scores"]["accuracy"] - 1e-10 for score in test["null"]["accuracy"])
    assert test["pvalue"] == pytest.approx((1 + reached) / 40)
    assert (
        "<- observed"
        in run("permute", "good.csv", "-t", "label", "--permutations", 19, "--folds", 3).stdout
    )
    says_invalid = run("permute", "good.csv", "-t", "label", "--mode", "free", "--permutations", 5)
    assert says_invalid.exit_code == 1 and "not valid" in says_invalid.stderr


# ---- predict, export, datasets -------------------------------------------------------------------


def test_predictions_are_the_models(folder):
    run("fit", "good.csv", "-t", "label", "-q", "--no-page", *FAST)
    frame = table(seed=1)
    frame.select(reversed(frame.columns)).write_parquet("new.parquet")
    result = run(
        "predict", "good-fitonce.skops", "new.parquet", "--keep", "id", "--out", "labels.parquet"
    )
    assert result.exit_code == 0 and "predictions agree with the column 'label'" in result.stderr
    found = pl.read_parquet("labels.parquet")
    model = fitonce.load("good-fitonce.skops")
    X = frame.select(names_of("good-fitonce.skops")).with_columns(pl.col(pl.Int64).cast(pl.Float64))
    assert found["prediction"].to_list() == model.predict(X).tolist()
    np.testing.assert_allclose(found["probability_yes"], model.predict_proba(X)[:, 1], rtol=1e-12)
    text = run("predict", "good-fitonce.skops", "new.parquet", "-q").stdout
    assert pl.read_csv(io.StringIO(text)).columns == [
        "prediction",
        "probability_no",
        "probability_yes",
    ]
    says(run("predict", "good-fitonce.skops", "new.parquet", "--keep", "nothing"), "'nothing'")


def test_export_agrees_in_onnxruntime(folder):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    run("fit", "good.csv", "-t", "label", "-q", "--no-page", "--drop", "colour", *FAST)
    result = run("export", "good-fitonce.skops", "--rows", "good.csv")
    assert result.exit_code == 0 and result.stdout.splitlines()[-1] == "good-fitonce.onnx"
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


def test_datasets(folder):
    listed = run("datasets").stdout
    assert all(name in listed for name in ("iris", "torus", "raetsch/banana"))
    assert run("datasets", "torus", "--rows", 30, "--out", "torus.csv").exit_code == 0
    X, y = fitonce.datasets.make_torus(30, random_state=0)
    frame = pl.read_csv("torus.csv")
    np.testing.assert_allclose(frame.select("x1", "x2").to_numpy(), X)
    assert frame["y"].to_list() == y.tolist()
    assert pl.read_csv(io.StringIO(run("datasets", "iris").stdout)).columns[-1] == "species"
    says(run("datasets", "nothing"), "there is no data set 'nothing'")


# ---- the program ---------------------------------------------------------------------------------


def start(*args, **options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    command = [sys.executable, "-m", "fitonce", *map(str, args)]
    return subprocess.Popen(command, text=True, env=environment, **pipes)


def test_exit_codes_of_the_program(folder):
    for args, code in (
        (["--version"], 0),
        (["fit", "good.csv"], 2),
        (["fit", "nowhere.csv", "-t", "y"], 1),
    ):
        process = start(*args)
        _, err = process.communicate(timeout=60)
        assert process.returncode == code, err
        assert "Traceback" not in err


def test_piped_output_is_plain(folder):
    process = start("evaluate", "good.csv", "-t", "label", *FAST)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "\x1b" not in out + err
    assert "| accuracy" in out


def test_no_color_is_respected(folder):
    pytest.importorskip("pty")
    script = f"{sys.executable} -m fitonce evaluate good.csv -t label {' '.join(FAST)}"
    for colour in (True, False):
        environment = {
            **os.environ,
            "TERM": "xterm-256color",
            "OMP_NUM_THREADS": "1",
            **({} if colour else {"NO_COLOR": "1"}),
        }
        code = f"import pty, sys; sys.exit(pty.spawn({script.split()!r}) >> 8)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment,
            timeout=100,
            stdin=subprocess.DEVNULL,
        )
        colours = re.findall(r"\x1b\[[0-9;]*3[0-7][0-9;]*m", done.stdout)
        assert "accuracy" in done.stdout and bool(colours) == colour


def test_an_interruption_leaves_nothing_half_written(folder):
    before = sorted(os.listdir())
    process = start("fit", "good.csv", "-t", "label", "--repeats", 500, "--no-page")
    assert process.stdout.readline().startswith("fitonce fit")  # the work has begun
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "stopped" in err and "Traceback" not in err
    assert sorted(os.listdir()) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_named(folder):
    with open("/dev/full", "w") as full:
        process = start("datasets", "torus", "--rows", 5000, stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "disk is full" in err and "Traceback" not in err


def test_a_full_disk_leaves_the_old_model(folder, monkeypatch):
    (folder / "good-fitonce.skops").write_bytes(b"old")

    def fail(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    result = run("fit", "good.csv", "-t", "label", "--no-page", *FAST)
    assert result.exit_code == 1 and "the disk is full" in result.stderr
    assert (folder / "good-fitonce.skops").read_bytes() == b"old" and sorted(os.listdir()) == [
        "good-fitonce.skops",
        "good.csv",
    ]


def test_a_reader_that_stops_early_is_no_error(folder):
    process = start("datasets", "torus", "--rows", 20000)
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.wait(timeout=60)
    assert process.returncode == 0 and not err


def test_a_bug_is_a_sentence_too(folder, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("the moon")

    monkeypatch.setattr("fitonce.cli.work.assess", broken)
    says(run("fit", "good.csv", "-t", "label", "-q"), "unforeseen", "the moon")


def test_help_teaches():
    for command in (
        "fit",
        "evaluate",
        "permute",
        "predict",
        "export",
        "report",
        "datasets",
        "demo",
    ):
        result = run(command, "--help")
        assert (
            result.exit_code == 0
            and "Examples" in result.stdout
            and f"fitonce {command}" in result.stdout
        )


def test_options_come_in_groups():
    """Each field is an option with its default, hidden ones keep that of the group."""
    seen = []

    def command(*, request: Request, check: Check = UNTESTED, name: str = "x") -> None:
        seen.append((request, check, name))

    plain = unfolded(command, hidden=("random_state", "weight"))
    names = list(inspect.signature(plain).parameters)
    assert names[:4] == ["table", "target", "task", "group"] and names[-1] == "name"
    assert "random_state" not in names and "weight" not in names
    defaults = {n: p.default for n, p in inspect.signature(plain).parameters.items()}
    assert defaults["permutations"] == "0" and defaults["table"] is inspect.Parameter.empty
    plain(table="t.csv", target="y", repeats=3, name="z")
    assert seen == [(Request("t.csv", "y"), Check(repeats=3, permutations="0"), "z")]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--permutations", "many"], "--permutations must be auto or a number"),
        (["--separator", "xx"], "--separator must be one character"),
        (["--task", "both"], "--task must be one of auto, classification, regression"),
        (["--kernel", "cubic"], "--kernel must be one of"),
        (["--alpha", "-1"], "--alpha must be a positive number or tune"),
        (["--landmarks", "1"], "--landmarks must be auto, none or a number from 2 on"),
        (["--model", "ridge"], "--model ridge is not for classification"),
    ],
)
def test_wrong_values_are_refused_before_anything_is_shown(folder, options, words):
    result = run("fit", "good.csv", "-t", "label", *options)
    says(result, words)
    assert result.stdout == ""


def test_progress_is_shown_by_callbacks_alone(folder, monkeypatch):
    """The bars hear of every split and permutation; the standard error stream stays as it is."""
    told, stream = [], sys.stderr
    monkeypatch.setattr(Bars, "__call__", lambda self, *words: told.append((*words, sys.stderr)))
    options = ["--folds", 3, "--permutations", 19, "--alpha", 1, "--no-page"]
    result = CliRunner().invoke(app, [str(a) for a in ["fit", "good.csv", "-t", "label", *options]])
    assert result.exit_code == 0 and result.stderr == "" and sys.stderr is stream
    split = [done for done, total, what, _ in told if (what, total) == ("cross-validation", 3)]
    assert split == [0, 1, 2, 3] and (19, 19, "permutations") in [words[:3] for words in told]
    assert len({id(words[3]) for words in told}) == 1


def test_columns_complete_in_the_shell(folder):
    from fitonce.cli.tables import column_names

    assert column_names("good.csv")[:2] == ["id", "a"] and column_names("nowhere.csv") == []
    environment = {
        **os.environ,
        "_FITONCE_COMPLETE": "complete_bash",
        "COMP_WORDS": "fitonce fit good.csv --target pr",
        "COMP_CWORD": "4",
    }
    code = "import sys; sys.argv = ['fitonce']; from fitonce.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.stdout.split() == ["price"]


def test_help_does_not_wait_for_scikit_learn():
    code = "import atexit, sys; sys.argv = ['fitonce', '--version']; "
    code += "atexit.register(lambda: print(sorted({'sklearn', 'polars'} & set(sys.modules))))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; from fitonce.cli import main; main()"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == [f"fitonce {fitonce.__version__}", "[]"]
    assert fitonce._public.__all__ == fitonce.__all__
    with pytest.raises(AttributeError, match="nothing"):
        _ = fitonce.nothing


def test_spread_counts_and_ranges():
    assert spread([1.0, 1.0, 1.0]) == "1 in all 3"
    assert spread([1.0, 2.0, 1.0]) == "1 (2 of 3), 2 (1 of 3)"
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]) == "1 to 5, median 3"


@pytest.mark.slow
def test_the_demo(folder):
    result = run("demo", "--seconds", 0.5, "--no-page")
    assert result.exit_code == 0 and result.stdout.rstrip().splitlines()[-1] == "demo-fitonce.skops"
