"""Rätsch's thirteen two-class benchmarks.

The sets of table 1 of Saadi, Talbot and Cawley (2007), and their splits.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from .generators import make_ringnorm

ARCHIVE = "benchmarks.mat"
ARCHIVE_URL = (
    "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets/raw/master/benchmarks.mat"
)
ARCHIVE_SHA256 = "47c19e4bc4716edc4077cfa5ea61edf4d02af4ec51a0ecfe035626ae8b561c75"
ARCHIVE_BYTES = 8_912_086
FOLDER_VARIABLE = "FITONCE_RAETSCH"

_TIMEOUT = 60.0
_SPLIT_SEED = 2001

Split = tuple[np.ndarray, np.ndarray]


class Design(NamedTuple):
    """Sizes of one benchmark and how many splits are published."""

    n_features: int
    n_train: int
    n_test: int
    n_splits: int


RAETSCH = {
    "banana": Design(2, 400, 4900, 100),
    "breast_cancer": Design(9, 200, 77, 100),
    "diabetis": Design(8, 468, 300, 100),
    "flare_solar": Design(9, 666, 400, 100),
    "german": Design(20, 700, 300, 100),
    "heart": Design(13, 170, 100, 100),
    "image": Design(18, 1300, 1010, 20),
    "ringnorm": Design(20, 400, 7000, 100),
    "splice": Design(60, 1000, 2175, 20),
    "thyroid": Design(5, 140, 75, 100),
    "titanic": Design(3, 150, 2051, 100),
    "twonorm": Design(20, 400, 7000, 100),
    "waveform": Design(21, 400, 4600, 100),
}
"""Names of the sets with their sizes."""


def fetch_raetsch(
    name: str, *, data_home: str | os.PathLike[str] | None = None, download: bool = False
) -> Bunch:
    """One of Rätsch's benchmarks, from a folder or, when asked to, from the network.

    The folder is `data_home`, else the one that the environment variable FITONCE_RAETSCH names,
    else ``fitonce`` in scikit-learn's data home. It may hold ``<name>.npz`` with X and y, or the
    public archive ``benchmarks.mat`` (https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets,
    MATLAB v7), which `download` puts there after checking its SHA-256. Where there are only .npz
    files, ringnorm is drawn from its formula, ``make_ringnorm(7400, random_state=7)``.

    Parameters
    ----------
    name : str
        A key of `RAETSCH`.
    data_home : str or path, default=None
        The folder.
    download : bool, default=False
        Whether to download the archive (9 MB) if the set is not in the folder.

    Returns
    -------
    Bunch
        ``data``, a float array (n_samples, n_features), as published, not standardized;
        ``target``, an array (n_samples,) of -1 and +1; ``splits``, a list of (train, test) row
        numbers as published, or None where they are not at hand (see `raetsch_splits`); ``name``.
    """
    _check_name(name)
    folder = _folder(data_home)
    if (folder / f"{name}.npz").is_file():
        with np.load(folder / f"{name}.npz") as file:
            return _bunch(name, file["X"], file["y"], None)
    archive = folder / ARCHIVE
    if not archive.is_file() and name == "ringnorm" and any(folder.glob("*.npz")):
        return _bunch(name, *make_ringnorm(7400, random_state=7), None)
    if not archive.is_file() and download:
        _download(archive)
    if not archive.is_file():
        raise FileNotFoundError(
            f"neither {name}.npz nor {ARCHIVE} is in {folder}. Name a folder that has one of them "
            "(data_home, or the environment "
            f"variable {FOLDER_VARIABLE}), or pass download=True to get {ARCHIVE} "
            f"({ARCHIVE_BYTES / 1e6:.0f} MB) from {ARCHIVE_URL}."
        )
    return _read_archive(archive, name)


def raetsch_splits(
    name: str, n_samples: int | None = None, *, start: int = 0, stop: int | None = None
) -> Iterator[Split]:
    """Training and test rows of splits start … stop-1, made by formula: the published ones are in
    the archive only.

    Split s is ``default_rng([2001, s]).permutation(n_samples)``: the first n_train rows train, the
    next n_test are for testing. They have the published sizes; `start` beyond the published number
    gives splits for choosing defaults without seeing these.

    Parameters
    ----------
    name : str
        A key of `RAETSCH`.
    n_samples : int, default=None
        Rows of the set; None takes n_train + n_test.
    start, stop : int, default=0 and None
        Numbers of the splits; None is `start` plus the published number of splits.

    Yields
    ------
    train, test : arrays of row numbers
    """
    _check_name(name)
    design = RAETSCH[name]
    used = design.n_train + design.n_test
    n_samples = used if n_samples is None else n_samples
    if n_samples < used:
        raise ValueError(
            f"n_samples must be at least {used} for {name} ({design.n_train} + {design.n_test}), "
            f"got {n_samples} instead."
        )
    numbers = range(start, start + design.n_splits if stop is None else stop)
    orders = (
        np.random.default_rng([_SPLIT_SEED, number]).permutation(n_samples) for number in numbers
    )
    return ((rows[: design.n_train], rows[design.n_train : used]) for rows in orders)


def _check_name(name: str) -> None:
    if name not in RAETSCH:
        raise ValueError(f"name must be one of {', '.join(RAETSCH)}, got {name!r} instead.")


def _folder(data_home: str | os.PathLike[str] | None) -> Path:
    given = data_home if data_home is not None else os.environ.get(FOLDER_VARIABLE)
    if given:
        return Path(given).expanduser()
    return Path(os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")).expanduser() / "fitonce"


def _bunch(name: str, X: Any, y: Any, splits: list[Split] | None) -> Bunch:
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y).astype(np.int64).ravel()
    if (
        X.ndim != 2
        or X.shape[1] != RAETSCH[name].n_features
        or len(X) != len(y)
        or set(np.unique(y)) != {-1, 1}
    ):
        raise ValueError(
            f"{name} must have {RAETSCH[name].n_features} features and labels -1 and +1, got X of "
            f"shape {X.shape}, {len(y)} labels "
            f"{np.unique(y)[:5].tolist()} instead: this is not the published file."
        )
    return Bunch(data=X, target=y, splits=splits, name=name)


def _read_archive(path: Path, name: str) -> Bunch:
    from scipy.io import loadmat

    entry = loadmat(path, variable_names=[name]).get(name)
    if entry is None:
        raise ValueError(
            f"{path} has no set {name!r}: this is not the published archive. Delete it, and pass "
            "download=True."
        )
    fields = entry[0, 0]
    train, test = (
        np.asarray(fields[key], dtype=np.int64) - 1 for key in ("train", "test")
    )  # MATLAB counts from 1
    return _bunch(name, fields["x"], fields["t"], list(zip(train, test, strict=True)))


def _download(archive: Path) -> None:
    """Fetch the archive; it appears only once it is complete and its hash is right."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    try:
        with urllib.request.urlopen(ARCHIVE_URL, timeout=_TIMEOUT) as response:
            content = response.read(ARCHIVE_BYTES + 1)  # one more, so that a longer file is noticed
    except OSError as error:
        raise OSError(
            f"{ARCHIVE_URL} could not be downloaded ({error}). Download it by hand into a folder, "
            "and name that folder in "
            f"data_home or {FOLDER_VARIABLE}."
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != ARCHIVE_SHA256:
        raise OSError(
            f"{ARCHIVE_URL} has SHA-256 {found}, not {ARCHIVE_SHA256}: the download is "
            "damaged or the file was replaced."
        )
    with tempfile.TemporaryDirectory(prefix=f".{ARCHIVE}.", dir=archive.parent) as folder:
        Path(folder, ARCHIVE).write_bytes(content)
        os.replace(Path(folder, ARCHIVE), archive)
