"""Damaged files, odd tables, kills, interrupts, scripts in names: what happens, counted over random
cases.

Every case is drawn from its seed and runs in a process of its own making, which may crash, run out
of memory (4 GiB) or of time without harm to the others.

    python benchmarks/attacks.py models --count 2000   # files changed in bytes, arrays or words
    python benchmarks/attacks.py tables --count 4000   # tables cut, changed, garbled
    python benchmarks/attacks.py odd --count 4000      # odd values, read, fitted and predicted
    python benchmarks/attacks.py kills --count 100     # while a model is written over another
    python benchmarks/attacks.py interrupts --count 100
    python benchmarks/attacks.py pages --count 100     # HTML and scripts in names and values
    python benchmarks/attacks.py sliding --count 200   # in MNE's estimators, against loops
    python benchmarks/attacks.py targets --count 200   # beside himalaya's KernelRidgeCV

A model file is refused or predicts; a table is read or refused in words, never with an "unexpected
error"; after a kill or an interrupt the file is the old model or the new one, and nothing else is
left; nothing of a page's data becomes markup; our classifiers in MNE's SlidingEstimator and
GeneralizingEstimator give what literal loops give; a ridge with an alpha for each target predicts
what himalaya's does at the same alphas, and its alphas are the best by literal solutions.
Everything else is listed by its seed.
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
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import common
import numpy as np

MEMORY, SECONDS = 4 << 30, 60.0
FINE = {
    "models": ("refused", "predicts"),
    "tables": ("refused", "read"),
    "odd": ("refused", "predicts"),
    "kills": ("old", "new"),
    "interrupts": ("old", "new"),
    "pages": ("escaped",),
    "sliding": ("equal",),
    "targets": ("equal", "alphas differ where the two averages do"),
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
    from fitonce.cli.table import read_table
    from fitonce.cli.words import UserError

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


VALUES = (
    *("NA", "1", "2.5", "-3", "1,5", "1.234,5", "$5", "5%", "inf", "-inf", "nan", "1e400", "1e300"),
    *("2024-01-05", "05/06/2024", "31.12.23", "10:30", "abc", "true", "False", "ü", "\x1b[31m"),
    *("0x10", "1_000", "٣", "½", "1'000", "--", "+", "1e", "9" * 24, "2024-13-45", "0000-00-00"),
    *("yes", "'", '"', "-999", "<b>x</b>", "=1+1", "\u202e", "1E5", "0", "-0.0", "00", "1.", ".5"),
    *("5.", "12:00:61", "", "1 234", "x,y"),
)
ROLES = ("group", "weight", "confound", "categorical", "keep", "task", "time", "drop", "priors")


def odd_table(rng: np.random.Generator) -> tuple[Any, list[str]]:
    """A table with columns of a few odd values each, under odd names, and options for it."""
    import polars as pl

    n, width = int(rng.choice([3, 8, 15, 30, 60])), int(rng.integers(2, 7))
    names = [
        str(rng.choice([f"c{i}", f"c {i}", f"É{i}", f'"{i}', f"c{i}\n"])) for i in range(width)
    ]
    columns: dict[str, Any] = {}
    for name in names:
        columns[name] = rng.choice(rng.choice(VALUES, rng.integers(1, 5)), n).tolist()
    columns["n"] = rng.normal(size=n).tolist()
    columns["k"] = rng.choice(["p", "q", "r"], n).tolist()
    role, target = str(rng.choice(ROLES)), str(rng.choice([*names, "n", "k", "k"]))
    value = {"task": "regression", "priors": "equal"}.get(role, str(rng.choice(names)))
    return pl.DataFrame(columns), ["--target", target, f"--{role}", value]


def odd_case(seed: int, folder: Path) -> str:
    """What the program says of an odd table, by its own exit code and words."""
    from typer.testing import CliRunner

    from fitonce.cli.app import app

    rng = np.random.default_rng(seed)
    frame, options = odd_table(rng)
    path, model = folder / "odd.csv", folder / "odd.skops"
    frame.write_csv(path)
    fast = ["--alpha", "1", "--gamma", "scale", "--folds", "3", "--permutations", "0", "--no-page"]
    fit = ["fit", str(path), *options, *fast, "--effort", "fast", "--out", str(model)]
    for command in (fit, ["predict", str(model), str(path)]):
        result = CliRunner().invoke(app, command)
        if "unexpected error" in result.output or result.exit_code not in (0, 1):
            return f"code {result.exit_code}: {result.output[-150:]}"
        if result.exit_code:
            return "refused"
    return "predicts"


# ---- kills ---------------------------------------------------------------------------------------


def kill_case(seed: int, folder: Path, blow: int = signal.SIGKILL) -> str:
    """The model in a file after its writer was killed."""
    import fitonce

    path = folder / "model.skops"
    X, y = rows()
    old, new = (fitonce.LeastSquaresSVC(gamma=0.1, alpha=a).fit(X, y > 0) for a in (0.1, 9.0))
    fitonce.save(old, path)
    writer = os.fork()
    if not writer:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            fitonce.save(new, path)
        finally:
            os._exit(0)
    time.sleep(np.random.default_rng(seed).uniform(0, 0.1))
    os.kill(writer, blow)
    os.waitpid(writer, 0)
    left = [one for one in folder.iterdir() if one != path]
    alpha = fitonce.load(path).alpha_
    found = {0.1: "old", 9.0: "new"}.get(alpha, f"alpha {alpha}")
    return found if len(left) <= (blow == signal.SIGKILL) else f"{found}, {len(left)} files left"


def interrupt_case(seed: int, folder: Path) -> str:
    """The same after Ctrl-C, which leaves nothing behind."""
    return kill_case(seed, folder, signal.SIGINT)


# ---- scripts in names and values -----------------------------------------------------------------

SCRIPTS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)//",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7*7 }}{% raw %}",
    "javascript:alert(1)",
    "<!--<script>",
    "]]></style><script>alert(1)</script>",
    "&lt;script&gt;&#60;b&#62;",
    "\u2028alert(1)\u202e",
)


class Markup(HTMLParser):
    """The tags of a page with the names of their attributes, counted."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: Counter[tuple[str, ...]] = Counter()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        risky = [name for name, value in attrs if name.startswith("on") or _runs(value)]
        if tag in ("script", "iframe", "object", "embed", "link", "base", "meta") or risky:
            self.found[(tag, *risky)] += 1


