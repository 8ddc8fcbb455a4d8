"""What a model file may contain, and cost.

Models are saved and exported as NumPy arrays and plain data. Names of types in a file are checked
before anything is imported or built; so are limits on the cost of reading it. Everything is counted
in bytes of memory, with one budget: members that expand, arrays that are named many times, archives
inside members, nested lists that are shared, strings of brackets.
"""

from __future__ import annotations

import importlib
import io
import json
import math
import os
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.model_selection
from array_api_compat import is_array_api_obj
from sklearn.base import BaseEstimator
from sklearn.preprocessing import OneHotEncoder

from ..core.arrays import to_numpy

CALLBACKS = (
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
    "_parent_callback_ctx",
)
OWN = tuple(
    f"fitonce.{layer}"
    for layer in ("core", "kernels", "landmarks", "rows", "tuning", "estimators", "preparation")
)
COMPANIONS = (  # of scikit-learn, computed by NumPy and SciPy functions that check their arrays
    "sklearn.calibration.CalibratedClassifierCV",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer.ColumnTransformer",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.compose._target.TransformedTargetRegressor",
    "sklearn.decomposition._pca.PCA",
    "sklearn.decomposition._truncated_svd.TruncatedSVD",
    "sklearn.feature_selection._variance_threshold.VarianceThreshold",
    "sklearn.impute._base.MissingIndicator",
    "sklearn.impute._base.SimpleImputer",
    "sklearn.impute._knn.KNNImputer",
    "sklearn.isotonic.IsotonicRegression",
    "sklearn.kernel_approximation.Nystroem",
    "sklearn.kernel_approximation.RBFSampler",
    "sklearn.linear_model._logistic.LogisticRegression",
    "sklearn.linear_model._ridge.Ridge",
    "sklearn.multiclass.OneVsOneClassifier",
    "sklearn.multiclass.OneVsRestClassifier",
    "sklearn.multiclass._ConstantPredictor",
    "sklearn.multioutput.MultiOutputClassifier",
    "sklearn.multioutput.MultiOutputRegressor",
    "sklearn.pipeline.FeatureUnion",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.MaxAbsScaler",
    "sklearn.preprocessing._data.MinMaxScaler",
    "sklearn.preprocessing._data.Normalizer",
    "sklearn.preprocessing._data.PowerTransformer",
    "sklearn.preprocessing._data.QuantileTransformer",
    "sklearn.preprocessing._data.RobustScaler",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._encoders.OneHotEncoder",
    "sklearn.preprocessing._encoders.OrdinalEncoder",
    "sklearn.preprocessing._function_transformer.FunctionTransformer",
    "sklearn.preprocessing._label.LabelBinarizer",
    "sklearn.preprocessing._label.LabelEncoder",
    "sklearn.preprocessing._polynomial.PolynomialFeatures",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "numpy.dtype",
)
PLAIN = ("builtins.", "numpy.", "scipy.special.")  # data and functions, if skops trusts them
FRAMEWORKS = tuple(f"sklearn.externals.array_api_compat.{n}" for n in ("torch", "cupy", "dask"))
MOST_UNFOLDED = 1 << 30  # bytes that a file may expand to, whatever its size
MOST_FOLDING = 200  # times its size, beyond that
MOST_HEADER = 1 << 24  # bytes of the header
BYTES_PER_CHARACTER, BYTES_PER_BRACKET = 8, 256  # upper bounds for JSON in Python
SCHEMA = "schema.json"
READ_HEADER = {  # by version of the format of arrays
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
SPARSE_LOADER = "SparseMatrixNode"
VARIABLE = "SCIPY_ARRAY_API"
COLUMN, SETTINGS = "param_", "params"  # of the results of a search


# ---- writing -------------------------------------------------------------------------------------


def portable(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """The same model in NumPy, wherever it was fitted; the original is not changed.

    Estimators, their containers and our dataclasses are rebuilt from `__getstate__`, without
    callbacks; everything else is shared with the original. An object that occurs twice stays one
    object.
    """
    memo = {} if memo is None else memo
    if id(value) not in memo:  # the value is kept too, so that its id is not reused
        memo[id(value)] = value, _rebuilt(value, partial(portable, memo=memo))
    return memo[id(value)][1]


def _rebuilt(value: Any, rebuild: Callable[[Any], Any]) -> Any:
    if isinstance(value, np.ma.MaskedArray) and not np.any(value.mask):
        return np.asarray(value)  # the names of masked arrays and of numpy.bool_ depend on NumPy
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (np.ndarray, np.generic, type)):
        return value
    if is_array_api_obj(value):
        return to_numpy(value)
    if type(value) is dict:
        settings = settings_of(value)
        told_twice = settings is not None and value.get(SETTINGS) == settings
        value = value | {SETTINGS: None} if told_twice else value
        return {_key(key, value): rebuild(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(rebuild, value))
    ours = is_dataclass(value) and type(value).__module__.startswith("fitonce.")
    state = value.__getstate__() if ours or isinstance(value, BaseEstimator) else None
    if not isinstance(state, dict):
        return value
    copy = object.__new__(type(value))
    vars(copy).update(
        {name: rebuild(item) for name, item in state.items() if name not in CALLBACKS}
    )
    return copy


def settings_of(results: dict[Any, Any]) -> list[dict[str, Any]] | None:
    """The settings of every trial of a search, from its columns: a mapping each would fill most of
    a file. None where they are no single numbers and words.
    """
    columns = {
        name.removeprefix(COLUMN): np.ma.asarray(column)
        for name, column in results.items()
        if str(name).startswith(COLUMN)
    }
    if not columns or any(column.ndim != 1 for column in columns.values()):
        return None
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    each = (zip(columns, row, strict=True) for row in rows)
    return [{name: value for name, value in row if value is not None} for row in each]


def _key(key: Any, mapping: dict[Any, Any]) -> Any:
    """Keys are stored as strings with their type.

    Keys that would not be restored are refused, or replaced by an equal one.
    """
    if isinstance(key, (bool, np.bool_)):
        return int(key)  # {True: …} equals {1: …}
    plain = isinstance(key, (str, int, float, np.integer, np.floating))
    if not plain or sum(str(key) == str(other) for other in mapping) > 1:
        raise ValueError(
            f"a mapping with the key {key!r} cannot be saved: keys must be strings or numbers with "
            "distinct text representations."
        )
    return key


# ---- reading -------------------------------------------------------------------------------------


def untrusted(
    named: set[str], distrusted: set[str], further: Sequence[str | type] = ()
) -> list[str]:
    """The types that are not trusted, of those that a file names, and skops `distrusted`.

    skops trusts every estimator of scikit-learn. Some of them pass their arrays to compiled code
    that believes them: a forged one ends the process. So only `COMPANIONS` are accepted.
    """
    if isinstance(further, (str, type)):
        raise TypeError(
            f"trusted must be a list of classes or of their full names, got {further!r} instead."
        )
    given = {name if isinstance(name, str) else full_name(name) for name in further}
    plain = {name for name in named - distrusted if name.startswith(PLAIN)}
    plain -= {name for name in plain if name.startswith("numpy.random.")}
    return sorted(name for name in (named | distrusted) - given - plain if not _vouched(name))


def _vouched(name: str) -> bool:
    """Whether this is one of our estimators or dataclasses, a splitter, or a listed type.

    Nothing is imported: everything that a file may contain has been imported before.
    """
    module, _, attribute = name.rpartition(".")
    home = sys.modules.get(module) if module.startswith(OWN) else sklearn.model_selection
    found = getattr(home, "__dict__", {}).get(attribute)
    if not isinstance(found, type) or full_name(found) != name:
        return name in COMPANIONS
    ours = module.startswith(OWN) and (is_dataclass(found) or issubclass(found, BaseEstimator))
    return ours or hasattr(found, "split")


def complete(model: Any) -> None:
    """Give searches the settings of their trials again, and refuse one-hot encoders whose codes lie
    beyond their columns: compiled code writes there.
    """
    waiting, seen = [model], dict[int, Any]()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen[id(part)] = part
            if isinstance(part, dict) and part.get(SETTINGS, ()) is None:
                part[SETTINGS] = settings_of(part)
            waiting.extend(_inside(part))
            if isinstance(part, OneHotEncoder) and hasattr(part, "categories_"):
                _check_encoder(part)


def _inside(value: Any) -> Iterable[Any]:
    """The items of a container, or the attributes of an object."""
    if isinstance(value, np.ndarray):
        return np.asarray(value).ravel().tolist() if value.dtype == object else ()
    if isinstance(value, (list, tuple, set)):
        return value
    attributes = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return () if isinstance(value, type) else attributes.values()


def _check_encoder(encoder: Any) -> None:
    """Every category, once grouped and without the dropped one, must have a column."""
    n = len(encoder.categories_)
    grouped = encoder._default_to_infrequent_mappings if encoder._infrequent_enabled else [None] * n
    dropped = encoder._drop_idx_after_grouping
    dropped = [None] * n if dropped is None else dropped
    widths = encoder._n_features_outs
    each = zip(encoder.categories_, widths, grouped, dropped, strict=True)
    if not isinstance(widths, list) or not all(_has_columns(*feature) for feature in each):
        raise ValueError("a one-hot encoder has categories without a column")


def _has_columns(categories: Any, width: Any, codes: Any, drop: Any) -> bool:
    """Whether the codes of a feature's categories are columns; those after `drop` move down."""
    n = len(categories)
    codes = np.arange(n) if codes is None else np.asarray(codes)
    drop = n if drop is None else drop
    ordered = np.asarray([value for value in categories if isinstance(value, Real)])
    found = np.searchsorted(ordered, ordered)  # as numbers are looked up; the last is in its place
    whole = all(np.asarray(given).dtype.kind in "iu" for given in (codes, width, drop))
    kept = codes[codes != drop]
    column = kept - (kept > drop)
    return bool(whole and np.all(found < len(ordered)) and np.all((column >= 0) & (column < width)))


def full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def skops_io() -> Any:
    """skops.io, imported on first use.

    scikit-learn 1.6 with array-api-compat and SciPy 1.14 cannot list its estimators, as skops
    requests, without SCIPY_ARRAY_API in the environment, although nothing here uses that feature.
    It is set only during the import.
    """
    try:
        with _without_frameworks():
            return importlib.import_module("skops.io")
    except ImportError as error:
        raise ImportError(
            "saving and loading models needs skops: pip install 'fitonce[io]'."
        ) from error
    except RuntimeError:
        if VARIABLE in os.environ:
            raise
    os.environ[VARIABLE] = "1"
    try:
        return importlib.import_module("skops.io")
    finally:
        del os.environ[VARIABLE]


@contextmanager
def _without_frameworks() -> Iterator[None]:
    """Inside, scikit-learn's list of its estimators, which skops requests, does not import torch,
    CuPy or Dask, which takes seconds.
    """
    hidden = [name for name in FRAMEWORKS if name not in sys.modules]
    modules: dict[str, Any] = sys.modules
    modules.update(dict.fromkeys(hidden))  # None: as if they were not installed
    try:
        yield
    finally:
        for name in hidden:
            del modules[name]


# ---- the cost of reading -------------------------------------------------------------------------


def budget(archive: bytes) -> int:
    """The memory in bytes that reading a file may use."""
    return max(MOST_UNFOLDED, MOST_FOLDING * len(archive))


def check_unfolding(opened: zipfile.ZipFile, archive: bytes) -> None:
    _within(sum(member.file_size for member in opened.infolist()), archive)


def check_text(text: bytes, archive: bytes) -> None:
    """Check the size of JSON in memory."""
    brackets = text.count(b"[") + text.count(b"{")
    _within(BYTES_PER_CHARACTER * len(text) + BYTES_PER_BRACKET * brackets, archive)


def check_parts(opened: zipfile.ZipFile, archive: bytes) -> set[str]:
    """The names of the types in a file, once everything that is read and visited to build the
    model has been checked: the schema, the members that its parts name, sharing, and every sparse
    matrix, whose indices compiled code does not check.
    """
    text = opened.read(SCHEMA)
    check_text(text, archive)
    parts = _parts(json.loads(text))
    named: dict[Any, str] = {}  # a shared part is read once
    for number, part in enumerate(parts):
        if "file" in part:
            named[part.get("__id__", ("unshared", number))] = str(part["file"])
    _within(sum(_unfolded(opened, name, archive) for name in named.values()), archive)
    for part in parts:
        _check_sparse(opened, part)
    return {f"{part['__module__']}.{part['__class__']}" for part in parts if part.get("__module__")}


def _within(n_bytes: int, archive: bytes) -> None:
    if n_bytes > budget(archive):
        raise ValueError(
            f"it claims to expand to {n_bytes:.1e} bytes from {len(archive)}, which no model does, "
            "so it was not read"
        )


def _unfolded(opened: zipfile.ZipFile, name: str, archive: bytes) -> int:
    """The size of a member in bytes, unpacked; of an archive, with its members."""
    member = opened.read(name)
    if not member.startswith(b"PK"):
        return _size(member)
    with zipfile.ZipFile(io.BytesIO(member)) as inner:
        check_unfolding(inner, archive)
        return len(member) + sum(_size(inner.read(part)) for part in inner.namelist())


def _size(member: bytes) -> int:
    """The size of an array by its header, where an item or an axis of no size counts too: going
    through it takes time.
    """
    if not member.startswith(np.lib.format.MAGIC_PREFIX):
        return len(member)
    file = io.BytesIO(member)
    shape, _, dtype = READ_HEADER[np.lib.format.read_magic(file)](file)
    items = math.prod(max(length, 1) for length in shape)
    size = dtype.itemsize if math.prod(shape) else 0
    return max(len(member), items * (size or BYTES_PER_BRACKET))


def _parts(schema: Any) -> list[dict[str, Any]]:
    """Every mapping in a schema, outer ones first, once their sharing has been checked.

    Parts with the same number are the same part, of which the reader takes the first. Each is
    written in full, so all have the same size. If they did not, a small file could have parts that
    name each other without end.
    """
    first: dict[Any, int] = {}
    parts: list[dict[str, Any]] = []

    def size(value: Any) -> int:
        """The number of mappings inside, and in all."""
        mapping = isinstance(value, dict)
        parts.extend([value] if mapping else [])
        inside = value.values() if mapping else value if isinstance(value, list) else ()
        found = mapping + sum(map(size, inside))
        number = value.get("__id__") if mapping else None
        if number is not None and first.setdefault(number, found) != found:
            raise ValueError(f"its parts of number {number} differ from each other")
        return found

    size(schema)
    return parts


def _check_sparse(opened: zipfile.ZipFile, part: dict[str, Any]) -> None:
    """A sparse matrix must come from its own member, with indices inside its shape."""
    loader, module = part.get("__loader__"), str(part.get("__module__", ""))
    if loader != SPARSE_LOADER:
        if module.startswith("scipy.sparse"):
            raise ValueError(f"a sparse matrix is read by {loader}, which does not check it")
        return
    matrix = sp.load_npz(io.BytesIO(opened.read(str(part["file"]))))
    if matrix.format != "csr":
        raise ValueError(f"a sparse matrix is in format {matrix.format}, which models do not have")
    matrix.check_format(full_check=True)
