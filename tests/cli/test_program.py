"""The program as a whole: exit codes, plain output, interruptions, full disks, help, options."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from helpers_cli import FAST, pl, run, says, table
from typer.testing import CliRunner

import fitonce
import fitonce._public
from fitonce.assessment.render import spread
from fitonce.cli.app import app
from fitonce.cli.show import Bars


def start(*args, **options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    command = [sys.executable, "-m", "fitonce", *map(str, args)]
    return subprocess.Popen(command, text=True, env=environment, **pipes)


def model_and_rows(n):
    """The paths of a model file and of a table with many rows."""
    assert run("fit good.csv -t label --no-page -q", *FAST).exit_code == 0
    frame = table()
    pl.concat([frame] * (n // len(frame) + 1)).write_csv("many.csv")
    return "good-fitonce.skops", "many.csv"


def test_exit_codes_of_the_program(folder):
    """0, 1 and 130 of a process are in the tests below."""
    says(run("fit nowhere.csv -t y"), "nowhere.csv")
    assert run("fit good.csv").exit_code == 2


def test_piped_output_is_plain(folder):
    process = start("evaluate", "good.csv", "-t", "label", *FAST)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0 and "\x1b" not in out + err
    assert "\naccuracy  " in out


# the program in a terminal, with NO_COLOR and without; what takes long is to import it and all
# that it uses
IN_TERMINALS = """
import os, pty, sys
import fitonce.cli.app, sklearn.model_selection

def in_a_terminal(variables):
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(variables)
        sys.argv = ["fitonce", *sys.argv[1:]]
        fitonce.cli.main()
    try:
        while text := os.read(terminal, 1 << 16):
            os.write(1, text)
    except OSError:  # the end, on Linux
        pass
    os.waitpid(pid, 0)