def _runs(value: str | None) -> bool:
    return (value or "").strip().lower().startswith("javascript:")


def page_of(rng: np.random.Generator, words: tuple[str, ...], folder: Path) -> str:
    """A page whose table name, columns, categories, labels and rows are made of these words."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    import fitonce
    from fitonce.report import write_report
    from fitonce.report.subject import Origin

    n, pick = 30, lambda: str(rng.choice(words))
    x = rng.normal(size=n)
    names = [f"{pick()}{i}" for i in range(3)]
    frame = pd.DataFrame({names[0]: x, names[1]: rng.normal(size=n)})
    frame[names[2]] = [f"{pick()}{k % 3}" for k in range(n)]
    frame.index = pd.Index([f"{pick()}{k}" for k in range(n)])
    labels = np.array([f"{pick()}a", f"{pick()}b"])[(x > 0).astype(int)]
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), names[2:]), remainder="passthrough"
    )
    model = make_pipeline(encode, fitonce.LeastSquaresSVC(gamma=0.1, alpha=1.0)).fit(frame, labels)
    answer = fitonce.assess(model, frame, labels, cv=3, permutations=0)
    origin = Origin(pick(), pick(), [pick()], None)
    path = folder / "page.html"
    write_report(path, model, frame, labels, assessment=answer, origin=origin, title=pick())
    return path.read_text(encoding="utf-8")


def page_case(seed: int, folder: Path) -> str:
    """Whether a page with scripts in its names has the markup of a page with plain names."""
    plain = Markup(page_of(np.random.default_rng(seed), ("plain",), folder)).found
    hostile = Markup(page_of(np.random.default_rng(seed), SCRIPTS, folder)).found
    return "escaped" if plain == hostile else f"markup differs: {hostile - plain}"


# ---- in the place of others' estimators ----------------------------------------------------------


def random_classifier(rng: np.random.Generator) -> Any:
    import fitonce

    given = {
        "kernel": str(rng.choice(["linear", "rbf", "laplacian"])),
        "gamma": float(10 ** rng.uniform(-3, 1)),
        "alpha": [float(10 ** rng.uniform(-3, 2)), "tune"][rng.integers(2)],
    }
    kinds = fitonce.KernelFisherDiscriminant, fitonce.LeastSquaresSVC
    return kinds[rng.integers(2)](**given)


def sliding_case(seed: int, folder: Path) -> str:
    """Our classifiers in MNE's SlidingEstimator and GeneralizingEstimator, against loops."""
    from mne.decoding import GeneralizingEstimator, SlidingEstimator, cross_val_multiscore
    from sklearn.base import clone
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    from fitonce import positions

    rng = np.random.default_rng(seed)
    n, p, T = int(rng.integers(20, 40)), int(rng.integers(2, 6)), int(rng.integers(2, 5))
    X, y = rng.normal(size=(n, p, T)), np.tile([0, 1], n)[:n]
    X[:, 0] += y[:, None] * rng.normal(size=T)
    model, tests = random_classifier(rng), rng.normal(size=(7, p, T))
    loops = [clone(model).fit(X[..., t], y) for t in range(T)]
    one = SlidingEstimator(model, scoring="roc_auc", verbose=False).fit(X, y)
    many = GeneralizingEstimator(model, scoring="roc_auc", verbose=False).fit(X, y)
    pairs = [
        (one.decision_function(tests)[:, t], loops[t].decision_function(tests[..., t]))
        for t in range(T)
    ]
    pairs += [
        (many.decision_function(tests)[:, s, t], loops[s].decision_function(tests[..., t]))
        for s in range(T)
        for t in range(T)
    ]
    areas = [roc_auc_score(y, loops[t].decision_function(X[..., t])) for t in range(T)]
    pairs += [(one.score(X, y), np.array(areas))]
    cv, slide = StratifiedKFold(3), SlidingEstimator(model, scoring="accuracy", verbose=False)
    mine = positions.cross_val_score(model, X, y, cv=cv, scoring="accuracy")
    pairs += [(mine.T, cross_val_multiscore(slide, X, y, cv=cv, verbose=False))]
    far = [i for i, (a, b) in enumerate(pairs) if not np.allclose(a, b, rtol=1e-6, atol=1e-8)]
    return "equal" if not far else f"differs in {far}"


