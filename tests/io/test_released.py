"""Model files of earlier releases, and of NumPy 1.26 and 2, say what they said."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from released import DATA, models, outputs

from fitonce import load, save
from fitonce.io.saving import read_metadata

FILES = sorted(DATA.glob("*.skops"))


def test_there_are_files_of_both():
    written = {path.stem.split("-")[2].split(".")[0] for path in FILES}
    assert written >= {"1", "2"} and len(FILES) >= 6


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_files_of_earlier_releases_are_read(path):
    model, said = load(path), read_metadata(path)
    now = outputs(model, np.array(said["rows"]))
    for name, values in said["outputs"].items():
        expected = np.array(values)
        np.testing.assert_allclose(now[name], expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    tried = model.cv_results_["param_alpha"]
    assert isinstance(tried, np.ma.MaskedArray) and set(tried) == {0.01, 0.1, 1.0}


def test_no_name_that_changes_with_numpy_goes_into_a_file(tmp_path):
    """Masked arrays and numpy.bool_ have other names, or other homes, in NumPy 1.26 and 2."""
    for name, model, _ in models():
        model.pooled = np.bool_(True)
        model.best_params_["flag"] = np.bool_(False)
        path = save(model, tmp_path / f"{name}.skops")
        with zipfile.ZipFile(path) as archive:
            schema = archive.read("schema.json").decode()
        assert "numpy.ma" not in schema and "bool_" not in schema
        assert "numpy._core" not in schema and "numpy.core" not in schema
        kinds = {(part["__module__"], part["__class__"]) for part in _parts(json.loads(schema))}
        assert ("numpy", "ndarray") in kinds and ("numpy", "bool") not in kinds


def _parts(value):
    if isinstance(value, dict):
        if "__class__" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _parts(item)
