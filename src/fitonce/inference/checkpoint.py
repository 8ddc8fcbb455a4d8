"""Checkpoints of a long run: the results so far, and a fingerprint of the test, so that the file of
another test is refused.

A checkpoint is one NumPy archive without pickled objects. It is written under a temporary name and
then renamed. An interruption or a full disk leaves the last complete block, and two processes that
share a file do not disturb each other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core.atomic import atomic_file

FORMAT = "fitonce permutation test 2"


def check_place(path: str | Path | None) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    if path is None:
        return
    target = Path(path)
    folder = Path(os.path.realpath(target)).parent
    if target.is_dir():
        reason = "it is a folder: give the name of a file"
    elif not folder.is_dir():
        reason = f"there is no folder {folder}: create it first"
    elif not os.access(folder, os.W_OK | os.X_OK):
        reason = f"permission denied in {folder}"
    else:
        return
    raise ValueError(f"the checkpoint {path} cannot be written: {reason}.")


def save(
    path: Path, mark: str, done: int, scores: Mapping[str, Any], null: Mapping[str, np.ndarray]
) -> None:
    """Write everything to a temporary file, then replace the file."""
    names = list(null)
    arrays = {f"null_{number}": null[name] for number, name in enumerate(names)}
    arrays |= {f"score_{number}": np.asarray(scores[name]) for number, name in enumerate(names)}
    header = json.dumps({"format": FORMAT, "fingerprint": mark, "done": done, "names": names})
    with atomic_file(path) as temporary, open(temporary, "wb") as file:
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
