"""The public names with their signatures and defaults are those of public_api.json.

A change is written there by `python tests/test_public_api.py`, so that it shows in the review.
"""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path

import fitonce

SNAPSHOT = Path(__file__).with_name("public_api.json")
MODULES = (
    "fitonce",
    "fitonce.conversions",
    "fitonce.encoding",
    "fitonce.plotting",
    "fitonce.positions",
    "fitonce.report",
    "fitonce.rows",
)


def signature(function) -> str:
    """Parameters and their defaults, without annotations; warnings have none."""
    if inspect.isclass(function) and issubclass(function, Warning):
        return "Warning"
    given = inspect.signature(function)
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in given.parameters.values()]
    return str(given.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def public_names(module) -> list[str]:
    """The names that a module says are public, or those that it defines."""
    defined = [name for name, value in vars(module).items() if is_own(value, module)]
    return sorted(getattr(module, "__all__", defined))


def is_own(value, module) -> bool:
    return inspect.isfunction(value) and value.__module__ == module.__name__ and public(value)


def public(function) -> bool:
    return not function.__name__.startswith("_")


def signatures() -> dict[str, str]:
    """The signature of every public function, class and method of ours."""
    found = {}
    for path in MODULES:
        module = importlib.import_module(path)
        for name in public_names(module):
            value = getattr(module, name)
            found[f"{path}.{name}"] = signature(value)
            for method, function in inspect.getmembers(value, inspect.isfunction):
                if public(function) and function.__module__.startswith("fitonce"):
                    found[f"{path}.{name}.{method}"] = signature(function)
    return found


def test_the_public_api_is_the_one_on_record():
    recorded = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    found = signatures()
    changed = sorted(n for n in recorded | found if recorded.get(n) != found.get(n))
    assert not changed, "if these are meant, run python tests/test_public_api.py"


def test_at_most_thirty_names_at_the_top():
    assert len(fitonce.__all__) <= 30


if __name__ == "__main__":
    SNAPSHOT.write_text(json.dumps(signatures(), indent=1) + "\n", encoding="utf-8")
