"""What is published says the same everywhere: dependencies, versions, addresses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import fitonce

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def load(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def spaced(requirement: str) -> str:
    """numpy>=1.26 as conda writes it: numpy >=1.26."""
    return re.sub(r"(?<=\w)(?=[<>=!~])", " ", requirement, count=1)


def test_the_conda_recipe_has_the_dependencies_of_the_project():
    recipe = load("recipe/recipe.yaml")
    extras = PROJECT["optional-dependencies"]
    command = [one for name in ("cli", "io", "report", "plot") for one in extras[name]]
    needed = [*PROJECT["dependencies"], *(one for one in command if "fitonce" not in one)]
    needed = [one.replace("matplotlib", "matplotlib-base") for one in needed]
    wanted = [f"python {PROJECT['requires-python']}", *map(spaced, needed)]
    assert recipe["requirements"]["run"] == wanted
    (script,) = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(script)]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["repository"] == PROJECT["urls"]["Source"]


def test_one_version():
    assert load("recipe/recipe.yaml")["context"]["version"] == fitonce.__version__
    assert load("CITATION.cff")["version"] == fitonce.__version__


def test_the_workflow_covers_the_versions_that_the_classifiers_name():
    matrix = load(".github/workflows/ci.yml")["jobs"]["fast"]["strategy"]["matrix"]
    tested = set(matrix["python"]) | {extra["python"] for extra in matrix["include"]}
    named = re.findall(r":: Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert tested == set(named)


@pytest.mark.parametrize(
    "path", sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(".github/**/*.yml"))
)
def test_workflows_and_templates_are_valid_yaml(path):
    assert load(path)


def test_what_workflows_run_is_there():
    text = "".join(path.read_text("utf-8") for path in ROOT.glob(".github/workflows/*.yml"))
    scripts = re.findall(r"bash (\S+)", text)
    assert scripts
    assert all((ROOT / script).is_file() for script in scripts)


def test_the_source_distribution_has_what_it_lists():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = config["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert "/CONTRIBUTING.md" in included
    assert all((ROOT / path.lstrip("/")).exists() for path in included)
