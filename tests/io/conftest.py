"""A model file to read, to change and to overwrite."""

from __future__ import annotations

import pytest
from model_files import two_classes

from fitonce import LeastSquaresSVC, save


@pytest.fixture
def saved(tmp_path):
    X, y = two_classes()
    return save(LeastSquaresSVC(gamma=0.5, alpha=0.1).fit(X, y), tmp_path / "model.skops")
