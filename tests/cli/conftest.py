"""A folder with a table in it."""

from __future__ import annotations

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    from helpers_cli import table

    monkeypatch.chdir(tmp_path)
    table().write_csv("good.csv")
    return tmp_path
