"""Fitted transformers of scikit-learn as parts of an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from .graph import Columns, Graph, Matrix, Rows

OUTPUTS = ("label", "probabilities", "decision", "prediction")


def steps_of(model: Any) -> list[Any]:
    """The steps of a pipeline, and of pipelines in it, that do something.

    Of any other estimator, itself.
    """
    if not isinstance(model, Pipeline):
        return [model]
    return [
        part
        for _, step in model.steps
        if not (step is None or _is(step, "passthrough"))
        for part in steps_of(step)
    ]


def add_input(graph: Graph, steps: Sequence[Any], first: Any) -> Rows:
    """One matrix of numbers, or, where some columns are texts or go unused, one input for every
    column that is used.
    """
    width = int(first.n_features_in_)
    given = getattr(first, "feature_names_in_", None)
    names = (
        [f"x{number}" for number in range(width)]
        if given is None
        else [str(name) for name in given]
    )
    used, texts, categories = _used_columns(first), _text_columns(steps), _category_columns(steps)
    graph.by_column = bool(texts) or (given is not None and len(used) < width)
    if not graph.by_column:
        graph.columns, graph.categories = [] if given is None else names, categories
        return Matrix(graph.cast(graph.input("X", graph.dtype, width), graph.arithmetic), width)
    graph.columns = [names[number] for number in sorted(used)]
    graph.texts = frozenset(names[number] for number in texts)
    graph.categories = frozenset(
        place for place, number in enumerate(sorted(used)) if number in categories
    )
    tensors = [
        _input_column(graph, name, number in texts) if number in used else ""
        for number, name in enumerate(names)
    ]
    return Columns(tuple(tensors), texts)


def _input_column(graph: Graph, name: str, text: bool) -> str:
    input_name = f"column {name}" if name in OUTPUTS or name.startswith("fitonce/") else name
    if text:
        return graph.input(input_name, np.dtype(object), 1)
    return graph.cast(graph.input(input_name, graph.dtype, 1), graph.arithmetic)


def _used_columns(first: Any) -> set[int]:
    """Numbers of the input columns that reach the model."""
    if not isinstance(first, ColumnTransformer):
        return set(range(int(first.n_features_in_)))
    return {
        number
        for _, part, numbers in _selections(first)
        if not _is(part, "drop")
        for number in numbers
    }


def _is(part: Any, name: str) -> bool:
    return isinstance(part, str) and part == name


def _text_columns(steps: Sequence[Any]) -> frozenset[int]:
    """Numbers of the input columns that are texts, by what the first step learnt from them."""
    first = steps[0] if steps else None
    if isinstance(first, Pipeline):
        return _text_columns(steps_of(first))
    if isinstance(first, ColumnTransformer):
        found: set[int] = set()
        for _, transformer, numbers in _selections(first):
            found |= {numbers[place] for place in _text_columns([transformer])}
        return frozenset(found)
    learnt = getattr(
        first, "statistics_" if isinstance(first, SimpleImputer) else "categories_", ()
    )
    return frozenset(
        place
        for place, values in enumerate(learnt)
        if any(isinstance(value, str) for value in np.ravel(values))
    )


def _category_columns(steps: Sequence[Any]) -> frozenset[int]:
    """Numbers of the input columns that an encoder compares with the categories it knows."""
    first = steps[0] if steps else None
    if isinstance(first, Pipeline):
        return _category_columns(steps_of(first))
    if isinstance(first, ColumnTransformer):
        return frozenset(
            numbers[place]
            for _, part, numbers in _selections(first)
            for place in _category_columns([part])
        )
    if isinstance(first, SimpleImputer):
        return _category_columns(steps[1:])
    return frozenset(range(len(getattr(first, "categories_", ()))))


def _selections(transformer: ColumnTransformer) -> list[tuple[str, Any, list[int]]]:
    """Each part of a ColumnTransformer with the numbers of its columns."""
    names = list(getattr(transformer, "feature_names_in_", ()))
    width = transformer.n_features_in_
    return [
        (name, part, _numbers(columns, names, width))
        for name, part, columns in transformer.transformers_
    ]


def _numbers(columns: Any, names: list[Any], width: int) -> list[int]:
    """Column numbers of what scikit-learn takes as columns: names, numbers, slices, masks."""
    if isinstance(columns, slice):
        ends = [
            names.index(end) if isinstance(end, str) else end
            for end in (columns.start, columns.stop)
        ]
        if isinstance(columns.stop, str) and ends[1] is not None:
            ends[1] += 1  # names include the last
        return list(range(width))[slice(ends[0], ends[1], columns.step)]
    listed = [columns] if isinstance(columns, (str, int, np.integer)) else list(columns)
    if listed and all(isinstance(entry, (bool, np.bool_)) for entry in listed):
        return [number for number, chosen in enumerate(listed) if chosen]
    return [
        names.index(entry) if isinstance(entry, str) else int(entry) % width for entry in listed
    ]


def transformed(graph: Graph, step: Any, rows: Rows) -> Rows:
    """The rows after a fitted transformer."""
    for kind, convert in CONVERTERS.items():
        if type(step) is kind:
            return convert(graph, step, rows)
    if hasattr(step, "get_support"):
        return rows.select(graph, [int(number) for number in step.get_support(indices=True)])
    known = ", ".join(kind.__name__ for kind in CONVERTERS)
    raise ValueError(
        f"{type(step).__name__} has no form in ONNX here, where {known} and feature selection "
        "have one: transform the rows before, and "
        "export the estimator alone."
    )


def _pipeline(graph: Graph, step: Pipeline, rows: Rows) -> Rows:
    for part in steps_of(step):
        rows = transformed(graph, part, rows)
    return rows


def _column_transformer(graph: Graph, step: ColumnTransformer, rows: Rows) -> Rows:
    parts = []
    for _, part, numbers in _selections(step):
        if not numbers or _is(part, "drop"):
            continue
        chosen = rows.select(graph, numbers)
        parts.append(chosen if isinstance(part, str) else transformed(graph, part, chosen))
    tensors = [part.matrix(graph) for part in parts]
    joined = tensors[0] if len(tensors) == 1 else graph.op("Concat", *tensors, axis=1)
    return Matrix(joined, sum(part.width for part in parts))


def _function(graph: Graph, step: FunctionTransformer, rows: Rows) -> Rows:
    if step.func is not None:
        raise ValueError(
            f"FunctionTransformer with func={step.func!r} has no form in ONNX here: transform the "
            "rows before."
        )
    return rows


def _affine(graph: Graph, rows: Rows, less: Any, over: Any) -> Matrix:
    """(x - less) / over; None leaves a part out."""
    x = rows.matrix(graph)
    x = x if less is None else graph.op("Sub", x, graph.number(less))
    return Matrix(x if over is None else graph.op("Div", x, graph.number(over)), rows.width)


def _standard_scaler(graph: Graph, step: StandardScaler, rows: Rows) -> Rows:
    return _affine(
        graph, rows, step.mean_ if step.with_mean else None, step.scale_ if step.with_std else None
    )


def _robust_scaler(graph: Graph, step: RobustScaler, rows: Rows) -> Rows:
    return _affine(
        graph,
        rows,
        step.center_ if step.with_centering else None,
        step.scale_ if step.with_scaling else None,
    )


def _max_abs_scaler(graph: Graph, step: MaxAbsScaler, rows: Rows) -> Rows:
    return _clipped(graph, step, _affine(graph, rows, None, step.scale_), -1.0, 1.0)


def _min_max_scaler(graph: Graph, step: MinMaxScaler, rows: Rows) -> Rows:
    scaled = graph.op("Mul", rows.matrix(graph), graph.number(step.scale_))
    return _clipped(
        graph,
        step,
        Matrix(graph.op("Add", scaled, graph.number(step.min_)), rows.width),
        *step.feature_range,
    )


def _clipped(graph: Graph, step: Any, rows: Matrix, low: float, high: float) -> Matrix:
    if not getattr(step, "clip", False):
        return rows
    return Matrix(graph.op("Clip", rows.tensor, graph.number(low), graph.number(high)), rows.width)


def _pca(graph: Graph, step: PCA, rows: Rows) -> Rows:
    axes = (
        step.components_.T / np.sqrt(step.explained_variance_)
        if step.whiten
        else step.components_.T
    )
    centred = graph.op("Sub", rows.matrix(graph), graph.number(step.mean_))
    return Matrix(graph.op("MatMul", centred, graph.number(axes)), axes.shape[1])


def _imputer(graph: Graph, step: SimpleImputer, rows: Rows) -> Rows:
    if isinstance(rows, Columns):
        return _text_imputer(graph, step, rows)
    x = rows.matrix(graph)
    missing = _is_missing(graph, x, step.missing_values)
    statistics = np.asarray(step.statistics_, dtype=np.float64)
    usable = np.flatnonzero(
        ~np.isnan(statistics)
    )  # columns without any value are dropped, unless kept as zeros
    filled = graph.op("Where", missing, graph.number(np.nan_to_num(statistics)), x)
    imputed = Matrix(filled, rows.width).select(graph, usable.tolist())
    if not step.add_indicator:
        return imputed
    indicator = Matrix(graph.cast(missing, graph.arithmetic), rows.width).select(
        graph, step.indicator_.features_.tolist()
    )
    return Matrix(
        graph.op("Concat", imputed.tensor, indicator.tensor, axis=1),
        imputed.width + indicator.width,
    )


def _is_missing(graph: Graph, x: str, missing_values: Any) -> str:
    if missing_values is None or missing_values != missing_values:
        return graph.op("IsNaN", x)
    return graph.op("Equal", x, graph.number(np.asarray(missing_values, dtype=graph.dtype)))


def _text_imputer(graph: Graph, step: SimpleImputer, rows: Columns) -> Rows:
    """Texts column by column; a missing one is the empty text."""
    if step.add_indicator or len(rows.texts) < rows.width:
        raise ValueError(
            "SimpleImputer of texts has a form in ONNX only without add_indicator, and on columns "
            "that are all texts."
        )
    filled = []
    for tensor, fill in zip(rows.tensors, step.statistics_, strict=True):
        marks = ["", *([step.missing_values] if isinstance(step.missing_values, str) else [])]
        for mark in marks:
            missing = graph.op("Equal", tensor, graph.constant(np.array([mark], dtype=object)))
            tensor = graph.op(
                "Where", missing, graph.constant(np.array([fill], dtype=object)), tensor
            )
        filled.append(tensor)
    return Columns(tuple(filled), rows.texts)


def _one_hot(graph: Graph, step: OneHotEncoder, rows: Rows) -> Rows:
    parts = [
        _one_hot_column(graph, step, number, rows.select(graph, [number]))
        for number in range(rows.width)
    ]
    tensor = (
        parts[0].tensor
        if len(parts) == 1
        else graph.op("Concat", *[part.tensor for part in parts], axis=1)
    )
    return Matrix(tensor, sum(part.width for part in parts))


def _one_hot_column(graph: Graph, step: OneHotEncoder, number: int, column: Rows) -> Matrix:
    """One column for each frequent category, in order, then one for the infrequent ones together,
    less the dropped one.
    """
    categories = list(step.categories_[number])
    infrequent = getattr(step, "infrequent_categories_", None)
    rare = [] if infrequent is None or infrequent[number] is None else list(infrequent[number])
    places = [place for place, category in enumerate(categories) if not _among(category, rare)]
    hot = _equals(graph, column, [categories[place] for place in places])
    if rare:
        if step.handle_unknown in ("infrequent_if_exist", "warn"):  # whatever is not frequent
            other = graph.op("Sub", graph.number([[1.0]]), graph.row_sum(hot))
        else:
            other = graph.row_sum(_equals(graph, column, rare))
        hot = graph.op("Concat", hot, other, axis=1)
    encoded = Matrix(hot, len(places) + bool(rare))
    dropped = None if step.drop_idx_ is None else step.drop_idx_[number]
    if dropped is None:
        return encoded
    place = places.index(dropped) if dropped in places else len(places)
    return encoded.select(graph, [other for other in range(encoded.width) if other != place])


def _among(value: Any, values: Sequence[Any]) -> bool:
    return any(
        value is other or value == other or (value != value and other != other) for other in values
    )


def _equals(graph: Graph, column: Rows, values: Sequence[Any]) -> str:
    """Ones where the column has the value, a column for each."""
    if not values:
        empty = graph.constant(np.zeros((0,), dtype=np.int64))
        tensor = column.tensors[0] if isinstance(column, Columns) else column.tensor
        index = graph.op("Gather", tensor, empty, axis=1)
        nothing = graph.op("Equal", index, index)
        return graph.cast(nothing, graph.arithmetic)
    if isinstance(column, Columns):
        texts = np.array(
            [value if isinstance(value, str) else "" for value in values], dtype=object
        )  # None and NaN are missing texts
        return graph.cast(
            graph.op("Equal", column.tensors[0], graph.constant(texts)), graph.arithmetic
        )
    numbers = np.array(values, dtype=np.float64).astype(graph.dtype)  # rounded as the input is
    equal = graph.op("Equal", column.tensor, graph.number(numbers))
    if np.isnan(numbers).any():
        equal = graph.op(
            "Or",
            equal,
            graph.op("And", graph.op("IsNaN", column.tensor), graph.constant(np.isnan(numbers))),
        )
    return graph.cast(equal, graph.arithmetic)


CONVERTERS: dict[type, Callable[[Graph, Any, Any], Rows]] = {
    StandardScaler: _standard_scaler,
    MinMaxScaler: _min_max_scaler,
    MaxAbsScaler: _max_abs_scaler,
    RobustScaler: _robust_scaler,
    SimpleImputer: _imputer,
    OneHotEncoder: _one_hot,
    PCA: _pca,
    FunctionTransformer: _function,
    ColumnTransformer: _column_transformer,
    Pipeline: _pipeline,
}
