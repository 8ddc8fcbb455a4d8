"""Model files with forged arrays and numbers, loaded and asked for predictions.

    python tests/io/forged.py 5000 1      # forgeries, seed

Each may be refused, fail with an exception or predict nonsense. It must not end the process. Where
it does, what was forged is in LAST.
"""

from __future__ import annotations

import faulthandler
import io
import json
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, load, save

LAST = Path(tempfile.gettempdir()) / "fitonce-last-forgery.txt"
VALUES = (-1, 0, 1, 2, 7, 10**9, -(10**9), 2**62, float("nan"), float("inf"))


def models():
    """Fitted models and rows for them: ours alone, and behind every companion."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = np.array(["few", "many", "some"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    few = np.where(np.abs(X) > 0.6, X, 0.0)
    svc = LeastSquaresSVC(gamma=0.5, alpha=0.1)
    yield KernelFisherDiscriminant(gamma=0.5, alpha=0.1).fit(X, y), X
    yield LeastSquaresSVC(alpha=0.1, gamma=0.5, calibration="isotonic").fit(X, y == "many"), X
    yield svc.fit(sp.csr_matrix(few), y == "many"), few
    yield KernelRidge(gamma=0.5, alpha=0.1, landmarks=9, random_state=0).fit(X, X[:, :2]), X
    companions = (
        make_pipeline(StandardScaler(), PCA(2), QuantileTransformer(n_quantiles=9)),
        make_pipeline(RobustScaler(), PolynomialFeatures(2), TruncatedSVD(3)),
        make_pipeline(PowerTransformer(), Nystroem(gamma=0.5, n_components=9)),
        make_pipeline(KNNImputer(add_indicator=True), SimpleImputer()),
    )
    for companion in companions:
        yield make_pipeline(companion, LeastSquaresSVC(gamma=0.5, alpha=0.1)).fit(X, y), X
    for several in (CalibratedClassifierCV, OneVsRestClassifier):
        yield several(LeastSquaresSVC(gamma=0.5, alpha=0.1)).fit(X, y), X
    table = pd.DataFrame({"a": X[:, 0], "b": np.arange(30) % 7, "c": y})
    grouped = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5)
    for encoder in (grouped, OneHotEncoder(drop="first"), OrdinalEncoder()):
        steps = ColumnTransformer([("texts", encoder, ["b", "c"])], remainder="passthrough")
        yield make_pipeline(steps, LeastSquaresSVC(gamma=0.5, alpha=0.1)).fit(table, y), table


def forged_array(array, rng):
    """The array with another shape, type, or other values."""
    kinds = (
        lambda A: A[: A.shape[0] // 2] if A.ndim else A,
        lambda A: np.concatenate([A, A]) if A.ndim else A,
        lambda A: A.ravel(),
        lambda A: A[None],
        lambda A: A[..., :0] if A.ndim else A,
        lambda A: np.zeros((), A.dtype),
        lambda A: A.astype(str),
        lambda A: np.zeros(A.shape, "i1"),
        lambda A: np.full(A.shape, VALUES[rng.integers(8)], dtype="i8"),
        lambda A: np.full(A.shape, VALUES[rng.integers(len(VALUES))], dtype="f8"),
        lambda A: A[::-1] if A.ndim else A,
        lambda A: np.asarray(A, order="F"),
    )
    return kinds[rng.integers(len(kinds))](array)


def forge_number(part, rng):
    """A text, number or truth value of the schema replaced by another one."""
    part["content"] = json.dumps(VALUES[rng.integers(len(VALUES))])


def leaves(value):
    """Every part of the schema that holds a plain value, or an array."""
    if isinstance(value, dict):
        if value.get("__loader__") in ("JsonNode", "NdArrayNode"):
            yield value
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)


def forge(members, rng):
    """One part of a model file changed; returns what."""
    schema = json.loads(members["schema.json"])
    part = rng.choice(list(leaves(schema)))
    if part["__loader__"] == "JsonNode":
        forge_number(part, rng)
    elif part.get("type") == "numpy":
        try:
            array = forged_array(np.load(io.BytesIO(members[part["file"]])), rng)
        except (ValueError, TypeError, OverflowError):
            array = np.zeros(3)
        buffer = io.BytesIO()
        np.save(buffer, array)
        part["file"], part["__id__"] = f"forged-{rng.integers(2**60)}.npy", int(rng.integers(2**60))
        members[part["file"]] = buffer.getvalue()
    else:
        rng.shuffle(part["content"])
    members["schema.json"] = json.dumps(schema).encode()
    return str(part)[:300]


def outcome(path, rows):
    """What loading a file and predicting with its model ends in."""
    try:
        model = load(path)
    except ValueError:
        return "refused"
    try:
        model.predict(rows)
        if hasattr(model, "predict_proba"):
            model.predict_proba(rows)
    except Exception as error:
        return type(error).__name__
    return "predicted"


def main(n_forgeries, seed):
    rng = np.random.default_rng(seed)
    outcomes = Counter()
    folder = Path(tempfile.mkdtemp())
    saved = [(save(m, folder / f"{i}.skops"), rows) for i, (m, rows) in enumerate(models())]
    for number in range(n_forgeries):
        path, rows = saved[number % len(saved)]
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        changes = [forge(members, rng) for _ in range(rng.integers(1, 4))]
        forged = folder / "forged.skops"
        with zipfile.ZipFile(forged, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        LAST.write_text("\n".join([path.name, *changes]), encoding="utf-8")
        outcomes[outcome(forged, rows)] += 1
    print(dict(outcomes))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    faulthandler.enable()
    main(*(int(argument) for argument in sys.argv[1:]))
