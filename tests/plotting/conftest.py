"""What the tests of displays share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from optional import require


@pytest.fixture(autouse=True)
def no_windows() -> Iterator[None]:
    """Nothing is shown, and figures are closed after every test."""
    require("matplotlib").use("Agg")
    yield
    require("matplotlib.pyplot").close("all")
