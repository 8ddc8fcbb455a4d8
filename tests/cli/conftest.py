"""A folder with a table in it."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def few_stops(monkeypatch):
    """Pages with three values of gamma and five of alpha; tests/report has pages with all."""
    monkeypatch.setattr("fitonce.report.explorer.LADDER", ((1, 2),))


@pytest.fixture(autouse=True)
def few_trees(request, monkeypatch):
    """Forests beside the model have five trees; tests of comparisons have forests as they are."""
    pytest.importorskip("fitonce.cli.model", exc_type=ImportError)
    if request.node.path.stem != "test_comparing":
        monkeypatch.setattr("fitonce.cli.model.TREES", 5)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    from helpers_cli import table

    monkeypatch.chdir(tmp_path)
    table().write_csv("good.csv")
    return tmp_path
