"""Rows in blocks, from memory, files or a cluster, reduced to moments for a decomposition."""

from ..core.rows import Rows, is_rows
from .blocks import ArrayRows, BlockRows
from .files import open_rows

__all__ = ["ArrayRows", "BlockRows", "Rows", "is_rows", "open_rows"]
