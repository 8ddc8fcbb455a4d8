"""A table, and the program run on it."""

from __future__ import annotations

import numpy as np
import pytest

pl = pytest.importorskip("polars")
pytest.importorskip("typer")
pytest.importorskip("skops")

from typer.testing import CliRunner  # noqa: E402

from fitonce.cli.app import app  # noqa: E402
from fitonce.io.saving import read_metadata  # noqa: E402

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


def run(*args, input=None):
    result = CliRunner().invoke(app, [str(arg) for arg in args], input=input)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def names_of(model):
    return [column["name"] for column in read_metadata(model)["columns"]]


def says(result, *words, code=1):
    """One sentence on standard error, and the exit code."""
    assert result.exit_code == code, result.output
    assert len(result.stderr.strip().splitlines()) == 1 and result.stderr.startswith("fitonce: ")
    assert all(word in result.stderr for word in words), result.stderr


__all__ = ["FAST", "N", "names_of", "pl", "read_metadata", "run", "says", "table"]
