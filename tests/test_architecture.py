"""The layers import one way, nothing heavy is imported unasked, and public names are documented."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import fitonce

PACKAGE = Path(fitonce.__file__).parent
LAYERS = (  # each may import those before it
    "datasets",
    "encoding",
    "core",
    "preparation",
    "kernels",
    "landmarks",
    "rows",
    "tuning",
    "uncertainty",
    "estimators",
    "crossval",
    "inference",
    "assessment",
    "positions",
    "io",
    "plotting",
    "report",
    "cli",
)
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
HEAVY = (
    "torch",
    "cupy",
    "dask",
    "pandas",
    "polars",
    "matplotlib",
    "typer",
    "rich",
    "jinja2",
    "skops",
    "onnx",
    "pyarrow",
)


def imported(module: Path) -> set[str]:
    """Absolute names of what a module of the package imports anywhere in it, type-checking blocks
    and functions included.
    """
    package = ["fitonce", *module.parent.parts]
    names = set()
    for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            prefix = ".".join([*base, *([node.module] if node.module else [])])
            names |= {f"{prefix}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
            names |= by_string(node, package)
    return names


def called(node: ast.Call) -> str:
    """The last part of the name of what is called."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def by_string(node: ast.Call, package: list[str]) -> set[str]:
    """The name that a call imports; of one that is put together, the part that is written there."""
    given = node.args[0]
    text = given.values[0] if isinstance(given, ast.JoinedStr) and given.values else given
    if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
        return set()
    level = len(text.value) - len(text.value.lstrip("."))
    base = package[: len(package) - level + 1] if level else []
    return {".".join([*base, text.value.strip(".")]).rstrip(".")}


def layer(name: str) -> str | None:
    """The layer of a dotted name of the package, None for the package itself and for other
    packages.
    """
    parts = name.split(".")
    return parts[1] if parts[0] == "fitonce" and len(parts) > 1 and parts[1] in LAYERS else None


def layer_of(module: Path) -> str | None:
    return layer(".".join(["fitonce", *module.with_suffix("").parts]))


def test_the_parser_sees_relative_imports():
    assert any(name.startswith("fitonce.core.") for name in imported(Path("estimators/base.py")))
    assert {layer_of(module) for module in MODULES} >= set(LAYERS)


@pytest.mark.parametrize(
    "planted",
    [
        'importlib.import_module("fitonce.report")',
        'importlib.import_module("..report", __package__)',
        'import_module(f"fitonce.report.{name}")',
        '__import__("fitonce.report")',
    ],
)
def test_imports_by_string_are_seen(planted, tmp_path, monkeypatch):
    module = Path("estimators/base.py")
    (tmp_path / "estimators").mkdir()
    source = (PACKAGE / module).read_text(encoding="utf-8")
    (tmp_path / module).write_text(f"{source}\n\ndef planted(name):\n    return {planted}\n")
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    assert any("imports fitonce.report" in fault for fault in misplaced(module))


def misplaced(module: Path) -> list[str]:
    """The imports of a module that point the wrong way, in words."""
    own, faults = layer_of(module), []
    for name in imported(module) if own is not None else ():
        other = layer(name)
        if other is not None and LAYERS.index(other) > LAYERS.index(own):
            faults.append(f"{module} ({own}) imports {name} ({other})")
        if other is None and name.split(".")[0] == "fitonce":
            faults.append(f"{module} imports {name}: from the package's top")
    return faults


def test_imports_point_one_way():
    assert not [fault for module in MODULES for fault in misplaced(module)]


def test_the_core_knows_arrays_only():
    known = {"fitonce", "__future__", "numpy", "scipy", "array_api_compat"}
    core = [module for module in MODULES if module.parts[0] == "core"]
    names = [(str(module), name.split(".")[0]) for module in core for name in imported(module)]
    assert not [pair for pair in names if pair[1] not in known | sys.stdlib_module_names]


def test_only_public_names_of_scikit_learn():
    names = [(str(module), name) for module in MODULES for name in imported(module)]
    private = [pair for pair in names if pair[1].startswith("sklearn") and "._" in pair[1]]
    assert not private


def test_importing_the_package_imports_nothing_heavy():
    """Nothing beyond what scikit-learn itself imports (pandas, from 1.9 on)."""
    code = f"""
import sys
sys.path[:0] = {[str(PACKAGE.parent), *sys.path]}
import sklearn.model_selection
before = set(sys.modules)
import fitonce
print(sorted({{name for name in {HEAVY} if name in sys.modules}} - before))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True
    )
    assert result.stdout.strip() == "[]"


def public_objects() -> dict[str, object]:
    """Every public name, and the public methods of its classes that are ours."""
    objects = {name: getattr(fitonce, name) for name in fitonce.__all__}
    for name, value in list(objects.items()):
        if inspect.isclass(value):
            for method, function in inspect.getmembers(value, inspect.isfunction):
                if not method.startswith("_") and function.__module__.startswith("fitonce"):
                    objects[f"{name}.{method}"] = function
    return objects


def test_the_public_names():
    assert sorted(fitonce.__all__) == fitonce.__all__
    assert {"KernelFisherDiscriminant", "LeastSquaresSVC", "KernelRidge"} <= set(fitonce.__all__)
    assert {"cross_val_predict", "cross_val_score", "cross_validate", "held_out"} <= set(
        fitonce.__all__
    )
    assert fitonce.__version__ and (PACKAGE / "py.typed").exists()


def test_public_names_are_documented():
    written = {name: inspect.getdoc(value) or "" for name, value in public_objects().items()}
    assert not [name for name, text in written.items() if len(text.split()) < 3]


@pytest.mark.parametrize(
    "estimator", [fitonce.KernelFisherDiscriminant, fitonce.LeastSquaresSVC, fitonce.KernelRidge]
)
def test_parameters_and_attributes_are_documented(estimator):
    documentation = inspect.getdoc(estimator)
    parameters, attributes = documentation.split("Attributes\n")
    assert all(name in parameters for name in inspect.signature(estimator).parameters)
    model = estimator(kernel="linear").fit([[0.0], [1.0], [2.0], [3.5]], [0, 1, 1, 0])
    fitted = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")} - {
        "n_features_in_"
    }
    undocumented = {name for name in fitted if name not in attributes}
    assert not undocumented
    assert ">>>" in documentation


def test_modules_say_what_they_are():
    trees = {
        module: ast.parse((PACKAGE / module).read_text(encoding="utf-8")) for module in MODULES
    }
    assert not [str(module) for module, tree in trees.items() if not ast.get_docstring(tree)]
