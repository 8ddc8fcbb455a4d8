"""Damaged model files, damaged tables, and kills: what happens, counted over random cases.

Every case is drawn from its seed and runs in a process of its own making, which may crash, run out
of memory (4 GiB) or of time without harm to the others.

    python benchmarks/attacks.py models --count 2000   # files changed in bytes, arrays or words
    python benchmarks/attacks.py tables --count 4000   # tables cut, changed, garbled
    python benchmarks/attacks.py kills --count 100     # while a model is written over another

A model file is refused or predicts; a table is read or refused in words; after a kill the file is
the old model or the new one. Everything else is listed by its seed.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import multiprocessing as mp
import os
import resource
import signal
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import common
import numpy as np

MEMORY, SECONDS = 4 << 30, 60.0
FINE = {
    "models": ("refused", "predicts"),
    "tables": ("refused", "read"),
    "kills": ("old", "new"),
}


# ---- model files ---------------------------------------------------------------------------------


@cache
def models() -> list[bytes]:
    """Files of a pipeline, a committee, a model on landmarks and a regression."""
    from sklearn.pipeline import make_pipeline

    import fitonce

    X, y = rows()
    fitted = [
        make_pipeline(fitonce.ClippedScaler(), fitonce.KernelFisherDiscriminant()).fit(X, y),
        fitonce.KernelCommitteeClassifier().fit(X, y),
        fitonce.LeastSquaresSVC(gamma=0.1, alpha=0.1, landmarks=10).fit(X, y),
        fitonce.KernelRidge().fit(X, X[:, 0]),
    ]
    with tempfile.TemporaryDirectory() as folder:
        return [fitonce.save(m, Path(folder) / "model.skops").read_bytes() for m in fitted]


def rows() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(40, 3))
    return X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)


def damaged_model(rng: np.random.Generator) -> bytes:
    archive = models()[rng.integers(len(models()))]
    if rng.random() < 0.2:
        return changed_bytes(archive, rng)
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    arrays = [name for name in members if name.endswith(".npy")]
    if arrays and rng.random() < 0.5:
        name = arrays[rng.integers(len(arrays))]
        members[name] = changed_array(members[name], rng)
    else:
        members["schema.json"] = changed_words(members["schema.json"], rng)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return target.getvalue()


def changed_array(member: bytes, rng: np.random.Generator) -> bytes:
    """Fewer rows, other numbers, another shape or another type."""
    A = np.load(io.BytesIO(member), allow_pickle=False)
    others: list[Callable[[], np.ndarray]] = [
        lambda: A[:-1] if A.ndim else A,
        lambda: np.full(A.shape, rng.choice([np.nan, np.inf, -1.0, 1e300])),
        lambda: np.concatenate([A.ravel()] * 3),
        lambda: A.astype("U9"),
        lambda: np.zeros((0, *A.shape[1:])),
        lambda: A.reshape(1, *A.shape),
        lambda: rng.integers(-(2**62), 2**62, A.shape),
    ]
    target = io.BytesIO()
    np.save(target, others[rng.integers(len(others))](), allow_pickle=False)
    return target.getvalue()


def changed_words(schema: bytes, rng: np.random.Generator) -> bytes:
    """A value of the description is replaced by one from elsewhere in it, or by a constant."""
    content = json.loads(schema)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in list(items):
            places.append((node, key))
            if isinstance(value, (dict, list)):
                walk(value)

    walk(content)
    node, key = places[rng.integers(len(places))]
    other, its = places[rng.integers(len(places))]
    constants = [None, -1, 10**12, "", "numpy.linalg.inv", [], {}, "1e999"]
    given = other[its] if rng.random() < 0.5 else constants[rng.integers(len(constants))]
    node[key] = json.loads(json.dumps(given))
    return json.dumps(content).encode()


def changed_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed, or the end cut off."""
    if rng.random() < 0.3:
        return content[: rng.integers(len(content))]
    changed = bytearray(content)
    for place in rng.integers(len(content), size=rng.integers(1, 20)):
        changed[place] = rng.integers(256)
    return bytes(changed)


def model_case(seed: int, folder: Path) -> str:
    import fitonce

    path = folder / "damaged.skops"
    path.write_bytes(damaged_model(np.random.default_rng(seed)))
    try:
        model = fitonce.load(path)
    except (ValueError, TypeError, OSError):
        return "refused"
    for method in ("predict", "predict_proba"):
        if hasattr(model, method):
            try:
                getattr(model, method)(rows()[0])
            except (ValueError, TypeError, AttributeError, IndexError, KeyError):
                return "refused"
    return "predicts"


# ---- tables --------------------------------------------------------------------------------------


