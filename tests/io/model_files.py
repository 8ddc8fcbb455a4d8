"""What the tests of model files share."""

from __future__ import annotations

import zipfile

import numpy as np

from fitonce import load, save
from fitonce.io.contents import skops_io as import_skops

skops_io = import_skops()

OUTPUTS = ("predict", "predict_proba", "decision_function", "transform")


def two_classes(n=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0.4).astype(int)


def assert_same_outputs(model, again, X):
    compared = 0
    for name in OUTPUTS:
        if hasattr(model, name):
            assert np.array_equal(getattr(model, name)(X), getattr(again, name)(X)), name
            compared += 1
    assert compared


def round_trip(model, folder, **options):
    return load(save(model, folder / "model.skops", **options))


def rewritten(path, change):
    """The same archive with its members, a dict of bytes, changed; they are compressed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path
