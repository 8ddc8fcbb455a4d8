"""What the columns of a newcomer's table become: dates, identifiers, copies, categories, texts."""

from __future__ import annotations

import shlex
from datetime import date, datetime

import numpy as np
import pytest
from helpers_cli import FAST, N, pl, read_metadata, run, says, table, write_sheets

import fitonce
from fitonce.cli import model as cli_model
from fitonce.cli.columns import design
from fitonce.cli.model import MERGED, RARE, about_categories, most_levels, pipeline
from fitonce.cli.table import Table, plainest, read_table
from fitonce.cli.values import as_number
from fitonce.cli.words import Remarks, UserError, option, quoted

LABELS = ["yes", "no"] * (N // 2)


def taken_apart(target="label", **columns):
    """A table of some columns and labels, taken apart."""
    frame = pl.DataFrame({"label": LABELS, **columns})
    return design(Table(frame, "t.csv"), target)


# ---- dates --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form", ["{0:%Y-%m-%d}", "{0:%d.%m.%Y}", "{0:%m/%d/%Y}", "{0:%d.%m.%y} {0:%H:%M}"]
)
def test_dates_become_numbers(form):
    days = [np.datetime64("2023-12-20") + np.timedelta64(i, "D") for i in range(N)]
    stamps = [day.astype("datetime64[h]").astype(object) for day in days]
    stamps = [stamp.replace(hour=i % 24) for i, stamp in enumerate(stamps)]
    parts = taken_apart(when=[form.format(stamp) for stamp in stamps], x=np.sin(np.arange(N)))
    found = parts.X
    assert found["when (year)"].to_list() == [stamp.year for stamp in stamps]
    assert found["when (month)"].to_list() == [stamp.month for stamp in stamps]
    assert found["when (weekday)"].to_list() == [f"{stamp:%A}" for stamp in stamps]
    assert (found["when (days)"] - 19_711).floor().to_list() == list(range(N))
    assert ("when (hour)" in found.columns) is ("H" in form)
    assert any("'when': dates, used as year, month, weekday, days" in note for note in parts.notes)
    assert not any("avoid the ambiguity" in note for note in parts.notes)


def test_dates_of_which_the_order_is_unsure_are_told():
    parts = taken_apart(when=[f"{1 + i % 12:02d}/{1 + i % 11:02d}/2024" for i in range(N)])
    assert parts.X["when (month)"][0] == 1 and any("day before month" in n for n in parts.notes)


def test_dates_of_new_rows_are_read_alike(folder):
    when = [str(np.datetime64("2024-03-01") + np.timedelta64(2 * i, "D")) for i in range(N)]
    table().with_columns(when=pl.Series(when)).write_csv("dated.csv")  # one day in two
    run("fit dated.csv -t label -q --no-page", *FAST)
    new = table(seed=3).with_columns(when=pl.lit("2024-05-05")).head(3)
    new.write_csv("new.csv")
    new.with_columns(when=pl.lit("2024-05-05").str.to_date()).write_parquet("new.parquet")
    one, two = (
        run("predict dated-fitonce.skops", name, "-q").stdout for name in ("new.csv", "new.parquet")
    )
    assert one == two
    model = fitonce.load("dated-fitonce.skops")
    X = (
        design(read_table("dated.csv"), "label")
        .X.head(1)
        .with_columns(
            pl.lit(19_848.0).alias("when (days)"),
            pl.lit(5.0).alias("when (month)"),
            pl.lit("Sunday").alias("when (weekday)"),
            *(new.head(1)[name].cast(pl.Float64) for name in ("a", "b", "price", "site")),
            new.head(1)["colour"],
        )
    )
    probability = float(one.splitlines()[1].split(",")[-1])
    assert probability == pytest.approx(model.predict_proba(X)[0, 1], rel=1e-9)


def test_times_and_durations_are_numbers():
    import datetime

    span = pl.Series([datetime.timedelta(hours=i) for i in range(N)])
    clock = pl.Series([datetime.time(i % 24, 30) for i in range(N)])
    parts = taken_apart(span=span, clock=clock)
    assert parts.X["span"][1] == pytest.approx(1 / 24)
    assert parts.X["clock (hour)"][3] == 3.5


# ---- ordered categories -------------------------------------------------------------------------


