"""Fitted transformers of scikit-learn as parts of an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from ...preparation import ClippedScaler, NormalScores, RelevanceScaler
from .graph import ColumnValues, Graph, Rows, Value, beside, selections, steps_of


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


def interpolated(x: Value, steps: np.ndarray) -> Value:
    """np.interp of a column (n, 1): p₀ + Σ Δp · clip((x - knot)/width, 0, 1)."""
    knots, p = steps
    first = float(p[0])
    if len(knots) == 1:
        return x * 0.0 + first
    inside: Value = ((x - knots[:-1]) / np.diff(knots)).op("Clip", 0.0, 1.0)
    return inside.op("MatMul", np.diff(p)[:, None]) + first


def _normal_scores(step: NormalScores, rows: Rows) -> Rows:
    x = rows.matrix()
    columns = [x.select([j]) for j in range(len(step.maps_))]
    pairs = zip(columns, step.maps_, strict=True)
    scores = [x if known is None else interpolated(x, known) for x, known in pairs]
    return beside(*scores) + x * 0.0  # not a number where the step refuses the row


def _min_max_scaler(step: MinMaxScaler, rows: Rows) -> Rows:
    return _clipped(step, rows.matrix() * step.scale_ + step.min_, *step.feature_range)


def _pca(step: PCA, rows: Rows) -> Rows:
    scale = np.sqrt(step.explained_variance_) if step.whiten else 1.0
    axes: np.ndarray = step.components_.T / scale
    return _affine(rows, step.mean_, None) @ axes


# ---- missing values ------------------------------------------------------------------------------


def _imputer(step: SimpleImputer, rows: Rows) -> Rows:
    """Statistics where numbers are NaN, or strings are empty, as missing ones are."""
    if isinstance(rows, ColumnValues):
        return _text_imputer(step, rows)
    if step.missing_values == step.missing_values:
        raise ValueError(
            f"SimpleImputer(missing_values={step.missing_values!r}) for numbers cannot be exported "
            "to ONNX: replace these numbers by NaN before fitting."
        )
    missing = rows.op("IsNaN")
    statistics = np.asarray(step.statistics_, dtype=np.float64)
    usable = np.flatnonzero(~np.isnan(statistics))  # columns without any value are dropped
    filled = missing.op("Where", np.nan_to_num(statistics), rows).select(usable)
    if not step.add_indicator:
        return filled
    return beside(filled, missing.cast().select(step.indicator_.features_))


def _text_imputer(step: SimpleImputer, rows: ColumnValues) -> Rows:
    if step.add_indicator or isinstance(step.missing_values, str) or "" in step.statistics_:
        raise ValueError(
            "SimpleImputer for strings can be exported to ONNX only without add_indicator, for "
            "missing strings (None or NaN), and with a word to fill in: OneHotEncoder alone makes "
            "a category of missing strings."
        )
    if len(rows.texts) < len(rows.values):
        raise ValueError(
            "SimpleImputer for strings and numbers cannot be exported to ONNX: use one for the "
            "columns of strings, and one for those of numbers."
        )
    filled = {
        place: value.op("Equal", _texts("")).op("Where", _texts(step.statistics_[place]), value)
        for place, value in rows.values.items()
    }
    return ColumnValues(filled, rows.texts, filled=True)


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
    categories = step.categories_[number].tolist()
    _check_categories(column, categories)
    merged = getattr(step, "infrequent_categories_", None)
    rare = [] if merged is None or merged[number] is None else merged[number].tolist()
    named = set(map(repr, rare))  # NaN too
    places = [place for place, category in enumerate(categories) if repr(category) not in named]
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


def _equals(column: Rows, values: Sequence[Any]) -> Value:
    """Ones where the column has the value, one column for each value."""
    if isinstance(column, ColumnValues):
        return column.values[0].op("Equal", _texts(*map(_text, values))).cast()
    numbers = np.array(values, dtype=np.float64)
    equal = column.op("Equal", numbers)
    if np.isnan(numbers).any():
        equal = equal.op("Or", column.op("IsNaN").op("And", np.isnan(numbers)))
    return equal.cast()


def _text(value: Any) -> str:
    """None and NaN are missing strings, which are empty."""
    return value if isinstance(value, str) else ""


def _check_categories(column: Rows, categories: Sequence[Any]) -> None:
    """Refuse categories that differ for the model but not for the graph."""
    if not isinstance(column, ColumnValues):
        _check_numbers(column.graph, categories)
    elif list(map(_text, categories)).count("") > 1 or (column.filled and "" in categories):
        raise ValueError(
            "a column contains both empty and missing strings (None or NaN), which are the same in "
            "ONNX, so the labels of the graph would be wrong. Before fitting the pipeline, replace "
            "empty strings by None, or missing ones by a word."
        )


def _check_numbers(graph: Graph, numbers: Sequence[Any]) -> None:
    """Refuse numbers that rounding changes, such as integers above 2²⁴ in float32: in the graph,
    others could not be told from them.
    """
    least = min(graph.dtype, graph.arithmetic, key=lambda dtype: dtype.itemsize)
    rounded = np.array(numbers, dtype=np.float64).astype(least).tolist()
    changed = [n for n, r in zip(numbers, rounded, strict=True) if r == r and n != r]
    if changed or sum(r != r for r in rounded) > 1:
        raise ValueError(
            f"the categories of OneHotEncoder are changed by rounding to {least}, for example "
            f"{next(iter(changed), None)!r}, so the labels of the graph would be wrong. Use "
            'dtype="float64" and arithmetic="float64", or convert these numbers to integers or '
            "strings before fitting the pipeline."
        )


CONVERTERS: dict[type, Callable[[Any, Any], Rows]] = {
    ClippedScaler: _clipped_scaler,
    NormalScores: _normal_scores,
    RelevanceScaler: lambda step, rows: rows.matrix() * step.scale_,
    StandardScaler: lambda step, rows: _affine(
        rows, step.mean_ if step.with_mean else None, step.scale_
    ),
    MinMaxScaler: _min_max_scaler,
    MaxAbsScaler: lambda step, rows: _clipped(step, _affine(rows, None, step.scale_), -1, 1),
    RobustScaler: lambda step, rows: _affine(rows, step.center_, step.scale_),
    SimpleImputer: _imputer,
    OneHotEncoder: _one_hot,
    PCA: _pca,
    ColumnTransformer: _column_transformer,
}