in_a_terminal({})
os.write(1, b"NEXT")
in_a_terminal({"NO_COLOR": "1"})
"""


@pytest.mark.slow
def test_no_color_is_respected(folder):
    pytest.importorskip("pty")
    environment = {**os.environ, "TERM": "xterm-256color", "OMP_NUM_THREADS": "1"}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(
        [sys.executable, "-c", IN_TERMINALS, "evaluate", "good.csv", "-t", "label", *FAST],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )
    shown = done.stdout.split("NEXT")
    assert len(shown) == 2, done.stderr
    for text, colour in zip(shown, (True, False), strict=True):
        colours = re.findall(r"\x1b\[[0-9;]*3[0-7][0-9;]*m", text)
        assert "accuracy" in text and bool(colours) == colour


@pytest.mark.slow
def test_an_interruption_leaves_nothing_half_written(folder):
    before = sorted(os.listdir())
    process = start("fit", "good.csv", "-t", "label", "--repeats", 500, "--no-page")
    assert process.stdout.readline().startswith("fitonce fit")  # the work has begun
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130 and "stopped" in err and "Traceback" not in err
    assert sorted(os.listdir()) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_named(folder):
    with open("/dev/full", "w") as full:
        process = start("predict", *model_and_rows(5000), stdout=full)
        _, err = process.communicate(timeout=600)
    assert process.returncode == 1 and "disk is full" in err and "Traceback" not in err


def test_a_full_disk_leaves_the_old_model(folder, monkeypatch):
    (folder / "good-fitonce.skops").write_bytes(b"old")

    def fail(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    result = run("fit good.csv -t label --no-page --force", *FAST)
    assert result.exit_code == 1 and "the disk is full" in result.stderr
    assert (folder / "good-fitonce.skops").read_bytes() == b"old" and sorted(os.listdir()) == [
        "good-fitonce.skops",
        "good.csv",
    ]


def test_a_reader_that_stops_early_is_no_error(folder):
    process = start("predict", *model_and_rows(20000), "-q")
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.wait(timeout=600)
    assert process.returncode == 0 and not err


def test_a_bug_is_a_sentence_too(folder, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("the moon")

    monkeypatch.setattr("fitonce.cli.run.assess", broken)
    says(run("fit good.csv -t label -q"), "unexpected error", "the moon")


def test_lines_end_where_their_words_end(folder):
    """What a terminal shows can be pasted, and help is not broken in the middle of a line."""
    names = [f"a rather long name of a class, number {k % 4}" for k in range(24)]
    pl.DataFrame({"a": [k * k % 7.5 for k in range(24)], "y": names}).write_csv("wide.csv")
    shown = run("permute wide.csv -t y --permutations 9 --kernel linear").stdout
    assert [line for line in shown.splitlines() if line != line.rstrip()] == []
    lines = [line.strip() for line in run("fit --help").stdout.splitlines()]
    assert "nested" not in lines and "gives" not in lines


def test_help_teaches():
    for command in ("fit", "evaluate", "permute", "predict", "export", "report", "demo"):
        result = run(command, "--help")
        assert (
            result.exit_code == 0
            and "Examples" in result.stdout
            and f"fitonce {command}" in result.stdout
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--permutations", "many"], "--permutations must be auto or a whole number"),
        (["--separator", "xx"], "--separator must be one character"),
        (["--task", "both"], "--task must be one of auto, classification, regression"),
        (["--kernel", "cubic"], "--kernel must be one of"),
        (["--kernel", "rbf,tune"], "--kernel must be one of linear, "),
        (["--alpha", "-1"], "--alpha must be tune or a number above 0"),
        (["--landmarks", "1"], "--landmarks must be auto, none or a whole number above 1"),
        (["--model", "ridge"], "--model ridge cannot be used for classification"),
    ],
)
def test_wrong_values_are_refused_before_anything_is_shown(folder, options, words):
    result = run("fit good.csv -t label", *options)
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
    assert split[:4] == [0, 1, 2, 3] and (19, 19, "permutations") in [words[:3] for words in told]
    assert len({id(words[3]) for words in told}) == 1


def test_columns_complete_in_the_shell(folder):
    from fitonce.cli.table import column_names

    assert column_names("good.csv")[:2] == ["id", "a"] and column_names("nowhere.csv") == []
    environment = {
        **os.environ,
        "_FITONCE_COMPLETE": "complete_bash",
        "COMP_WORDS": "fitonce fit good.csv --target pr",
        "COMP_CWORD": "4",
    }
    code = "import sys; sys.argv = ['fitonce']; from fitonce.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=600
    )
    assert done.stdout.split() == ["price"]


def test_help_does_not_wait_for_scikit_learn():
    code = "import atexit, sys; sys.argv = ['fitonce', '--version']; "
    code += "atexit.register(lambda: print(sorted({'sklearn', 'polars'} & set(sys.modules))))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; from fitonce.cli import main; main()"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stdout.splitlines() == [f"fitonce {fitonce.__version__}", "[]"]
    assert fitonce._public.__all__ == fitonce.__all__
    with pytest.raises(AttributeError, match="nothing"):
        _ = fitonce.nothing


def test_spread_counts_and_ranges():
    assert spread([1.0, 1.0, 1.0]) == "1 in all 3" and spread([1.0]) == "1"
    assert spread([1.0, 2.0, 1.0]) == "1 (2 of 3), 2 (1 of 3)"
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]) == "1 to 5, median 3"


def test_a_fit_imports_no_frameworks(folder):
    """Their import took half of the time of a fit of a small table, where they are installed."""
    code = "import sys; from fitonce.cli.app import app; app(standalone_mode=False); "
    code += "print(sorted({'torch', 'dask', 'cupy', 'jax'} & set(sys.modules)))"
    options = ["fit", "good.csv", "-t", "label", "-q", "--no-page", *FAST]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, options)], capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["good-fitonce.skops", "[]"], done.stderr


def test_the_kernel_of_every_fold_is_shown(folder):
    options = ["--folds", 3, "--permutations", 0, "--no-page", "--kernel", "linear,rbf"]
    shown = run("fit good.csv -t label", *options).stdout
    kernels = re.search(r"kernel in the folds: (.*)", shown).group(1)
    counts = re.findall(r"(linear|rbf)(?: \((\d) of 3\)| in all 3)", kernels)
    found = {kernel: int(number or 3) for kernel, number in counts}
    assert sum(found.values()) == 3
    if 0 < found.get("rbf", 0) < 3:
        assert "gamma in the folds that have one" in shown
