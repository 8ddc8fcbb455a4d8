"""Optional packages: skipped with a reason where missing, failed where FITONCE_REQUIRE names them."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest

OPTIONAL = ("torch",)  # markers that name a package


def require(name: str) -> Any:
    """The module of that name; without it the test is skipped, or fails if FITONCE_REQUIRE (a comma list) has the name."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        required = [entry.strip() for entry in os.environ.get("FITONCE_REQUIRE", "").split(",")]
        if name in required:
            pytest.fail(f"{name} is required by FITONCE_REQUIRE but cannot be imported: {error}", pytrace=False)
        pytest.skip(f"{name} cannot be imported: {error}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name in OPTIONAL:
        if item.get_closest_marker(name):
            require(name)