def test_ordered_categories_are_one_number_of_which_new_rows_are_told(folder):
    """Given by an option or by the type of a column, kept in the model file, without an effect of
    how new rows are stored.
    """
    doses = [("low", "medium", None, "high")[i % 4] for i in range(N)]
    frame = table().with_columns(dose=pl.Series(doses))
    frame.write_csv("doses.csv")
    enum = pl.Enum(["low", "medium", "high"])
    frame.with_columns(pl.col("dose").cast(enum)).write_parquet("typed.parquet")
    told = run("fit doses.csv -t label --no-page --ordered dose=low,medium,high", *FAST).stdout
    assert "'dose': ordered, low < medium < high, used as one number" in told
    run("fit typed.parquet -t label -q --no-page", *FAST)
    assert "--ordered dose=low,medium,high" in run("evaluate doses.csv -t label", *FAST).stdout
    new = frame.head(4).with_columns(dose=pl.Series(["high", "low", "extreme", None]))
    new.write_csv("new.csv")
    found = [run(f"predict {name}-fitonce.skops new.csv") for name in ("doses", "typed")]
    assert found[0].stdout == found[1].stdout
    assert "'dose': 'extreme': none of its levels, treated as missing" in found[0].stderr
    known = read_metadata("doses-fitonce.skops")["columns"]
    assert known[-1] == {**known[0], "name": "dose", "source": "dose", "levels": [*enum.categories]}
    parts = design(read_table("typed.parquet"), "label")
    assert parts.X["dose"].to_list() == [{"low": 0, "medium": 1, "high": 2}.get(d) for d in doses]
    coded = design(read_table("typed.parquet"), "label", categorical=["dose"])
    assert coded.features[-1].is_category


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("colour=red,green", "leaves out values of the column: 'blue'"),
        ("colour=red", "lowest level up, got colour=red"),
        ("colour=red,green,blue,red", "lowest level up"),
        ("color=red,green,blue", "Did you mean 'colour'?"),
        ("colour", "no column ''"),
    ],
)
def test_an_order_names_all_levels_once(folder, given, said):
    says(run("evaluate good.csv -t label --ordered", given), said)


# ---- identifiers, copies ------------------------------------------------------------------------


def test_row_numbers_with_gaps_are_no_feature():
    kept = np.sort(np.random.default_rng(0).choice(90, N, replace=False))
    x = np.sin(np.arange(N))
    parts = taken_apart(line=[str(i) for i in kept], x=x)
    assert parts.X.columns == ["x"] and parts.identity["identifiers"] == ["line"]
    assert parts.row_names[0] == str(kept[0])
    sparse = taken_apart(height=[str(i) for i in np.sort(kept * 37)], x=x)  # a quantity, sorted
    assert "height" in sparse.X.columns and sparse.row_names[:2] == ["row 1", "row 2"]


def test_a_copy_of_the_target_is_pointed_out():
    codes = [{"yes": "1", "no": "0"}[label] for label in LABELS]
    parts = taken_apart(code=codes, x=np.sin(np.arange(N)))
    assert len(parts.hints) == 1 and "--drop code" in parts.hints[0]
    flipped = [*codes[:-1], codes[0]]  # one row differs
    assert not taken_apart(code=flipped, x=np.sin(np.arange(N))).hints


def test_a_perfect_score_gets_a_warning(folder):
    code = pl.col("label") == "yes"
    table().select("a", "label", code.alias("code")).write_csv("copy.csv")
    shown = " ".join(run("fit copy.csv -t label --no-page", *FAST).stdout.split())
    assert "'code' predicts 'label' without error" in shown and "--drop code" in shown
    assert "warning: every held-out row is predicted correctly" in shown
    few = table().select("label", code.alias("code")).head(29)
    few.write_csv("few.csv")  # so few rows may well be told apart
    said = run("evaluate few.csv -t label", *FAST).stdout
    assert "Held-out scores of 29 rows" in said and "every held-out row" not in said


@pytest.mark.parametrize("name", ["Egg weight", "a'b", 'say "x"', "$HOME", "plain", "naïve"])
def test_advice_can_be_pasted(name):
    assert shlex.split(option("drop", name)) == ["--drop", name]
    assert quoted("plain") == "plain" and quoted("Egg weight") == '"Egg weight"'


# ---- categories ---------------------------------------------------------------------------------


def test_27_subjects_are_told_apart():
    """Each answers in a way of its own; merged, the rarest seven could only be guessed."""
    rng = np.random.default_rng(0)
    n, levels = 540, 27
    subject = rng.integers(0, levels, n)
    answer = np.where((subject * 7 % 27 < 13) ^ (rng.random(n) < 0.04), "left", "right")
    frame = pl.DataFrame({"who": [f"s{i:02d}" for i in subject], "x": rng.normal(size=n)})
    parts = design(Table(frame.with_columns(pl.Series("y", answer)), "t.csv"), "y")
    assert not about_categories(parts)
    estimator, _ = pipeline(parts, gamma="scale", alpha="0.1")
    score = fitonce.assess(estimator, parts.X, parts.y, cv=3, permutations=0).accuracy.value
    assert score > 0.93


def cities(telling):
    """More than a hundred levels, most of them rare, that say much or nothing."""
    rng = np.random.default_rng(0)
    city = np.minimum(rng.geometric(0.02, 300), 180)
    x = rng.normal(size=300)
    score = np.where(city % 2, 1.0, -1.0) if telling else x
    y = np.where(score + 0.3 * rng.normal(size=300) > 0, "a", "b")
    frame = pl.DataFrame({"city": [f"c{i}" for i in city], "x": x, "y": y})
    return design(Table(frame, "t.csv"), "y")


