"""Is a result older than the code that makes it?

    python benchmarks/provenance.py                 # every result, and what has changed since
    python benchmarks/provenance.py --check         # fails where the script itself has changed
    python benchmarks/provenance.py --note NAME "why its figures still hold"

`common.write`, and `recording.py` of the papers, store in each result a hash of every input: of the
script, and of each room of the package that took part. A script that is one list of many entries
("models.py forty") counts with this entry and with what it reaches of the modules in benchmarks/.
Hashes see code only: comments, docstrings, layout and imports do not change them.

A script that has changed since its result was made must run again, or a note must say why the
figures still hold. Notes lie in results/notes.json with the hash that they speak of, so that the
next change asks again. Rooms of the package change with every improvement; they are listed, and
looked at before a release. A result that no script of today has made says so: `made_by` names the
former script and its commit.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
NOTES = RESULTS / "notes.json"
PACKAGE = ROOT / "src" / "fitonce"
SHARED = {"common", "provenance", "recording"}  # they time and write; no figure depends on how
LISTS = {"STUDIES", "TASKS", "SETTINGS"}  # the names of lists whose entries are asked for


def code(node: Any) -> str:
    """What code does, without comments, docstrings and layout, the same in every Python."""
    if isinstance(node, list):
        return "[" + ",".join(code(one) for one in node if not _is_docstring(one)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return ""  # where a name lives is not what the code does
    fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
    inside = ",".join(f"{name}={code(value)}" for name, value in fields if name != "kind")
    return f"{type(node).__name__}({inside})"


def _is_docstring(node: Any) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def digest(*nodes: Any) -> str:
    return hashlib.sha256("\n".join(map(code, nodes)).encode()).hexdigest()[:16]


# ---- what a script reaches -----------------------------------------------------------------------


@cache
def module(path: str) -> dict[str, Any]:
    """The top-level statements of a file, imports left out, by the name that each defines; others
    are numbered.
    """
    found: dict[str, Any] = {}
    for place, node in enumerate(ast.parse((ROOT / path).read_text(encoding="utf-8")).body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        names = [getattr(node, "name", None)]
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [one for target in targets for one in ast.walk(target)]
            names = [one.id for one in parts if isinstance(one, ast.Name)]
        for name in names:
            found.setdefault(name or f"statement {place}", []).append(node)
    return found


@cache
def imported(path: str) -> dict[str, tuple[str, str | None]]:
    """By the name in this file: the file beside it or in benchmarks/, and the name there."""
    found: dict[str, tuple[str, str | None]] = {}
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and (file := beside(node.module, path)):
            found |= {one.asname or one.name: (file, one.name) for one in node.names}
        elif isinstance(node, ast.Import):
            for one in node.names:
                if file := beside(one.name, path):
                    found[one.asname or one.name] = (file, None)
    return found


def beside(name: str, importer: str) -> str | None:
    """The path of a module from the root: in the importer's folder first, as Python looks."""
    folders = [Path(importer).parent.as_posix(), "benchmarks"]
    paths = [f"{folder}/{name}.py" for folder in folders]
    return next((p for p in paths if name not in SHARED and (ROOT / p).is_file()), None)


def reached(path: str, entry: str | None = None) -> dict[str, set[str]]:
    """By file, the top-level names that a script uses, directly or not; of a list of entries only
    the one asked for.
    """
    found: dict[str, set[str]] = {}
    waiting: list[tuple[str, str | None]] = [(path, None)]
    while waiting:
        file, name = waiting.pop()
        names = [name] if name in module(file) else list(module(file))
        if name is None and file == path and entry:
            names = [one for one in module(file) if one == "main" or one in LISTS]
        for one in names:
            if one in found.setdefault(file, set()):
                continue
            found[file].add(one)
            for node in module(file)[one]:
                waiting += list(_used(node if one not in LISTS else of_entry(node, entry), file))
    return found


