"""Hints about columns that may make held-out scores too optimistic: groups and copies of the
target.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import polars as pl

from .remarks import option

GROUP_NAME = re.compile(  # names of repeated units: rows of one subject are alike
    r"(^|.*[_\s.-])(sub|subj|subject|participant|proband|patient|person|individual|donor|animal|"
    r"mouse|rat|monkey|litter|cage|family|site|cent(re|er)|hospital|session|batch|plate)s?"
    r"([_\s.-]?(id|ids|nr|no|number|name|code))?$|(^|.*[_\s.-])(id|ids|uuid|guid)$|.*[a-z]I[dD]$",
    re.IGNORECASE,
)
COPY_ROWS = 10  # fewest rows in which a copy can be distinguished from chance
SAME_ORDER = 0.999999  # rank correlation from which a number counts as the target transformed


def about_groups(
    name: str | None, groups: np.ndarray | None, features: Iterable[pl.Series]
) -> list[str]:
    """A remark about the groups, or about features that seem to identify groups of rows.

    If rows of one subject are split between training and test set, they reveal its labels.
    """
    if groups is not None:
        number = len(np.unique(groups))
        return [f"{number:,} groups in {name!r}: rows of one group are tested together"]
    return [
        f"{values.name!r} is used as a feature, and several rows share each value. If these rows "
        f"belong together (one patient, one site), add {option('group', values.name)}. Otherwise "
        "the scores are too optimistic for new ones"
        for values in features
        if GROUP_NAME.match(values.name) and 2 < values.n_unique() < 0.95 * values.len()
    ]


def about_copies(target: str, y: np.ndarray, task: str, features: Iterable[pl.Series]) -> list[str]:
    """Features that are the target under another name, which makes the scores meaningless."""
    return [
        f"{values.name!r} predicts {target!r} without error: if it is a copy of the target, or "
        f"known only after it, use {option('drop', values.name)}"
        for values in features
        if len(y) >= COPY_ROWS and _is_copy(values, y, task)
    ]


def _is_copy(values: pl.Series, y: np.ndarray, task: str) -> bool:
    known = values.is_not_null()
    if int(known.sum()) < max(COPY_ROWS, 0.5 * len(y)):
        return False
    values, target = values.filter(known), pl.Series("y", y).filter(known)
    if task == "classification":
        levels = target.n_unique()
        pairs = pl.DataFrame([values.alias("x"), target])
        return values.n_unique() == levels > 1 and pairs.n_unique() == levels
    if values.dtype == pl.String or values.n_unique() < max(COPY_ROWS, 0.9 * target.n_unique()):
        return False
    ranks, others = (v.rank().to_numpy() for v in (values, target))
    return bool(abs(np.corrcoef(ranks, others)[0, 1]) > SAME_ORDER)