@pytest.mark.parametrize("telling", [False, True])
def test_rare_categories_are_merged_by_held_out_score(telling):
    """The note counts what the encoder would merge; the better of both is kept."""
    parts = cities(telling)
    estimator, (note,) = pipeline(parts, gamma="scale")
    estimator.fit(parts.X, parts.y)
    assert estimator.chosen_ == {
        MERGED: estimator.candidates[estimator.candidate_scores_.argmax()][MERGED]
    }
    merged = estimator.plain({MERGED: RARE})[0].fit(parts.X)
    rare = merged.named_transformers_["categories"].infrequent_categories_[0]
    rows = int(parts.X["city"].is_in(rare.tolist()).sum())
    assert f"of which {len(rare)} have fewer than {RARE} rows ({rows} rows in all)" in note
    fast, notes = pipeline(parts, gamma="scale", effort="fast")
    assert not hasattr(fast, "candidates") and not notes


def test_as_many_categories_as_memory_allows(monkeypatch):
    assert most_levels(400) == most_levels(10**5) == 1000
    assert most_levels(10**6) == 100 and most_levels(10**9) == 20
    monkeypatch.setattr(cli_model, "MOST_LEVELS", 30)
    parts = cities(True)
    estimator, (note,) = pipeline(parts, gamma="scale")
    encoder = estimator[0].fit(parts.X).named_transformers_["categories"]
    rare = encoder.infrequent_categories_[0]
    rows = int(parts.X["city"].is_in(rare.tolist()).sum())
    assert f"the {len(rare)} rarest ({rows} rows) are merged" in note


# ---- texts --------------------------------------------------------------------------------------


def test_numbers_too_large_to_compute_with_count_as_missing():
    remarks = Remarks()
    values = as_number(pl.Series("v", [1.0, 1e300, float("inf"), -2e200]), remarks)
    assert values.to_list() == [1.0, None, None, None]
    assert remarks.lines == [
        "'v': 1 infinite value, treated as missing",
        "'v': 2 numbers beyond 1e+100, too large to compute with, treated as missing",
    ]
    parts = taken_apart(huge=[1e300 + i * 1e290 for i in range(N)], x=np.sin(np.arange(N)))
    assert parts.X.columns == ["x"]


@pytest.mark.parametrize("value", ["inf", "-Infinity"])
def test_an_infinite_target_is_refused_as_such(value):
    y = [str(np.sin(i)) for i in range(N)]
    y[7] = value
    with pytest.raises(UserError, match="'y' is infinite in 1 row"):
        design(Table(pl.DataFrame({"x": np.arange(N) % 7, "y": y}), "t.csv"), "y")


def test_remarks_stand_together():
    remarks = Remarks(["first"])
    for i in range(5):
        remarks.about(f"v{i}", f"{i} gaps", "gaps")
    remarks.add("last")
    assert remarks.lines == [
        "first",
        "'v0': 0 gaps",
        "'v1': 1 gaps",
        "'v2': 2 gaps",
        "'v3', 'v4': the same",
        "last",
    ]


# ---- spreadsheets -------------------------------------------------------------------------------


def test_spreadsheets_are_read(folder):
    pytest.importorskip("fastexcel")
    frame = table().drop("w")
    write_sheets("book.xlsx", data=frame, other=frame.head(5))
    found = read_table("book.xlsx")
    assert found.notes == ["read the first sheet, 'data', of 'data', 'other' (change with --sheet)"]
    for name in frame.columns:
        assert found.frame[name].to_list() == pytest.approx(frame[name].to_list()), name
    assert read_table("book.xlsx", sheet="other").frame.height == 5
    says(run("fit book.xlsx -t label --sheet none"), "no sheet 'none'", "data")
    parts, other = (design(read_table(name), "label") for name in ("book.xlsx", "good.csv"))
    assert parts.X.equals(other.X.select(parts.X.columns))


def test_cells_have_theplainest_type_that_holds_them():
    whole, half = pl.Series([1.0, None, 3.0]), pl.Series([1.0, 2.5])
    day, hour = (pl.Series([datetime(2024, 1, 2, h), None]) for h in (0, 5))
    assert plainest(whole).to_list() == [1, None, 3] and plainest(whole).dtype == pl.Int64
    assert plainest(day).dtype == pl.Date and plainest(day)[0] == date(2024, 1, 2)
    assert plainest(half).equals(half) and plainest(hour).equals(hour)
    endless = pl.Series([1.0, float("inf")])
    assert plainest(endless).equals(endless)


def test_a_missing_reader_of_spreadsheets_is_named(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fastexcel", None)
    (folder / "book.xlsx").write_bytes(b"PK\x03\x04 something")
    says(run("fit book.xlsx -t label"), "pip install 'fitonce[cli]'")


# ---- what is missing is said before the work ---------------------------------------------------


def test_a_program_without_skops_refuses_before_the_work(folder, monkeypatch):
    def none(name):
        raise ImportError("No module named 'skops'")

    monkeypatch.setattr("fitonce.io.contents.importlib.import_module", none)
    result = run("fit good.csv -t label", *FAST)
    says(result, "fitonce[io]")
    assert result.stdout == ""
