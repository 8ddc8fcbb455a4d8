"""The scripts in examples/ run, as their readers would run them, and say something.

Most of them run when the documentation is built, and a failure there is an error: docs/_gallery.py.
Here runs the one that the gallery only shows.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
HERE = {"gpu"}  # it takes the CPU where there is no GPU


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", [path for path in EXAMPLES if path.stem in HERE], ids=lambda path: path.stem
)
def test_it_runs(example, tmp_path):
    environment = {
        **os.environ,
        "MPLBACKEND": "Agg",
        "PYTHONWARNINGS": "error::DeprecationWarning:fitonce",
    }
    command = [sys.executable, str(example)]
    result = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())  # nothing is left where it ran


def test_the_gallery_has_what_users_look_for():
    names = {path.stem for path in EXAMPLES}
    assert names >= {
        "quickstart",
        "tuning_against_grid_search",
        "nested_cross_validation",
        "permutation_groups",
        "time_resolved_decoding",
        "large_data",
        "gpu",
        "paper_setting",
        "report_page",
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_says_what_it_shows(example):
    first = example.read_text(encoding="utf-8").split('"""')[1].strip()
    assert len(first.split()) > 15 and f"examples/{example.name}" in first
