"""What the benchmark scripts share.

Pinned threads, interleaved timing, results as JSON beside the script's name.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

# before NumPy is imported: contended cores make threaded LAPACK erratic
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

RESULTS = Path(__file__).parent / "results"
PACKAGES = [
    "numpy",
    "scipy",
    "sklearn",
    "himalaya",
    "mne",
    "mapie",
    "lightgbm",
    "xrfm",
    "torch",
    "cupy",
]


def interleaved(
    repeats: int, clock: Callable[[], float] = time.perf_counter, **tasks: Callable[[], Any]
) -> dict[str, float]:
    """The shortest time of each task over rounds in which all of them run in turn, so that load
    hits them alike; `clock` may be that of the processor, which load disturbs less.
    """
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(repeats):
        for name, task in tasks.items():
            start = clock()
            task()
            best[name] = min(best[name], clock() - start)
    return best


def gather(
    task: Callable[..., Any], wanted: list[tuple[Any, ...]], jobs: int, minutes: float
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """`task(*key)` for every key, some at a time, as they are finished, until the time is over."""
    end = time.monotonic() + 60.0 * minutes
    with ProcessPoolExecutor(jobs) as pool:
        tasks = {pool.submit(task, *key): key for key in wanted}
        for done, one in enumerate(as_completed(tasks), 1):
            yield tasks[one], one.result()
            progress(done, len(tasks))
            if time.monotonic() > end:
                pool.shutdown(wait=False, cancel_futures=True)
                break


def record(script: str, results: dict[str, Any]) -> dict[str, Any]:
    """Results with the script that made them (and the entry of its list: "models.py forty"), the
    day, the commit, the processor, the versions of everything that took part, the threads and the
    hashes of the code (provenance.py).
    """
    import provenance

    script = f"benchmarks/{script}"
    return {
        "script": script,
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "processor": processor(),
        "versions": {"python": platform.python_version(), **versions()},
        "threads": os.environ["OMP_NUM_THREADS"],
        "inputs": provenance.inputs(script),
        **results,
    }


def write(script: str, results: dict[str, Any], name: str | None = None) -> Path:
    """The record as JSON; the file has the script's name, or another one.

    Written atomically, floats with six digits, a line for each value of the first two levels.
    """
    file, _, entry = script.partition(" ")
    path = RESULTS / f"{name or Path(file).stem}.json"
    temporary = path.with_suffix(".tmp")
    made = record(f"{Path(file).name} {entry}".strip(), results)
    temporary.write_text(compact(made) + "\n", encoding="utf-8")
    temporary.replace(path)
    return path


def compact(record: dict[str, Any], levels: int = 2) -> str:
    """JSON with a line for each value of the upper levels, floats with six digits."""
    if levels and isinstance(record, dict) and record:
        lines = (f"{json.dumps(key)}: {compact(v, levels - 1)}" for key, v in record.items())
        return "{\n" + ",\n".join(lines) + "\n}"
    return json.dumps(rounded(record), ensure_ascii=False)


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): rounded(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return float(f"{value:.6g}") if isinstance(value, float) else value


def versions() -> dict[str, str]:
    """Of the packages that were imported."""
    imported = [name for name in PACKAGES if name in sys.modules or name in ("numpy", "scipy")]
    return {name: str(importlib.import_module(name).__version__) for name in imported}


def commit() -> str:
    """Of the checkout, or what FITONCE_COMMIT says where the code is a copy."""
    command = ["git", "-C", str(RESULTS), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True)
    return os.environ.get("FITONCE_COMMIT") or done.stdout.strip()


def processor() -> str:
    """Its name, as Linux tells it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def progress(done: int, total: int, label: str = "") -> None:
    """One line on a terminal, nothing elsewhere."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{label} {done}/{total}", end=end, file=sys.stderr, flush=True)
