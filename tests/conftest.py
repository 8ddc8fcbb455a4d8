"""Tests that need optional packages are skipped or failed before they start."""

from __future__ import annotations

import shutil

import pytest

from optional import OPTIONAL, missing, require

collect_ignore_glob = ["conftest.py", "*/conftest.py"]  # they hold no doctests


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name in OPTIONAL:
        if item.get_closest_marker(name):
            require(name)
    if item.get_closest_marker("browser") and shutil.which("chromium") is None:
        missing("browser", "there is no chromium on the PATH")
