"""Which tests run.

Tests that need optional packages are left out where these are missing, and fail before they start
where FITONCE_REQUIRE asks for them. Of a test marked `pairwise` those combinations of parameters
run that together hold every pair of levels; `--every-combination` runs all of them. `--each 3`
keeps three cases of every parametrized test.
"""

from __future__ import annotations

import gc

import pytest

from covering import covering
from optional import OPTIONAL, missing, required, unavailable

collect_ignore_glob = ["conftest.py", "*/conftest.py"]  # they hold no doctests


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--each",
        type=int,
        metavar="N",
        help="at most N cases of every parametrized test, spread over its list",
    )
    parser.addoption(
        "--every-combination", action="store_true", help="tests marked pairwise run in full"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, rather than skip one by one, what needs a package that is not here."""
    for name in OPTIONAL:
        marked = {item for item in items if item.get_closest_marker(name)}
        if marked and not required(name) and unavailable(name):
            leave_out(config, items, marked)
    if not config.getoption("--every-combination"):
        marked = [item for item in items if item.get_closest_marker("pairwise")]
        repeats = (set(cases) - covering_cases(cases) for cases in by_function(marked))
        leave_out(config, items, set().union(*repeats))
    if most := config.getoption("--each"):
        repeats = (
            set(cases) - {cases[i] for i in spread(len(cases), most)}
            for cases in by_function(items)
        )
        leave_out(config, items, set().union(*repeats))


def pytest_collection_finish() -> None:
    """What is here now stays: tests that collect garbage need not look through all of it."""
    gc.collect()
    gc.freeze()


def leave_out(config: pytest.Config, items: list[pytest.Item], these: set[pytest.Item]) -> None:
    if these:
        config.hook.pytest_deselected(items=[item for item in items if item in these])
        items[:] = [item for item in items if item not in these]


def by_function(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """The cases of each parametrized test together."""
    functions: dict[tuple[object, str], list[pytest.Item]] = {}
    for item in items:
        key = (item.parent, getattr(item, "originalname", item.name))
        functions.setdefault(key, []).append(item)
    return list(functions.values())


def covering_cases(cases: list[pytest.Item]) -> set[pytest.Item]:
    """Few of the cases that hold every pair of levels of two parameters that any of them holds."""
    # the values of parameters need not be hashable; those of one level are one object
    levels = [{name: id(value) for name, value in case.callspec.params.items()} for case in cases]
    return {cases[i] for i in covering(levels)}


def spread(n: int, most: int) -> list[int]:
    if n <= most:
        return list(range(n))
    return [round(i * (n - 1) / max(most - 1, 1)) for i in range(most)]


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name in OPTIONAL:
        if item.get_closest_marker(name) and (reason := unavailable(name)):
            missing(name, reason)
