"""Optional packages: absent from the run where missing, failed where FITONCE_REQUIRE names them."""

from __future__ import annotations

import importlib
import os
import shutil
from functools import cache
from typing import Any, NoReturn

import pytest

OPTIONAL = {
    "torch": "torch",
    "browser": "playwright.sync_api",
}  # markers, and the packages that they need


def required(name: str) -> bool:
    """Whether FITONCE_REQUIRE (a comma list) has the name."""
    return name in [entry.strip() for entry in os.environ.get("FITONCE_REQUIRE", "").split(",")]


@cache
def unavailable(name: str) -> str | None:
    """Why the tests of that marker cannot run, None where they can."""
    try:
        importlib.import_module(OPTIONAL.get(name, name))
    except ImportError as error:
        return f"cannot be imported: {error}"
    if name == "browser" and shutil.which("chromium") is None:
        return "there is no chromium on the PATH"
    return None


def missing(name: str, reason: str) -> NoReturn:
    """Skip the test, or fail it if FITONCE_REQUIRE has the name."""
    if required(name):
        pytest.fail(f"{name} is required by FITONCE_REQUIRE but {reason}", pytrace=False)
    pytest.skip(f"{name}: {reason}")


def require(name: str) -> Any:
    """The package of that marker (or of that name).

    Without it the test is skipped, or fails if FITONCE_REQUIRE has the name.
    """
    if reason := unavailable(name):
        missing(name, reason)
    return importlib.import_module(OPTIONAL.get(name, name))
