"""Checkpoints of a long run: the results so far, and a fingerprint of the test, so that the file of
another test is refused.

A checkpoint is one NumPy archive without pickled objects. It is written whole
or not at all. An interruption or a full disk leaves the last complete block, and two processes that
share a file do not disturb each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core.atomic import atomic_file, is_stream
from ..core.atomic import check_place as check_writable

FORMAT = "fitonce permutation test 2"


def check_place(path: str | Path | None) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    if path is None:
        return
    if is_stream(path):
        raise ValueError(f"the checkpoint {path} must be a file, not a pipe or a device.")
    try:
        check_writable(path)
    except OSError as error:
        raise ValueError(f"the checkpoint {error}") from error


def save(
    path: Path, mark: str, done: int, scores: Mapping[str, Any], null: Mapping[str, np.ndarray]
) -> None:
    """Replace the file by one with everything so far."""
    names = list(null)
    arrays = {f"null_{number}": null[name] for number, name in enumerate(names)}
    arrays |= {f"score_{number}": np.asarray(scores[name]) for number, name in enumerate(names)}
    header = json.dumps({"format": FORMAT, "fingerprint": mark, "done": done, "names": names})
    with atomic_file(path) as file:
        np.savez(file, header=np.array(header), **arrays)  # type: ignore[arg-type]


def load(path: Path, mark: str) -> tuple[int, dict[str, np.ndarray]] | None:
    """The number of completed labelings and their scores, or None if there is no file yet."""
    if not path.exists():
        return None
    if not path.stat().st_size:
        raise ValueError(
            f"the checkpoint {path} is empty: it was not written by a run. Use another file, or "
            "delete it to start over."
        )
    try:
        with np.load(path, allow_pickle=False) as archive:
            header = json.loads(str(archive["header"]))
            null = {name: archive[f"null_{number}"] for number, name in enumerate(header["names"])}
            done = int(header["done"])
            mine = (header["format"], header["fingerprint"]) == (FORMAT, mark)
    except Exception as error:  # damaged archives raise nearly anything
        raise ValueError(
            f"{path} cannot be read as a checkpoint ({error}): it is damaged, or another kind of "
            "file. Use another file, or delete it to start over."
        ) from error
    if not mine:
        raise ValueError(
            f"the checkpoint {path} belongs to another test: data, column names, estimator, "
            "splits, scoring, options or the versions of fitonce, scikit-learn, NumPy and SciPy "
            "differ from the run that wrote it. Use another file, or delete it to start over."
        )
    if any(len(scores) != done for scores in null.values()):
        raise ValueError(
            f"the checkpoint {path} is damaged: it does not contain as many scores as it claims. "
            "Delete it to start over."
        )
    return done, null
