"""Files and columns: what is read, told, left out and refused."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from helpers_cli import FAST, N, pl, read_metadata, run, says, table

import fitonce
import fitonce._public
from fitonce.cli import values as cli_values
from fitonce.cli.columns import design
from fitonce.cli.model import fit_all, pipeline
from fitonce.cli.table import read_table
from fitonce.cli.values import ABSENT, as_number, kind_of
from fitonce.cli.words import Remarks, UserError


def bad_files(folder):
    frame = table()
    frame.head(1).write_csv("one_row.csv")
    frame.select("label").write_csv("one_column.csv")
    (folder / "empty.csv").write_bytes(b"")
    (folder / "header.csv").write_text("a,b,label\n")
    (folder / "folder.csv").mkdir()
    frame.drop("label").write_csv("no_target.csv")
    frame.with_columns(pl.lit("same").alias("label")).write_csv("constant.csv")
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
    "folder.csv": "folder.csv cannot be read: ",
    "no_target.csv": "has no column 'label' (--target)",
    "nowhere.csv": "cannot be read: no such file",
    "constant.csv": "only one value",
    "all_different.csv": "60 classes in 60 rows",
    "ragged.csv": "row 3 has 4 fields, but the first row has 3",
    "binary.csv": "binary data",
    "broken.parquet": "cannot be read as a table",
    "sheet.xlsx": "cannot be read as a table",
}


def columns_of(text, target="y", **options):
    Path("t.csv").write_text(text, encoding="utf-8")
    return design(read_table("t.csv"), target, **options)


def rows(*columns):
    """Twelve rows of text from columns given as functions of the row number."""
    return "\n".join(",".join(str(column(i)) for column in columns) for i in range(12))


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
    run("fit good.csv -t label -q --no-page", *FAST)
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
        says(run("predict good-fitonce.skops", name), REFUSED[name])
    says(run("predict good-fitonce.skops one_column.csv"), "lacks", "'a'")
    assert run("predict good-fitonce.skops one_row.csv").exit_code == 0


def test_files_without_permission(folder, monkeypatch):
    def refuse(self):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    says(run("fit good.csv -t label"), "good.csv cannot be read: permission denied")
    says(run("predict good.csv good.csv"), "permission denied")


def test_folders_without_permission_are_refused_before_the_work(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    denied = "cannot be written: permission denied"
    says(run("fit good.csv -t label"), "good-fitonce.skops", denied)
    says(run("fit good.csv -t label --out new/folder"), denied)
    says(run("fit good.csv -t label --out model.pkl"), "ends in .skops or .html")


def test_a_missing_target_is_named_with_a_suggestion(folder):
    says(run("fit good.csv -t Label"), "'Label'", "'label'", "Did you mean")


UNUSUAL = {
    "missing.csv": ("1 row without a target was left out", "missing values"),
    "semicolon.csv": ("separated by a semicolon", "decimal commas"),
    "latin.csv": ("read as Latin-1",),
    "no_header.csv": ("has no header",),
    "mixed.csv": ("7 non-numeric values ('unknown')",),
    "fifty.csv": ("50 classes",),
}


def test_unusual_files_work_and_are_told_about(folder):
    frame, rng = table(), np.random.default_rng(1)
    kept = [pl.when(pl.Series(rng.random(N) > 0.3)).then(pl.col(v)) for v in ("a", "b", "colour")]
    labels = pl.Series("label", [None, *frame["label"][1:]])
    frame.with_columns(*kept, labels).write_csv("missing.csv")
    numbers = pl.col("a", "b").round(2).cast(pl.String).str.replace(".", ",", literal=True)
    frame.select(numbers, "label").write_csv("semicolon.csv", separator=";")
    latin = frame.rename({"colour": "größe"}).write_csv().encode("latin-1")
    Path("latin.csv").write_bytes(latin)
    frame.select("a", "b", "site").write_csv("no_header.csv", include_header=False)
    mixed = ["unknown" if i % 9 == 0 else f"{value:.2f}" for i, value in enumerate(frame["a"])]
    frame.with_columns(mixed=pl.Series(mixed)).write_csv("mixed.csv")
    fifty = pl.Series([f"c{i % 50:02d}" for i in range(3 * N)])
    pl.concat([frame.select("a", "b")] * 3).with_columns(label=fifty).write_csv("fifty.csv")
    for name, words in UNUSUAL.items():
        target = "column_3" if name == "no_header.csv" else "label"
        result = run(f"evaluate {name} -t {target}", *FAST)
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
    piped = run("evaluate - -t label --json", *FAST, input=Path("good.csv").read_text())
    assert json.loads(piped.stdout)["assessment"]["score"] == answers[0]["score"]


def lowered(monkeypatch):
    """60 rows are many: 20 landmarks, a sample of 40."""
    for module in ("model", "run"):
        monkeypatch.setattr(f"fitonce.cli.{module}.LANDMARKS_ABOVE", 50)
    monkeypatch.setattr("fitonce.cli.model.N_LANDMARKS", 20)
    monkeypatch.setattr("fitonce.cli.model.SAMPLE_ABOVE", 55)
    monkeypatch.setattr("fitonce.cli.model.SAMPLE", 40)


def test_many_rows_use_landmarks_and_say_so(folder, monkeypatch):
    """The thresholds are lowered here; `test_two_hundred_thousand_rows` has the real ones."""
    lowered(monkeypatch)
    options = ["--kernel", "rbf", "--folds", 3, "--permutations", 0, "--no-page"]
    result = run("fit good.csv -t label", *options)
    assert result.exit_code == 0, result.output
    assert "the model uses 20 landmarks" in result.stdout and "random sample of 40" in result.stdout
    model = fitonce.load("good-fitonce.skops")[-1]
    assert model.landmarks_.shape[0] == 20
    assert "landmarks" not in run("evaluate good.csv -t label --landmarks none", *FAST).stdout


@pytest.mark.parametrize(("landmarks", "most"), [("none", 40), ("20", N)])
def test_a_table_too_large_for_all_rows_is_fitted_on_a_part(folder, monkeypatch, landmarks, most):
    """A model with landmarks takes all of them."""
    parts = design(read_table("good.csv"), "label")
    monkeypatch.setattr("fitonce.cli.model.MOST_NUMBERS", 40 * parts.X.width)
    estimator = pipeline(parts, kernel="rbf", landmarks=landmarks)[0]
    fit_all(estimator, parts, parts)
    assert len(estimator[-1].held_out_decision_) == most


@pytest.mark.slow
def test_two_hundred_thousand_rows(folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 2))
    label = np.where((X**2).sum(axis=1) > 1.5, "out", "in")
    pl.DataFrame({"x": X[:, 0], "y": X[:, 1], "label": label}).write_csv("large.csv")
    result = run("fit large.csv -t label --gamma scale --permutations 0 --folds 2")
    assert (
        result.exit_code == 0
        and "more than 2,000 rows (200,000): the model uses 300 landmarks" in result.stdout
    )
    assert read_metadata("large-fitonce.skops")["assessment"]["score"]["value"] > 0.95


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
    assert parts.X.columns == ["x"]
    said = " ".join(parts.notes)
    assert all(name in said for name in ("'patient_id'", "'n'", "'c'", "'e'"))
    kept = columns_of(Path("t.csv").read_text(), keep=["n"])
    assert kept.X.columns == ["n", "x"]


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
    run("fit t.csv -t y -q --no-page --folds 2 --permutations 0")
    result = run("predict t-fitonce.skops -", input="x,c\n1,u\n,\n2,never seen\n")
    assert result.exit_code == 0 and len(result.stdout.splitlines()) == 4


def test_none_is_a_level_and_no_gap(folder):
    """As in none, mild, severe, where a class of healthy rows would be left out."""
    parts = columns_of("x,y\n" + rows(lambda i: i % 5, lambda i: ("none", "mild", "NA")[i % 3]))
    assert sorted(parts.y) == ["mild"] * 4 + ["none"] * 4


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


def test_groups_are_counted(folder):
    grouped = design(read_table("good.csv"), "label", group="site").notes
    assert "6 groups in 'site': rows of one group are tested together" in grouped


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
    first, second = Remarks(), Remarks()
    quick = kind_of(series), as_number(series, first).to_list()
    monkeypatch.setattr(cli_values, "plain_numbers", lambda series: None)
    assert quick == (kind_of(series), as_number(series, second).to_list())
    assert first.lines == second.lines


@pytest.mark.parametrize(
    ("values", "task"),
    [([1.5, 2.5], "classification"), ([-1, 1], "classification"), ([1.5, 2.5, 3.5], "regression")],
)
def test_two_numbers_are_classes(folder, values, task):
    text = "x,y\n" + rows(lambda i: i % 7, lambda i: values[i % len(values)])
    assert columns_of(text, "y").task == task


def test_changed_names_are_those_that_the_table_has(folder):
    parts = columns_of(
        "x,x,,,y\n" + "".join(f"{i},{i % 3},{i % 4},{i % 7},{'ab'[i % 2]}\n" for i in range(20))
    )
    note = next(note for note in parts.notes if "were changed" in note)
    assert all(name.strip("'") in parts.X.columns for name in note.split(": ")[1].split(", "))
