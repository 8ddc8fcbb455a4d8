"""Arrays of other libraries."""

from __future__ import annotations

import pytest

from optional import require


@pytest.fixture
def xp(request):
    """The namespace that `every_namespace` (matrices.py) names."""
    return require(request.param)
