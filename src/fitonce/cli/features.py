"""The features of a table: which columns are useful, and their values as floats or strings.

Whatever is learned from rows (medians, means, the list of categories) is left to the pipeline,
which cross-validation refits in every training set.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

import polars as pl

from . import dates
from .errors import UserError
from .remarks import Remarks, counted, listed, option
from .tables import Table
from .values import (
    ABSENT,
    CATEGORY,
    DATE,
    IDENTIFIER,
    NESTED,
    NUMBERS,
    as_category,
    as_number,
    kind_of,
    why_useless,
    with_unit,
)


@dataclass(frozen=True)
class Feature:
    """A feature of a model, and how its values are obtained from a column of a table."""

    name: str
    kind: str  # NUMBERS, CATEGORY or one of dates.PARTS
    source: str
    format: str | None = None
    first: str | None = None

    @property
    def is_category(self) -> bool:
        return self.kind in (CATEGORY, dates.WEEKDAY)

    def values(self, frame: pl.DataFrame, remarks: Remarks) -> pl.Series:
        column = frame[self.source]
        if self.kind in dates.PARTS:
            part = dates.part_of(column, self.kind, self.format, self.first).alias(self.name)
            return part.fill_null(ABSENT) if self.is_category else part
        return as_category(column) if self.is_category else as_number(column, remarks)

    @property
    def identity(self) -> dict[str, str]:
        """What a model file stores about it."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        if self.source == self.name:
            known.pop("source")
        return known

    @classmethod
    def remembered(cls, known: dict[str, str]) -> Feature:
        """The feature from a model file."""
        return cls(**{"source": known["name"], **known})


@dataclass(frozen=True)
class Features:
    """Features, their values, and the columns that were left out because they identify rows."""

    X: pl.DataFrame
    chosen: list[Feature]
    identifiers: list[str]


def features_of(table: Table, features: Sequence[Feature]) -> tuple[pl.DataFrame, list[str]]:
    """The features of new rows, read as for the rows of the model, and remarks about them."""
    remarks = Remarks(table.notes)
    sources = list(dict.fromkeys(feature.source for feature in features))
    missing = [name for name in sources if name not in table.frame.columns]
    if missing:
        raise UserError(
            f"{table.name} lacks {len(missing)} of the {len(sources)} columns that the model was "
            f"fitted on: {listed(missing)}. It has {listed(table.frame.columns)}."
        )
    X = pl.DataFrame([feature.values(table.frame, remarks) for feature in features])
    return X, remarks.lines


def find_features(
    frame: pl.DataFrame, keep: Collection[str], categorical: Collection[str], remarks: Remarks
) -> Features:
    """The useful columns as features."""
    kinds = {v.name: CATEGORY if v.name in categorical else kind_of(v) for v in frame}
    _refuse_nested([name for name, kind in kinds.items() if kind == NESTED])
    found: list[tuple[Feature, pl.Series]] = []
    useless: dict[str, list[str]] = {}
    for column in frame:
        name, kind = column.name, kinds[column.name]
        if kind == DATE:
            found += _date_parts(frame, name, remarks)
            continue
        feature = Feature(name, CATEGORY if kind == CATEGORY else NUMBERS, name)
        values = feature.values(frame, remarks)
        if kind == CATEGORY and (example := with_unit(column)):
            said = (
                f"numbers with a unit ({example}), read as text: remove the unit to use the numbers"
            )
            remarks.about(name, said, "unit")
        reason = why_useless(column, values, kind)
        if reason and name not in keep:
            useless.setdefault(reason, []).append(name)
        else:
            found.append((feature, values))
    for reason, names in useless.items():
        remarks.add(f"left out: {listed(names)} ({reason})")
    X = pl.DataFrame([values for _, values in found])
    _count_gaps(X, remarks)
    named = [name for reason, names in useless.items() if IDENTIFIER in reason for name in names]
    identifiers = [name for name in named if frame[name].n_unique() == frame.height]
    return Features(X, [feature for feature, _ in found], identifiers)


def _date_parts(
    frame: pl.DataFrame, name: str, remarks: Remarks
) -> list[tuple[Feature, pl.Series]]:
    """A column of dates as numbers, without those that are the same in all rows."""
    column = frame[name]
    form, unsure = dates.format_of(column)
    first = dates.first_day(column, form)
    parts = dates.PARTS if first is not None else (dates.HOUR,)
    features = [Feature(f"{name} ({part})", part, name, form, first) for part in parts]
    found = [(feature, feature.values(frame, remarks)) for feature in features]
    found = [(f, v) for f, v in found if v.drop_nulls().n_unique() > 1]
    used = [f"{f.kind} since {first}" if f.kind == dates.DAYS else f.kind for f, _ in found]
    said = f"dates, used as {', '.join(used)}" if used else "left out, the same date in every row"
    if unsure and form is not None:
        order = "day before month" if form.startswith("%d") else "month before day"
        said += f" (read as {order}; write dates as 2024-12-31 to avoid the ambiguity)"
    remarks.about(name, said, "dates")
    return found


def _count_gaps(X: pl.DataFrame, remarks: Remarks) -> None:
    gaps = sum(int((v == ABSENT).sum()) if v.dtype == pl.String else v.null_count() for v in X)
    if gaps:
        remarks.add(
            f"{counted(gaps, 'missing value')} ({gaps / (X.width * X.height):.1%}): replaced by "
            "the median and flagged in numeric columns, a separate category in the others"
        )


def _refuse_nested(names: Sequence[str]) -> None:
    """Refuse lists and structures, which cannot be used as features."""
    if names:
        hold = "holds" if len(names) == 1 else "hold"
        raise UserError(
            f"{listed(names)} {hold} lists or structures: flatten them, or leave them out with "
            f"{option('drop', *names[:3])}."
        )
