"""Data sets as tables.

They come with scikit-learn, are simulated, or are Rätsch's benchmarks if these are installed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import sklearn.datasets

from .. import datasets
from .errors import UserError
from .screen import Screen
from .tables import Table, check_folder, write_table

EMBEDDED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "breast-cancer": (
        sklearn.datasets.load_breast_cancer,
        "diagnosis",
        "569 biopsies, benign or malignant, 30 measurements",
    ),
    "wine": (
        sklearn.datasets.load_wine,
        "cultivar",
        "178 wines of three cultivars, 13 measurements",
    ),
    "iris": (sklearn.datasets.load_iris, "species", "150 flowers of three species, 4 measurements"),
    "diabetes": (
        sklearn.datasets.load_diabetes,
        "progression",
        "442 patients, progression of diabetes after one year (regression)",
    ),
}


def embedded(name: str) -> pl.DataFrame:
    """A data set of scikit-learn, with the named target in the last column."""
    loader, target, _ = EMBEDDED[name]
    bunch = loader()
    columns = [
        str(feature).replace(" (cm)", "").replace("/", " per ").replace(" ", "_")
        for feature in bunch.feature_names
    ]
    names = bunch.get("target_names")
    y = bunch.target if names is None else names[bunch.target]
    return _frame(bunch.data, columns, y, target)


def _frame(X: Any, columns: list[str], y: Any, target: str) -> pl.DataFrame:
    features = pl.DataFrame(np.asarray(X), schema=columns)
    return features.with_columns(pl.Series(target, np.asarray(y).tolist()))


def demo_table() -> Table:
    """The data of `demo`."""
    return Table(
        embedded("breast-cancer"),
        "breast cancer",
        ["data: Wisconsin breast cancer (Street, Wolberg and Mangasarian 1993), from scikit-learn"],
    )


def drawn() -> dict[str, Callable[..., Any]]:
    """The generators of the library, by name."""
    return {
        name.removeprefix("make_"): getattr(datasets, name)
        for name in datasets.__all__
        if name.startswith("make_")
    }


def list_datasets(screen: Screen) -> None:
    """List all names with descriptions."""
    entries = [(name, "embedded", said) for name, (_, _, said) in EMBEDDED.items()]
    for name, make in drawn().items():
        about, error = (inspect.getdoc(make) or "").split("\n")[0], datasets.BAYES_ERROR.get(name)
        law = f" Bayes error {error:.2%}." if isinstance(error, float) else ""
        entries.append((name, "drawn", about + law))
    where = "from the folder given by FITONCE_RAETSCH"
    entries += [
        (f"raetsch/{name}", "on file", f"Rätsch's benchmark, {size.n_features} features; {where}")
        for name, size in datasets.RAETSCH.items()
    ]
    screen.show(
        screen.table("name", "source", "what it is", rows=entries),
        "To write one as a table: fitonce datasets torus --rows 500 --out torus.csv",
    )
    listed = [dict(zip(("name", "source", "about"), entry, strict=True)) for entry in entries]
    screen.json({"command": "datasets", "datasets": listed})


def write_dataset(screen: Screen, name: str, rows: int, seed: int, out: str | None) -> None:
    """Write a data set as a table, to a file or to standard output."""
    if out is not None:
        check_folder(Path(out).parent)
    screen.files(write_table(dataset(name, rows, seed), out))


def dataset(name: str, rows: int, seed: int) -> pl.DataFrame:
    """A data set; columns without names are called x1, x2, … and the target y."""
    if name in EMBEDDED:
        return embedded(name)
    if name in drawn():
        X, y = drawn()[name](rows, random_state=seed)[:2]
    elif name.removeprefix("raetsch/") in datasets.RAETSCH:
        bunch = datasets.fetch_raetsch(name.removeprefix("raetsch/"))
        X, y = bunch.data, bunch.target
    else:
        known = ", ".join([*EMBEDDED, *drawn(), "raetsch/banana"])
        raise UserError(
            f"there is no data set {name!r}. The names are {known} and the other benchmarks of "
            "raetsch/."
        )
    return _frame(X, [f"x{number + 1}" for number in range(X.shape[1])], y, "y")