def target_case(seed: int, folder: Path) -> str:
    """A ridge with an alpha for each target beside himalaya's KernelRidgeCV."""
    from himalaya.backend import set_backend
    from himalaya.kernel_ridge import KernelRidgeCV
    from sklearn.model_selection import KFold

    import fitonce

    set_backend("numpy")
    rng = np.random.default_rng(seed)
    n, p, t = int(rng.integers(20, 60)), int(rng.integers(2, 80)), int(rng.integers(1, 30))
    X = rng.normal(size=(n, p))
    Y = X @ rng.normal(size=(p, t)) + 10 ** rng.uniform(-1, 1.5, t) * rng.normal(size=(n, t))
    alphas, cv = np.logspace(-2, 3, 11), KFold(4, shuffle=True, random_state=seed)
    theirs = KernelRidgeCV(alphas=alphas, cv=cv, kernel="linear").fit(X, Y)
    shared = {"kernel": "linear", "fit_intercept": False, "cv": cv, "alpha_per_target": True}
    ours = fitonce.KernelRidge(alphas, criterion="squared_error", **shared).fit(X, Y)
    other = rng.normal(size=(9, p))
    chosen = np.isclose(np.ravel(ours.alpha_), np.ravel(theirs.best_alphas_))
    mine, their = (m.predict(other).reshape(9, t)[:, chosen] for m in (ours, theirs))
    if not np.allclose(mine, their, rtol=1e-6, atol=1e-8):
        return "the same alphas, other predictions"
    squares, means = losses(X, Y, cv, alphas)
    places = np.searchsorted(alphas, 0.999 * np.ravel(ours.alpha_))
    if np.any(squares[places, range(t)] > squares.min(axis=0) * (1 + 1e-9)):
        return "an alpha is not the best"
    if chosen.all():
        return "equal"
    there = np.searchsorted(alphas, 0.999 * np.ravel(theirs.best_alphas_))
    fair = np.all(means[there, range(t)] <= means.min(axis=0) * (1 + 1e-9))
    return "alphas differ where the two averages do" if fair else "himalaya's alpha is not its best"


def losses(X: Any, Y: Any, cv: Any, alphas: Any) -> tuple[np.ndarray, np.ndarray]:
    """The squared errors of all rows (a, t), which ours minimizes, and the mean of the folds' mean
    squared errors, which himalaya does; by literal solutions.
    """
    squares, means = np.zeros((2, len(alphas), Y.shape[1]))
    for train, test in cv.split(X):
        K = X[train] @ X[train].T
        for i, alpha in enumerate(alphas):
            c = np.linalg.solve(K + alpha * np.eye(len(train)), Y[train])
            error = np.sum((Y[test] - X[test] @ X[train].T @ c) ** 2, axis=0)
            squares[i] += error
            means[i] += error / len(test)
    return squares, means


# ---- many of them --------------------------------------------------------------------------------

CASES: dict[str, Callable[[int, Path], str]] = {
    "models": model_case,
    "tables": table_case,
    "odd": odd_case,
    "kills": kill_case,
    "interrupts": interrupt_case,
    "pages": page_case,
    "sliding": sliding_case,
    "targets": target_case,
}


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
