"""Fitted transformers of scikit-learn as parts of an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from ...preparation import ClippedScaler
from .graph import Graph, Value, beside
from .inputs import ColumnValues, Rows, selections, steps_of


def transformed(steps: Sequence[Any], rows: Rows) -> Rows:
    """The rows after fitted transformers, applied in order."""
    for step in steps:
        if type(step) in CONVERTERS:
            rows = CONVERTERS[type(step)](step, rows)
        elif hasattr(step, "get_support"):
            rows = rows.select(step.get_support(indices=True))
        else:
            known = ", ".join(kind.__name__ for kind in CONVERTERS)
            raise ValueError(
                f"{type(step).__name__} cannot be exported to ONNX; {known} and feature selection "
                "can: transform the rows first, and export the estimator alone."
            )
    return rows


def _column_transformer(step: ColumnTransformer, rows: Rows) -> Rows:
    weights = step.transformer_weights or {}
    parts = []
    for name, part, numbers in selections(step):
        matrix = transformed(steps_of(part), rows.select(numbers)).matrix()
        parts.append(matrix * float(weights[name]) if name in weights else matrix)
    return beside(*parts)


def _function(step: FunctionTransformer, rows: Rows) -> Rows:
    if step.func is not None:
        raise ValueError(
            f"FunctionTransformer with func={step.func!r} cannot be exported to ONNX: transform "
            "the rows first."
        )
    return rows


# ---- numbers -------------------------------------------------------------------------------------


def _affine(rows: Rows, less: Any, over: Any) -> Value:
    """(x - less) / over; None omits a part."""
    x = rows.matrix()
    x = x if less is None else x - less
    return x if over is None else x / over


def _clipped(step: Any, x: Value, low: float, high: float) -> Value:
    """Infinities, which the step refuses, become NaN instead of the nearest bound."""
    clipped = getattr(step, "clip", False)
    return x.op("Clip", float(low), float(high)) + x * 0.0 if clipped else x


def _clipped_scaler(step: ClippedScaler, rows: Rows) -> Rows:
    """z/√(1 + (z/limit)²), with |z| at most 10⁹ limits: the square must not overflow."""
    far = 1e9 * step.limit
    z = _affine(rows, step.mean_, step.scale_).op("Clip", -far, far)
    return z / ((z / step.limit) * (z / step.limit) + 1.0).op("Sqrt")


def _min_max_scaler(step: MinMaxScaler, rows: Rows) -> Rows:
    return _clipped(step, rows.matrix() * step.scale_ + step.min_, *step.feature_range)


def _pca(step: PCA, rows: Rows) -> Rows:
    scale = np.sqrt(step.explained_variance_) if step.whiten else 1.0
    axes: np.ndarray = step.components_.T / scale
    return _affine(rows, step.mean_, None) @ axes


# ---- missing values ------------------------------------------------------------------------------


def _imputer(step: SimpleImputer, rows: Rows) -> Rows:
    if isinstance(rows, ColumnValues):
        return _text_imputer(step, rows)
    x, mark = rows, step.missing_values
    if mark is None or mark != mark:
        missing = x.op("IsNaN")
    else:
        _check_numbers(x.graph, [mark], "missing_values of SimpleImputer")
        missing = x.op("Equal", _rounded([mark], x.graph))
    statistics = np.asarray(step.statistics_, dtype=np.float64)
    usable = np.flatnonzero(~np.isnan(statistics))  # columns without any value are dropped
    filled = missing.op("Where", np.nan_to_num(statistics), x).select(usable)
    if not step.add_indicator:
        return filled
    return beside(filled, missing.cast().select(step.indicator_.features_))


def _text_imputer(step: SimpleImputer, rows: ColumnValues) -> Rows:
    """Strings column by column; a missing one is the empty string."""
    if step.add_indicator or len(rows.texts) < len(rows.values):
        raise ValueError(
            "SimpleImputer for strings can be exported to ONNX only without add_indicator, and "
            "only if all its columns are strings."
        )
    marks = ["", *([step.missing_values] if isinstance(step.missing_values, str) else [])]
    filled = dict(rows.values)
    for place, fill in enumerate(step.statistics_):
        for mark in marks:
            missing = filled[place].op("Equal", _texts(mark))
            filled[place] = missing.op("Where", _texts(fill), filled[place])
    nonempty = {place for place, fill in enumerate(step.statistics_) if fill != ""}
    return ColumnValues(filled, rows.texts, nonempty)


def _texts(*texts: str) -> np.ndarray:
    return np.array(texts, dtype=object)


# ---- categories ----------------------------------------------------------------------------------


def _one_hot(step: OneHotEncoder, rows: Rows) -> Rows:
    places = range(len(step.categories_))
    return beside(*(_one_hot_column(step, place, rows.select([place])) for place in places))


def _one_hot_column(step: OneHotEncoder, number: int, column: Rows) -> Value:
    """One column for each frequent category, in order, then one for all infrequent ones, without
    the dropped one.
    """
    categories = list(step.categories_[number])
    _check_categories(column, categories)
    infrequent = getattr(step, "infrequent_categories_", None)
    rare = [] if infrequent is None or infrequent[number] is None else list(infrequent[number])
    places = [place for place, category in enumerate(categories) if not _among(category, rare)]
    hot = _equals(column, [categories[place] for place in places])
    if rare and step.handle_unknown in ("infrequent_if_exist", "warn"):
        hot = beside(hot, 1.0 - hot.row_sums())  # everything that is not frequent
    elif rare:
        hot = beside(hot, _equals(column, rare).row_sums())
    dropped = None if step.drop_idx_ is None else step.drop_idx_[number]
    if dropped is None:
        return hot
    place = places.index(dropped) if dropped in places else len(places)
    return hot.select([kept for kept in range(len(places) + bool(rare)) if kept != place])


def _among(value: Any, values: Sequence[Any]) -> bool:
    return any(
        value is other or value == other or (value != value and other != other) for other in values
    )


def _equals(column: Rows, values: Sequence[Any]) -> Value:
    """Ones where the column has the value, one column for each value."""
    if isinstance(column, ColumnValues):
        return column.values[0].op("Equal", _texts(*map(_text, values))).cast()
    numbers = _rounded(values, column.graph)
    equal = column.op("Equal", numbers)
    if np.isnan(numbers).any():
        equal = equal.op("Or", column.op("IsNaN").op("And", np.isnan(numbers)))
    return equal.cast()


def _text(value: Any) -> str:
    """None and NaN are missing strings, which are empty."""
    return value if isinstance(value, str) else ""


def _rounded(values: Sequence[Any], graph: Graph) -> np.ndarray:
    """Numbers to compare the input with, rounded like the input."""
    least = min(graph.dtype, graph.arithmetic, key=lambda dtype: dtype.itemsize)
    return np.array(values, dtype=np.float64).astype(least).astype(np.float64)


def _check_categories(column: Rows, categories: Sequence[Any]) -> None:
    """Refuse categories that differ for the model but not for the graph."""
    if not isinstance(column, ColumnValues):
        _check_numbers(column.graph, categories, "the categories of OneHotEncoder")
    elif list(map(_text, categories)).count("") > 1 or (column.nonempty and "" in categories):
        raise ValueError(
            "a column contains both empty and missing strings (None or NaN), which are the same in "
            "ONNX, so the labels of the graph would be wrong. Before fitting the pipeline, replace "
            "empty strings by None, or missing ones by a word."
        )


def _check_numbers(graph: Graph, values: Sequence[Any], what: str) -> None:
    """Refuse numbers that become equal by rounding, and integers that change: in float32, integers
    above 2²⁴ cannot be distinguished from their neighbors.
    """
    numbers = [value.item() if isinstance(value, np.generic) else value for value in values]
    seen = dict(zip(numbers, _rounded(values, graph).tolist(), strict=True))
    known = [rounded for rounded in seen.values() if rounded == rounded]
    changed = [n for n, r in seen.items() if r == r and n != r and n == np.rint(float(n))]
    alike = [n for n, r in seen.items() if known.count(r) > 1]
    if changed or alike or len(seen) - len(known) > 1:
        least = min(graph.dtype, graph.arithmetic, key=lambda dtype: dtype.itemsize)
        culprit = next(iter([*changed, *alike, None]))
        raise ValueError(
            f"{what} cannot all be distinguished in {least}, for example {culprit!r}, so the "
            "labels of "
            'the graph would be wrong. Use dtype="float64" and arithmetic="float64", or convert '
            "these numbers to strings before fitting the pipeline."
        )


CONVERTERS: dict[type, Callable[[Any, Any], Rows]] = {
    ClippedScaler: _clipped_scaler,
    StandardScaler: lambda step, rows: _affine(
        rows, step.mean_ if step.with_mean else None, step.scale_
    ),
    MinMaxScaler: _min_max_scaler,
    MaxAbsScaler: lambda step, rows: _clipped(step, _affine(rows, None, step.scale_), -1, 1),
    RobustScaler: lambda step, rows: _affine(rows, step.center_, step.scale_),
    SimpleImputer: _imputer,
    OneHotEncoder: _one_hot,
    PCA: _pca,
    FunctionTransformer: _function,
    ColumnTransformer: _column_transformer,
}
