"""Checkpoints of a long run: the results so far, and a fingerprint of the test, so that the file of
another test is refused.

A checkpoint is one NumPy archive without pickled objects. It is written whole
or not at all. An interruption or a full disk leaves the last complete block, and two processes that
share a file do not disturb each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core.atomic import atomic_file, is_stream
from ..core.atomic import check_place as check_writable
from .validity import draws_anew

FORMAT = "fitonce permutation test 3"


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


def check_resumable(random_state: Any, cv: Any, enumerated: bool) -> None:
    """Refuse draws and folds that a later run would not make again."""
    if not enumerated and not isinstance(random_state, (int, np.integer)):
        raise ValueError(
            f"checkpoint needs an integer random_state, got {random_state!r} instead: otherwise "
            "the same permutations cannot be drawn again."
        )
    if draws_anew(cv) or (getattr(cv, "shuffle", False) and getattr(cv, "random_state", 0) is None):
        raise ValueError(
            "checkpoint needs reproducible folds: give the splitter an integer random_state."
        )


@dataclass(frozen=True)
class Checkpoint:
    """The file of the test with this fingerprint."""

    path: Path
    mark: str

    def save(self, results: Mapping[str, np.ndarray]) -> None:
        """Replace the file by one with everything so far."""
        names = list(results)
        arrays = {f"result_{number}": results[name] for number, name in enumerate(names)}
        header = json.dumps({"format": FORMAT, "fingerprint": self.mark, "names": names})
        with atomic_file(self.path) as file:
            np.savez(file, header=np.array(header), **arrays)  # type: ignore[arg-type]

    def load(self, most: int, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
        """The results by name, as many of each as are complete, none if there is no file yet.

        There are at most `most`, each of the given shape.
        """
        if not self.path.exists():
            return {}
        if not self.path.stat().st_size:
            raise ValueError(
                f"the checkpoint {self.path} is empty: it was not written by a run. Use another "
                "file, or delete it to start over."
            )
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                header = json.loads(str(archive["header"]))
                names = header["names"]
                results = {name: archive[f"result_{i}"] for i, name in enumerate(names)}
                mine = (header["format"], header["fingerprint"]) == (FORMAT, self.mark)
        except Exception as error:  # damaged archives raise nearly anything
            raise ValueError(
                f"{self.path} cannot be read as a checkpoint ({error}): it is damaged, or another "
                "kind of file. Use another file, or delete it to start over."
            ) from error
        if not mine:
            raise ValueError(
                f"the checkpoint {self.path} belongs to another test: data, column names, "
                "estimator, splits, scoring, options or the versions of fitonce, scikit-learn, "
                "NumPy and SciPy differ from the run that wrote it. Use another file, or delete it "
                "to start over."
            )
        done = len(next(iter(results.values()))) if results else 0
        expected = {name: (done, *shape) for name, shape in shapes.items()}
        if done > most or {name: A.shape for name, A in results.items()} != expected:
            raise ValueError(
                f"the checkpoint {self.path} is damaged: it does not contain the scores of "
                f"{' and '.join(shapes)} for at most {most} results. Delete it to start over."
            )
        return results
