"""Is a result older than the code that makes it?

    python benchmarks/provenance.py             # every result whose inputs have changed since
    python benchmarks/provenance.py --check     # only those whose script has; the tests do this too
    python benchmarks/provenance.py --note NAME "why its figures still hold"

`common.write`, and `recording.py` of the papers, store in each result file a hash of every input:
the script with the benchmark modules that it imports, and the rooms of the package. Hashes see code
only: comments, docstrings and layout do not change them.

A script that has changed since its result was made must be run again, or a note must say why the
figures still hold. Notes lie in results/notes.json with the hashes that they speak of, so that the
next change asks again. Rooms of the package change with every improvement; they are listed here
and looked at before a release.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
NOTES = RESULTS / "notes.json"
PACKAGE = "src/fitonce"
SHARED = {"common", "provenance", "recording"}  # they time and write; no figure depends on how
NOT_ROOMS = {"__pycache__"}

Read = Callable[[str], str]  # a path from the root: its text


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def code(text: str) -> str:
    """What a module does, without comments, docstrings and layout, the same in every Python."""
    return _shape(ast.parse(text))


def _shape(node: Any) -> str:
    if isinstance(node, list):
        return "[" + ",".join(_shape(one) for one in node if not _is_docstring(one)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
    inside = ",".join(f"{name}={_shape(value)}" for name, value in fields if name != "kind")
    return f"{type(node).__name__}({inside})"


def _is_docstring(node: Any) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@cache  # every result asks for every room of the package
def digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(map(code, texts)).encode()).hexdigest()[:16]


def modules(script: str, read: Read = read) -> list[str]:
    """The script and the modules beside it, or in benchmarks/, that it imports, directly or not."""
    found, waiting = [script], [script]
    while waiting:
        importer = waiting.pop()
        for name in _imported(read(importer)):
            path = _module(name, Path(importer).parent.as_posix())
            if name not in SHARED and path is not None and path not in found:
                found.append(path)
                waiting.append(path)
    return sorted(found)


def _module(name: str, folder: str) -> str | None:
    """Its path from the root: in the importer's folder first, as Python looks for it."""
    paths = [f"{place}/{name}.py" for place in (folder, "benchmarks")]
    return next((path for path in paths if (ROOT / path).is_file()), None)


@cache
def _imported(text: str) -> tuple[str, ...]:
    return tuple(_import_statements(ast.parse(text)))


def _import_statements(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def inputs(script: str) -> dict[str, str]:
    """The hash of each benchmark module that takes part, and of each room of the package."""
    own = {path: digest(read(path)) for path in modules(script)}
    rooms = {}
    for room in sorted((ROOT / PACKAGE).iterdir()):
        files = sorted(room.rglob("*.py")) if room.is_dir() else [room]
        if room.name not in NOT_ROOMS and files and files[0].suffix == ".py":
            texts = [file.read_text(encoding="utf-8") for file in files]
            rooms[f"{PACKAGE}/{room.name}"] = digest(*texts)
    return own | rooms


def changed(result: dict[str, Any], note: dict[str, Any] | None = None) -> list[str]:
    """The inputs that are no longer those of the result, nor those that a note speaks of."""
    then = result.get("inputs", {})
    now = inputs(result["script"].split()[0])
    noted = (note or {}).get("inputs", {})
    return [
        path for path, value in now.items() if then.get(path) != value and noted.get(path) != value
    ]


def results() -> dict[str, dict[str, Any]]:
    """By name; those of the papers as papers/name."""
    files = sorted(path for path in RESULTS.glob("*.json") if path != NOTES)
    files += sorted((RESULTS / "papers").glob("*.json"))
    loaded = {
        path.relative_to(RESULTS).with_suffix("").as_posix(): json.loads(
            path.read_text(encoding="utf-8")
        )
        for path in files
    }
    return {name: one for name, one in loaded.items() if "script" in one}


def notes() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(NOTES.read_text(encoding="utf-8"))
    return loaded


def outdated(scripts_only: bool = False) -> list[str]:
    """One line for each result that is older than an input."""
    known, lines = notes(), []
    for name, result in results().items():
        found = changed(result, known.get(name))
        shown = [path for path in found if not scripts_only or path.startswith("benchmarks/")]
        if shown:
            lines.append(f"{name}.json is older than {', '.join(shown)}")
    return lines


def add_note(name: str, why: str) -> None:
    script = results()[name]["script"].split()[0]
    own = {path: value for path, value in inputs(script).items() if path.startswith("benchmarks/")}
    entries = {**notes(), name: {"why": why, "inputs": own}}
    NOTES.write_text(json.dumps(dict(sorted(entries.items())), indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="scripts only; fails if one changed")
    parser.add_argument("--note", nargs=2, metavar=("NAME", "WHY"))
    arguments = parser.parse_args()
    if arguments.note:
        add_note(*arguments.note)
        return
    lines = outdated(arguments.check)
    print("\n".join(lines) or "no result is older than its inputs")
    if arguments.check and lines:
        raise SystemExit("run these scripts again, or say with --note why the figures still hold")


if __name__ == "__main__":
    main()
