"""What the program notices in a table: copies, units, time, rare classes, codes, marked numbers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers_cli import FAST, N, pl, read_metadata, run, says, table
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import make_pipeline

from fitonce import ClippedScaler, KernelRidge, load
from fitonce.cli.columns import design
from fitonce.cli.run import SCORES, main_score
from fitonce.cli.show import warnings_of
from fitonce.cli.table import Table, read_table
from fitonce.cli.values import (
    CATEGORY,
    NUMBER,
    all_numbers,
    has_decimal_commas,
    kind_of,
    sentinel,
    target_of,
)
from fitonce.cli.words import Remarks, UserError


def taken_apart(target="y", **columns):
    return design(Table(pl.DataFrame(columns), "t.csv"), target)


def noise(n=60, seed=0):
    return np.random.default_rng(seed).normal(size=n)


def test_copies_stay_in_one_fold(folder):
    """Noise three times over: seen copies would give the answer."""
    frame = pl.DataFrame({"a": noise(), "b": noise(60, 1), "y": ["p", "q"] * 30})
    pl.concat([frame] * 3).write_csv("copies.csv")
    shown = " ".join(run("evaluate copies.csv -t y", *FAST).stdout.split())
    assert "120 of 180 rows repeat another row exactly" in shown
    assert "all rows with the same value" not in shown  # but for their copies
    groups = design(read_table("copies.csv"), "y").groups
    assert len(np.unique(groups)) == 60
    np.testing.assert_array_equal(groups[:60], groups[60:120])
    few = taken_apart(
        a=[i % 3 for i in range(60)], b=[i // 2 % 2 for i in range(60)], y=["p", "q"] * 30
    )
    assert few.groups is None and not few.hints  # equal rows, but no copies


def test_units_are_found_by_what_they_hold():
    plant = np.repeat(np.arange(20), 8)
    y = np.where(np.random.default_rng(1).random(20) < 0.5, "p", "q")[plant]
    parts = taken_apart(plant=[f"p{i}" for i in plant], x=noise(160), y=y)
    assert len(parts.hints) == 1 and "--group plant" in parts.hints[0]
    y[3] = "q" if y[3] == "p" else "p"
    assert not taken_apart(plant=[f"p{i}" for i in plant], x=noise(160), y=y).hints


def test_rows_in_time_are_mentioned():
    walk = np.cumsum(noise(120))
    assert "neighbouring rows" in taken_apart(x=noise(120, 1), y=walk).hints[0]
    assert not taken_apart(x=noise(120, 1), y=np.sort(walk)).hints
    days = [str(np.datetime64("2024-01-01") + 3 * i) for i in range(60)]
    assert "order of 'day'" in taken_apart(day=days, x=noise(), y=["p", "q"] * 30).hints[0]


@pytest.fixture
def walk(folder):
    """Two random walks that know nothing of each other, out of order."""
    rng = np.random.default_rng(0)
    a, y = rng.normal(size=(2, 90)).cumsum(axis=1)
    days = pl.Series(np.datetime64("2022-01-01") + np.arange(90)).cast(pl.Date)
    frame = pl.DataFrame({"day": days, "a": a, "late": (np.arange(90) > 60).astype(int), "y": y})
    frame.write_csv("sorted.csv")
    frame.sample(fraction=1, shuffle=True, seed=1).write_csv("walk.csv")
    return frame


FORWARD = ("-t", "y", "--drop", "late", "--time", "day", "--kernel", "rbf")


def test_later_rows_are_predicted_from_earlier_ones(walk):
    def found(*arguments):
        return json.loads(run("evaluate", *arguments, "--json").stdout)["assessment"]

    forward, same = (
        found(name, *FORWARD, "--permutations", k)
        for name, k in (("walk.csv", 9), ("sorted.csv", 0))
    )
    assert forward["metrics"] == same["metrics"] and forward["metrics"]["r2"] < 0.1
    shuffled = found("sorted.csv", *FORWARD[:4], "--drop", "a", "--permutations", 0)
    assert shuffled["metrics"]["r2"] > 0.8
    assert "5 spans, each predicted from the rows before it" in forward["cv"]
    assert forward["permutation"]["exchange"] == "shift"

    values = pl.read_csv("sorted.csv")["a"].to_numpy()[:, None]
    model = make_pipeline(ClippedScaler(), KernelRidge(cv=TimeSeriesSplit(5)))
    expected = np.full(90, np.nan)
    for train, test in TimeSeriesSplit(5).split(values):
        expected[test] = model.fit(values[train], walk["y"].to_numpy()[train]).predict(values[test])
    error = np.nanmean((expected - walk["y"].to_numpy()) ** 2) ** 0.5
    assert forward["metrics"]["rmse"] == pytest.approx(error, rel=1e-6)


def test_the_order_of_rows_is_kept_with_the_model(walk):
    assert "in the order of 'day'" in run("fit walk.csv", *FORWARD, *FAST, "--no-page").stdout
    known = read_metadata("walk-fitonce.skops")
    assert known["time"] == "day" and [column["name"] for column in known["columns"]] == ["a"]
    assert "R² of this model" not in run("report walk-fitonce.skops walk.csv").stdout
    assert "5 spans" in Path("walk-fitonce.html").read_text(encoding="utf-8")
    assert "R²" in run("compare walk.csv", *FORWARD[:-2], "--models", "rbf,linear").stdout
    assert "by shifts" in run("permute walk.csv", *FORWARD, "--permutations", 9).stdout


def test_what_has_no_order_in_time_is_refused(walk):
    says(run("evaluate walk.csv", *FORWARD, "--group", "a"), "--group and --time")
    says(run("evaluate walk.csv -t late --time day"), "the first 15 rows of 90")
    odd = walk.with_columns(day=pl.Series([f"{1 + k % 9}/{1 + k % 7}/2022" for k in range(90)]))
    odd.write_csv("odd.csv")
    says(run("evaluate odd.csv", *FORWARD), "order of day and month is not known")
    odd.with_columns(day=pl.Series(["x", "y", "z"] * 30)).write_csv("odd.csv")
    says(run("evaluate odd.csv", *FORWARD), "must be a date or a number in every row", "'x'")


def test_rare_classes_weigh_as_much_as_others_with_priors(folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=100) > 1.6, "Yes", "No")
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).write_csv("rare.csv")
    evaluate = ("evaluate", "rare.csv", "-t", "y", "--kernel", "rbf", *FAST)

    def recall(*options):
        said = run(*evaluate, *options, "--json").stdout
        return json.loads(said)["assessment"]["confusion"][1]

    few = recall()
    assert few[1] <= sum(few) / 3
    for options in (["equal"], ["1,1"], ["equal", "--model", "lssvm"]):
        assert recall("--priors", *options)[1] > sum(few) / 2
    scores = {"accuracy": "accuracy", "balanced": "balanced accuracy", "auc": "AUC"}
    for options, led in (([], "balanced"), *((["--score", name], name) for name in scores)):
        lines = run(*evaluate, *options).stdout.splitlines()
        first = next(k for k, line in enumerate(lines) if line.startswith("score "))
        assert lines[first + 1].startswith(scores[led])
    assert (
        main_score(design(read_table("rare.csv"), "y"), {"priors": "equal"}) == SCORES["balanced"]
    )
    command = ("evaluate", "rare.csv", "--priors")
    says(run(*command, "1,2,3", "-t", "y"), "2 numbers separated by commas, for 'No', 'Yes'")
    says(run(*command, "equal", "-t", "a"), "cannot be used with --model ridge")
    pl.DataFrame({"a": X[:, 0], "y": ["p", "q", "r", "q"] * 25}).write_csv("three.csv")
    says(run("evaluate three.csv -t y --score auc", *FAST), "--score auc is for two", "'y' has 3")


def test_a_number_that_alone_predicts_the_target_is_named():
    x = noise()
    y = np.where(x > 0.1, "p", "q")
    assert "'x' predicts 'y' without error" in taken_apart(x=x, z=noise(60, 1), y=y).hints[0]
    y[x.argmax()] = "q"
    assert not taken_apart(x=x, z=noise(60, 1), y=y).hints


def test_two_numbers_out_of_order_are_no_copy_of_the_target():
    y = np.sort(noise())
    hints = taken_apart(x=np.exp(y), z=noise(60, 1), y=y).hints
    assert "'x' predicts 'y' without error" in hints[0]
    swapped = np.exp(y)
    swapped[[30, 31]] = swapped[[31, 30]]
    assert not taken_apart(x=swapped, z=noise(60, 1), y=y).hints


@pytest.mark.parametrize(("n", "named"), [(9, False), (10, True)])
def test_a_copy_is_told_from_chance_from_ten_rows_on(n, named):
    x = np.random.default_rng(0).permutation(n) + 0.5
    y = np.where(x > n / 2, "p", "q")
    assert any("'x' predicts" in hint for hint in taken_apart(x=x, z=noise(n), y=y).hints) == named


@pytest.mark.parametrize(("share", "kind"), [(0.7, CATEGORY), (0.85, NUMBER)])
def test_a_column_of_mostly_numbers_is_one_of_numbers(share, kind):
    texts = [str(0.5 + i) if i < 100 * share else "unknown" for i in range(100)]
    assert kind_of(pl.Series("v", texts)) == kind


@pytest.mark.parametrize(("share", "dates"), [(0.85, False), (0.95, True)])
def test_a_column_of_mostly_dates_is_one_of_dates(share, dates):
    n = 60
    days = [str(np.datetime64("2024-01-01") + (i * 7) % 61) for i in range(n)]
    day = [day if i < share * n else "soon" for i, day in enumerate(days)]
    parts = taken_apart(day=day, x=noise(n), y=["p", "q"] * (n // 2))
    assert any(feature.kind == "days" for feature in parts.features) == dates


@pytest.mark.parametrize(("step", "used"), [(1.5, False), (3.0, True)])
def test_dense_whole_numbers_are_row_numbers(step, used):
    line = [str(int(step * i)) for i in range(N)]
    assert ("line" in taken_apart(line=line, x=noise(N), y=["p", "q"] * (N // 2)).X.columns) == used


@pytest.mark.parametrize(("distinct", "task"), [(20, "classification"), (21, "regression")])
def test_whole_numbers_are_classes_up_to_twenty(distinct, task):
    y = np.arange(distinct * 5) % distinct
    assert taken_apart(x=noise(len(y)), y=y).task == task


@pytest.mark.parametrize(("rarest", "task"), [(2, "regression"), (3, "classification")])
def test_whole_numbers_with_a_rare_value_are_counts(rarest, task):
    y = np.repeat(np.arange(6), [30, 20, 10, 8, 5, rarest])
    parts = taken_apart(x=noise(len(y)), y=y)
    assert parts.task == task and ("like counts" in parts.notes[0]) == (task == "regression")
    assert taken_apart(x=noise(len(y) - rarest), y=y[:-rarest]).task == "classification"  # five
    assert "looks continuous" in taken_apart(x=noise(60), y=np.arange(60) // 2).notes[0]


def test_a_long_tail_is_pointed_out_and_modelled_by_its_logarithm(folder):
    """R² .39 became .79 for prices of 44 to 41,000."""
    x = noise(N)
    y = np.exp(6 + 1.5 * x + 0.2 * noise(N, 1))
    frame = pl.DataFrame({"x": x, "y": y})
    frame.write_csv("t.csv")
    assert any("--log-target" in note for note in taken_apart(x=x, y=y).notes)
    assert not any("--log-target" in note for note in taken_apart(x=x, y=np.log(y) ** 2).notes)
    options = ("--log-target", "--no-page", *FAST)
    assert "log(y) (" in run("fit t.csv -t y", *options).stdout
    command = ("predict", "t-fitonce.skops", "t.csv", "--interval", "0.8")
    found = pl.read_csv(run(*command).stdout.encode())
    expected = np.exp(load("t-fitonce.skops").predict(frame.select("x")))
    np.testing.assert_allclose(found["prediction"], expected, rtol=1e-9)
    inside = found["prediction"].is_between(found["lower_80"], found["upper_80"])
    assert inside.all() and (found["lower_80"] > 0).all()
    scored = json.loads(run("validate t-fitonce.skops t.csv --json").stdout)
    r2 = 1 - np.var(np.log(expected) - np.log(y)) / np.var(np.log(y))
    assert scored["assessment"]["intervals"]["r2"]["value"] == pytest.approx(r2, abs=0.01)
    frame.with_columns(y=pl.col("y") - 500).write_csv("t.csv")
    says(run("evaluate t.csv -t y --log-target"), "needs numbers above 0")


def test_opposite_advice_is_one_hint():
    """Subjects are numbered, first the healthy ones: a copy of the target, or units?"""
    subject = np.repeat(np.arange(20), 6)
    parts = taken_apart(subject=subject, x=noise(120), y=np.where(subject < 10, "p", "q"))
    (hint,) = parts.hints
    assert "--drop subject" in hint and "--group subject" in hint


@pytest.mark.parametrize(("units", "named"), [(5, False), (6, True)])
def test_units_are_told_from_levels_from_six_on(units, named):
    unit = np.repeat(np.arange(units), 12)
    y, x = np.where(unit % 2, "p", "q"), noise(len(unit))
    parts = taken_apart(plant=[f"p{i}" for i in unit], x=x, y=y)
    assert any("--group plant" in hint for hint in parts.hints) == named


@pytest.mark.parametrize(("phi", "named"), [(0.5, False), (0.97, True)])
def test_neighbours_are_alike_from_a_correlation_of_four_fifths(phi, named):
    series = noise(400)
    for i in range(1, 400):
        series[i] += phi * series[i - 1]
    hints = taken_apart(x=noise(400, 1), y=series).hints
    assert any("neighbouring rows" in hint for hint in hints) == named


@pytest.mark.parametrize(("n", "named"), [(28, False), (30, True)])
def test_an_order_in_time_is_told_from_thirty_rows_on(n, named):
    days = [str(np.datetime64("2024-01-01") + 3 * i) for i in range(n)]
    hints = taken_apart(day=days, x=noise(n), y=["p", "q"] * (n // 2)).hints
    assert any("order of 'day'" in hint for hint in hints) == named


def test_a_class_that_is_never_predicted_is_named(folder):
    y = ["rare" if i % 15 == 0 else "usual" for i in range(90)]
    pl.DataFrame({"a": noise(90), "b": noise(90, 1), "y": y}).write_csv("rare.csv")
    shown = run("evaluate rare.csv -t y", *FAST, "--alpha", 100).stdout
    assert "never predicts rare" in shown


def test_an_identifier_with_a_few_repeats_is_no_feature():
    numbers = [100 + 7 * i % 61 for i in range(57)] + [100, 107, 114]
    assert taken_apart(id=numbers, x=noise(), y=["p", "q"] * 30).X.columns == ["x"]


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["57.0%", "3%", "12.5 %"], [57, 3, 12.5]),
        (["$1,234.00", "$15.50", "-$2"], [1234, 15.5, -2]),
        (["1.234,5 €", "2,5 €", "7 €"], [1234.5, 2.5, 7]),
        (["1,234,567", "1,000", "12"], [1234567, 1000, 12]),
        (["1 234", "5", "12 000"], [1234, 5, 12000]),
        (["$1,234", "$12", "$12,000"], [1234, 12, 12000]),
        (["12.50", "3,141", "7"], [12.5, 3141, 7]),
        (["2,5", "12.50", "13.50"], [2.5, 12.5, 13.5]),
        (["1'234.5", "5", "6"], [1234.5, 5, 6]),
    ],
)
def test_marked_numbers_are_numbers(texts, numbers):
    series = pl.Series("v", texts)
    assert kind_of(series) == NUMBER
    assert all_numbers(series).tolist() == numbers
    y, task = target_of(pl.Series("y", texts * 20), "regression", Remarks())
    assert task == "regression" and y[:3].tolist() == numbers


@pytest.mark.parametrize("texts", [["$5", "€6", "$7"], ["5 mg", "6 mg", "7 mg"], ["a", "b", "c"]])
def test_other_texts_are_none(texts):
    assert kind_of(pl.Series("v", texts)) != NUMBER


def test_new_rows_are_read_like_those_of_the_model(folder):
    """A single new row does not show what its comma means."""
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 9, N).round(3)
    frame = pl.DataFrame({"x": [f"{v:.3f}".replace(".", ",") for v in x], "b": rng.normal(size=N)})
    frame.with_columns(y=pl.Series(np.where(x > 5, "p", "q"))).write_csv("t.csv", separator=";")
    with pytest.raises(UserError, match="could be"):
        has_decimal_commas(frame["x"])
    frame = frame.with_columns(x=frame["x"].str.replace(r",(\d\d)\d$", ",$1"))
    frame.with_columns(y=pl.Series(np.where(x > 5, "p", "q"))).write_csv("t.csv", separator=";")
    assert run("fit t.csv -t y -q --no-page", *FAST).exit_code == 0
    one = [run("predict t-fitonce.skops -", input=f"x;b\n{x};0\n") for x in ("8,125", "8.125")]
    assert [answer.stdout.splitlines()[1].split(",")[0] for answer in one] == ["p", "p"]
    assert "decimal commas" not in one[0].stderr  # said when the model was fitted


def test_codes_of_missing_values_are_pointed_out_and_left_out(folder):
    x = np.where(np.arange(N) % 7 == 0, -999, np.arange(N) % 13)
    assert sentinel(pl.Series(x)) == -999 and sentinel(pl.Series(np.arange(1200) - 1000)) is None
    table().with_columns(x=pl.Series(x)).write_csv("coded.csv")
    assert any("--missing -999" in note for note in design(read_table("coded.csv"), "label").notes)
    for values, name in ((x, "coded.csv"), (x + 0.0, "coded.csv"), (x, "coded.parquet")):
        frame = table().with_columns(x=pl.Series(values))
        frame.write_csv(name) if name.endswith("csv") else frame.write_parquet(name)
        assert read_table(name, missing=["-999"]).frame["x"].null_count() == 9


@pytest.mark.parametrize("settings", [(), ("--kernel", "poly"), ("--effort", "best")])
def test_new_rows_far_away_are_predicted_like_the_nearest_and_told(settings, folder):
    """A chemical process: a row 140 standard deviations away once got -1030 for 35 to 46."""
    x = noise(N, 3)
    frame = pl.DataFrame({"x": x, "z": noise(N, 4), "y": 40 + 2 * np.tanh(x) + noise(N, 5) / 4})
    frame.write_csv("t.csv")
    fast = ("--permutations", 0, "--folds", 3, "--no-page", "-q")
    assert run("fit t.csv -t y", *settings, *fast).exit_code == 0
    result = run("predict t-fitonce.skops -", input="z,x\n0,140\n0,-140\n0,1\n")
    said = pl.read_csv(result.stdout.encode())["prediction"]
    low, high = frame["y"].min(), frame["y"].max()
    assert said.is_between(2 * low - high, 2 * high - low).all()
    assert "far outside the training rows: 2 of 3 rows" in result.stderr
    assert "in 'x'; they are predicted like rows at the edge" in result.stderr
    assert not run("predict t-fitonce.skops -", input="z,x\n0,1\n").stderr


def test_settings_that_the_program_chose_are_not_advised_against():
    said = "held-out values may have a relative error of 0.1."
    text = f"{said} Use an alpha of at least 3.1e-05."
    score = SimpleNamespace(value=0.5)
    answer = SimpleNamespace(score=score, n_samples=9, confusion=None, classes=None)
    assert warnings_of([text], answer, {"gamma": "tune", "alpha": "tune"}) == [said]
    assert warnings_of([text], answer, {"gamma": "tune", "alpha": "1e-9"}) == [text]
    slow = "labels (…): the estimator is fitted for every permutation and fold. To avoid this, …"
    assert warnings_of([slow], answer, {}) == []


def test_a_column_has_one_use(folder):
    for role in ("--drop", "--group", "--weight", "--confound"):
        says(run("fit good.csv -t label", role, "label"), "cannot be both --target and")


def test_many_classes_are_asked_about_first():
    classes = [f"c{i % 120}" for i in range(360)]
    with pytest.raises(UserError, match="--task classification"):
        taken_apart(x=noise(360), y=classes)


def test_control_characters_do_not_reach_the_terminal(folder):
    red = "\x1b[31mred"
    frame = table().rename({"colour": red}).with_columns(label=pl.col("label") + "\x1b[2J")
    frame.with_columns(code=pl.Series(["yes", "no"] * 30)).write_csv("t.csv")
    for result in (
        run("evaluate t.csv -t label", *FAST),
        run("evaluate t.csv -t", red, *FAST),
        run("evaluate t.csv -t", "\x1b[5m"),
        run("evaluate", "\x1b[5m.csv", "-t", "label"),
    ):
        assert "\x1b" not in result.output


def test_quiet_gives_the_result_alone(folder):
    score = run("evaluate good.csv -t label -q", *FAST).stdout
    assert len(score.splitlines()) == 1 and score.startswith("0.")
    p = run("permute good.csv -t label -q --permutations 9 --folds 3").stdout
    assert p == "p = 0.1\n"


def test_a_table_that_cannot_be_written_is_refused_first(folder):
    run("fit good.csv -t label -q --no-page", *FAST)
    result = run("predict good-fitonce.skops nowhere.csv -o p.xlsx")
    says(result, "--out must end in .csv")
