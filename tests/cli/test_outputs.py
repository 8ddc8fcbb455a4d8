"""Files that commands write: not over an input or an earlier model, and checked before the work."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from helpers_cli import FAST, run, says

from fitonce import LeastSquaresSVC, load, save

DEAR = ("fitonce.cli.run.assess", "fitonce.cli.run.compare", "fitonce.cli.run.fit_all")


@pytest.fixture
def idle(monkeypatch):
    """Whatever takes long fails the test: a bad place is noticed before."""

    def worked(*_, **__):
        pytest.fail("the work had begun")

    for name in DEAR:
        monkeypatch.setattr(name, worked)


@pytest.fixture
def model(folder):
    """A small model of the table, with the columns a and b."""
    import polars as pl

    frame = pl.read_csv("good.csv")
    estimator = LeastSquaresSVC(gamma=0.5, alpha=0.1).fit(
        frame[["a", "b"]].to_pandas(), frame["label"]
    )
    columns = [{"name": name, "kind": "number", "source": name} for name in ("a", "b")]
    identity = {"target": "label", "task": "classification", "columns": columns}
    return save(estimator, "m.skops", metadata=identity)


COMMANDS = {
    "predict": ("predict", "m.skops", "good.csv"),
    "export": ("export", "m.skops", "--rows", "good.csv"),
    "report": ("report", "m.skops", "good.csv"),
    "compare": ("compare", "good.csv", "-t", "label"),
    "fit": ("fit", "good.csv", "-t", "label"),
}
INPUTS = [
    ("predict", "good.csv"),
    ("predict", "m.skops"),
    ("export", "good.csv"),
    ("export", "m.skops"),
    ("report", "good.csv"),
    ("report", "m.skops"),
]


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize(("command", "name"), INPUTS)
def test_inputs_are_not_overwritten(command, name, linked, model, idle):
    before, out = Path(name).read_bytes(), name
    if linked:
        out = "linked" + Path(name).suffix
        Path(out).symlink_to(name)
    says(run(*COMMANDS[command], "--out", out), f"{out} is an input of this command")
    assert Path(name).read_bytes() == before


def test_a_picture_and_a_report_are_not_written_over_the_table(folder, idle):
    before = Path("good.csv").read_bytes()
    for name, command in (("t.png", "compare"), ("t.html", "fit")):
        Path(name).write_bytes(before)
        options = [name, *COMMANDS[command][2:], "--out", name]
        says(run(command, *options), f"{name} is an input of this command")
        assert Path(name).read_bytes() == before


def test_an_earlier_model_stays_unless_force_is_given(folder, monkeypatch):
    Path("good-fitonce.skops").write_bytes(b"earlier")
    with monkeypatch.context() as patch:
        for name in DEAR:
            patch.setattr(name, lambda *_, **__: pytest.fail("the work had begun"))
        says(run(*COMMANDS["fit"]), "good-fitonce.skops exists already", "--force")
        Path("breast-cancer-fitonce.skops").write_bytes(b"earlier")
        says(run("demo"), "breast-cancer-fitonce.skops exists already")
    assert Path("good-fitonce.skops").read_bytes() == b"earlier"
    run(*COMMANDS["fit"], "--force", "--no-page", *FAST)
    assert load("good-fitonce.skops").predict is not None


PLACES = {
    "a folder": ("there.csv", "it is a folder"),
    "in a file": ("good.csv/x.csv", "good.csv is not a folder"),
    "far in a file": ("good.csv/x/x.csv", "good.csv is not a folder"),
    "a long name": ("n" * 256 + ".csv", "File name too long"),
}


@pytest.mark.parametrize("command", ["predict", "export", "report", "compare", "fit"])
@pytest.mark.parametrize("place", PLACES)
def test_places_that_cannot_be_written_are_noticed_first(place, command, model, idle):
    name, reason = PLACES[place]
    name = name.replace(".csv", {"compare": ".png", "fit": ".skops"}.get(command, ".csv"))
    name = name.replace("good.png", "good.csv").replace("good.skops", "good.csv")
    Path("there" + Path(name).suffix).mkdir()
    says(run(*COMMANDS[command], "--out", name), "cannot be written", reason)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_gets_the_table(model):
    os.mkfifo("pipe.csv")
    found = []
    reader = threading.Thread(
        target=lambda: found.append(Path("pipe.csv").read_bytes()), daemon=True
    )
    reader.start()
    result = run(*COMMANDS["predict"], "--out", "pipe.csv")
    reader.join(timeout=60)
    assert result.exit_code == 0 and Path("pipe.csv").is_fifo()
    assert found[0].count(b"\n") > 50
