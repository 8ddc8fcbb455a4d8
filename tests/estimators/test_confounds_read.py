"""Confounds of any table or array are the same numbers and categories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fitonce import KernelRidge
from fitonce.rows import open_rows
from problems import numbered_rows

N = 30
RNG = np.random.default_rng(0)
AGE, SITE = RNG.normal(size=N), np.array(["north", "south", "east"])[RNG.integers(3, size=N)]
DAYS = np.array(["2020-01-01", "2020-02-01"])[np.arange(N) % 2]
MODEL = KernelRidge(0.3, gamma=0.4)


def held_out(confounds) -> np.ndarray:
    X, y = numbered_rows(N)
    return MODEL.fit(X, y, confounds=confounds).held_out_prediction_


def test_tables_of_any_library_are_read_alike():
    pl = pytest.importorskip("polars")
    columns = {"age": AGE, "site": SITE, "visit": DAYS}
    categories = {"site": "category", "visit": "category"}
    expected = held_out(pd.DataFrame(columns).astype(categories))
    assert MODEL.confounds_.words == "age, site and visit"
    named = pl.DataFrame(columns).with_columns(pl.col("site", "visit").cast(pl.Categorical))
    listed = named.with_columns(pl.col("visit").cast(pl.Enum(["2020-01-01", "2020-02-01"])))
    for table in (named, listed):
        np.testing.assert_allclose(held_out(table), expected, atol=1e-12)
        assert MODEL.confounds_.names == ("age", "site", "visit")
    dates = pl.DataFrame({"visit": DAYS})
    with pytest.raises(ValueError, match="'visit' has dates as text"):
        held_out(dates)
    days = pd.to_datetime(pd.Series(DAYS))
    as_days = held_out(dates.with_columns(pl.col("visit").str.to_date()))
    np.testing.assert_allclose(as_days, held_out(days), atol=1e-12)


def test_arrays_lists_and_series_are_read_alike():
    for one in (AGE, AGE[:, None], AGE.tolist(), pd.Series(AGE), pd.Series(AGE).to_frame("age")):
        np.testing.assert_allclose(held_out(one), held_out(AGE), atol=1e-12)
    assert MODEL.confounds_.names == ("confound",)
    held_out(pd.Series(AGE, name="age"))
    assert MODEL.confounds_.words == "age"
    held_out(np.column_stack([AGE, AGE**2]))
    assert MODEL.confounds_.names == ("confound 1", "confound 2")
    twice = pd.DataFrame(np.column_stack([AGE, AGE**2]), columns=["a", "a"])
    np.testing.assert_allclose(held_out(twice), held_out(twice.to_numpy()), atol=1e-12)
    for bad, match in ((np.ones((N, 1, 1)), "3 dimensions"), (np.ones((N, 0)), "no columns")):
        with pytest.raises(ValueError, match=match):
            held_out(bad)


def test_rows_in_blocks_have_no_confounds():
    X, y = numbered_rows(N)
    model = KernelRidge(0.3, gamma=0.4, landmarks=5, random_state=0)
    with pytest.raises(ValueError, match="confounds need the rows in memory"):
        model.fit(open_rows([(X, y)]), confounds=AGE)