@cache
def tables() -> dict[str, bytes]:
    """One table in every format that the program reads."""
    import polars as pl

    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "size": rng.normal(size=30).round(3),
            "count": rng.integers(0, 99, 30),
            "color": rng.choice(["red", "grün", 'a "b", c', ""], 30),
            "day": [f"2024-01-{1 + k:02d}" for k in range(30)],
            "kind": rng.choice(["x", "y"], 30),
        }
    )
    plain = frame.write_csv().encode()
    found = {".csv": plain, ".csv.gz": gzip.compress(plain)}
    found[".tsv"] = frame.write_csv(separator="\t").encode()
    for ending, write in ((".parquet", frame.write_parquet), (".arrow", frame.write_ipc)):
        target = io.BytesIO()
        write(target)
        found[ending] = target.getvalue()
    return found


def garbled(content: bytes, rng: np.random.Generator) -> bytes:
    """A text file with pieces moved, repeated, or in another encoding."""
    start, stop = np.sort(rng.integers(len(content), size=2))
    piece = content[start:stop]
    others = [
        content[:start] + content[stop:],
        content[:start] + piece * 3 + content[stop:],
        content.replace(b"\n", rng.choice([b"\r", b"\r\n", b"\n\n", b""])),
        content.replace(b",", rng.choice([b";", b"\t", b",,", b'"'])),
        content.decode().encode("utf-16"),
        b"\xef\xbb\xbf" + content[:start],
        content[:start] + b"\x00\x1b[2J" + content[start:],
    ]
    return others[rng.integers(len(others))]


def table_case(seed: int, folder: Path) -> str:
    """What the program says of a damaged table; the fit itself is left out."""
    from fitonce.cli.errors import UserError
    from fitonce.cli.table import read_table

    rng = np.random.default_rng(seed)
    ending = list(tables())[rng.integers(len(tables()))]
    content = tables()[ending]
    text = ending in (".csv", ".tsv") and rng.random() < 0.6
    path = folder / f"damaged{ending}"
    path.write_bytes((garbled if text else changed_bytes)(content, rng))
    try:
        read_table(str(path))
    except UserError:
        return "refused"
    return "read"


# ---- kills ---------------------------------------------------------------------------------------


def kill_case(seed: int, folder: Path) -> str:
    """The model in a file after its writer was killed."""
    import fitonce

    path = folder / "model.skops"
    X, y = rows()
    old, new = (fitonce.LeastSquaresSVC(gamma=0.1, alpha=a).fit(X, y > 0) for a in (0.1, 9.0))
    fitonce.save(old, path)
    writer = os.fork()
    if not writer:
        fitonce.save(new, path)
        os._exit(0)
    time.sleep(np.random.default_rng(seed).uniform(0, 0.03))
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    left = [one for one in folder.iterdir() if one != path]
    alpha = fitonce.load(path).alpha_
    found = {0.1: "old", 9.0: "new"}.get(alpha, f"alpha {alpha}")
    return found if len(left) <= 1 else f"{found}, {len(left)} files left"


# ---- many of them --------------------------------------------------------------------------------

CASES = {"models": model_case, "tables": table_case, "kills": kill_case}


def worker(name: str, connection: Any) -> None:
    """Cases by their seeds, until the other end says None."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    while (seed := connection.recv()) is not None:
        with tempfile.TemporaryDirectory() as folder:
            try:
                connection.send(CASES[name](seed, Path(folder)))
            except Exception as error:
                connection.send(f"{type(error).__name__}: {error}"[:200])


def outcomes(name: str, first: int, count: int) -> dict[int, str]:
    """The outcome of every seed; processes that end or do not answer are replaced."""
    found: dict[int, str] = {}
    process, connection = started(name)
    for seed in range(first, first + count):
        connection.send(seed)
        try:
            answered = connection.poll(SECONDS)
            found[seed] = connection.recv() if answered else "no answer"
        except EOFError:
            process.join()
            answered, found[seed] = False, f"the process ended with code {process.exitcode}"
        if not answered:
            process.kill()
            process, connection = started(name)
        common.progress(seed - first + 1, count, name)
    connection.send(None)
    process.join()
    return found


def started(name: str) -> tuple[Any, Any]:
    ours, theirs = mp.Pipe()
    process = mp.get_context("spawn").Process(target=worker, args=(name, theirs))
    process.start()
    theirs.close()
    return process, ours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=list(CASES))
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    given = parser.parse_args()
    found = outcomes(given.what, given.seed, given.count)
    counts = Counter(found.values())
    others = {seed: said for seed, said in found.items() if said not in FINE[given.what]}
    for said, number in counts.most_common():
        print(f"{number:6d}  {said}")
    result = {"first_seed": given.seed, "cases": len(found), "counts": dict(counts)}
    name = f"attacks_{given.what}"
    common.write(__file__, {**result, "others": {str(k): v for k, v in others.items()}}, name)


if __name__ == "__main__":
    main()