def _used(node: ast.AST, file: str) -> Iterator[tuple[str, str | None]]:
    """The names of this file and of files beside it that occur in a statement."""
    known = imported(file)
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and one.id in module(file):
            yield file, one.id
        elif isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
            target = known.get(one.value.id)
            if target and target[1] is None:
                yield target[0], one.attr
        elif isinstance(one, ast.Name) and one.id in known and known[one.id][1] is not None:
            yield known[one.id]


def of_entry(node: Any, entry: str | None) -> Any:
    """The value of a list's dictionary under this key; the whole list without a key."""
    if entry is None or not isinstance(node.value, ast.Dict):
        return node
    pairs = zip(node.value.keys, node.value.values, strict=True)
    return next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == entry), node)


def inputs(script: str) -> dict[str, str]:
    """The hash of what a script ("benchmarks/models.py forty") reaches, and of each room of the
    package that this process has loaded; of all of them where none is.
    """
    path, _, entry = script.partition(" ")
    nodes = [
        of_entry(node, entry or None) if name in LISTS else node
        for file, names in sorted(reached(path, entry or None).items())
        for name in sorted(names)
        for node in module(file)[name]
    ]
    rooms = {name.split(".")[1] for name in sys.modules if name.startswith("fitonce.")}
    return {script: digest(*nodes), **{f"src/fitonce/{room}": room_hash(room) for room in rooms}}


@cache
def room_hash(name: str) -> str:
    path = PACKAGE / name
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    texts = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    return digest(*map(ast.parse, texts))


# ---- results -------------------------------------------------------------------------------------


def script_of(result: dict[str, Any]) -> str:
    """The script and the entry of its list, without options."""
    return str(result["script"]).split(" --")[0]


def changed(result: dict[str, Any], note: dict[str, Any] | None = None) -> list[str]:
    """The inputs that are no longer those of the result, nor those that a note speaks of."""
    then, noted = result.get("inputs", {}), (note or {}).get("inputs", {})
    script = script_of(result)
    now = {script: inputs(script)[script]}
    for path in then:
        if path.startswith("src/fitonce/"):
            now[path] = room_hash(path.removeprefix("src/fitonce/").removesuffix(".py"))
    return [path for path, value in now.items() if value not in (then.get(path), noted.get(path))]


def results() -> dict[str, dict[str, Any]]:
    """By name; those of the papers as papers/name."""
    found = {}
    for path in sorted(RESULTS.rglob("*.json")):
        if path != NOTES:
            loaded = json.loads(path.read_text(encoding="utf-8"))
            name = path.relative_to(RESULTS).with_suffix("").as_posix()
            found |= {f"{name}: {task}": one for task, one in loaded.get("tasks", {}).items()}
            found[name] = loaded
    return {name: one for name, one in found.items() if "script" in one}


def notes() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(NOTES.read_text(encoding="utf-8"))
    return loaded


def outdated(scripts_only: bool = False) -> list[str]:
    """One line for each result that is older than an input."""
    known, lines = notes(), []
    for name, result in results().items():
        if "made_by" in result:
            lines += [] if scripts_only else [f"{name}.json was made by {result['made_by']}"]
            continue
        found = changed(result, known.get(name))
        shown = [path for path in found if not scripts_only or path.startswith("benchmarks/")]
        if shown:
            when = " ".join(str(result.get(key, "")) for key in ("date", "commit")).strip()
            lines.append(f"{name}.json ({when or 'no date'}) is older than {', '.join(shown)}")
    return lines


def add_note(name: str, why: str) -> None:
    script = script_of(results()[name])
    entries = {**notes(), name: {"why": why, "inputs": {script: inputs(script)[script]}}}
    NOTES.write_text(json.dumps(dict(sorted(entries.items())), indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fails where a script has changed")
    parser.add_argument("--note", nargs=2, metavar=("NAME", "WHY"))
    arguments = parser.parse_args()
    if arguments.note:
        add_note(*arguments.note)
        return
    print("\n".join(outdated()) or "no result is older than its inputs")
    if arguments.check and outdated(scripts_only=True):
        raise SystemExit("run these scripts again, or say with --note why the figures still hold")


if __name__ == "__main__":
    main()
