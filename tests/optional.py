"""Optional packages.

Skipped with a reason where missing, failed where FITONCE_REQUIRE names them.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, NoReturn

import pytest

OPTIONAL = {
    "torch": "torch",
    "browser": "playwright.sync_api",
}  # markers, and the packages that they need


def missing(name: str, reason: str) -> NoReturn:
    """Skip the test, or fail it if FITONCE_REQUIRE (a comma list) has the name."""
    required = [entry.strip() for entry in os.environ.get("FITONCE_REQUIRE", "").split(",")]
    if name in required:
        pytest.fail(f"{name} is required by FITONCE_REQUIRE but {reason}", pytrace=False)
    pytest.skip(f"{name}: {reason}")


def require(name: str) -> Any:
    """The package of that marker (or of that name).

    Without it the test is skipped, or fails if FITONCE_REQUIRE has the name.
    """
    try:
        return importlib.import_module(OPTIONAL.get(name, name))
    except ImportError as error:
        missing(name, f"cannot be imported: {error}")
