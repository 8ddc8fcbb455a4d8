"""Rows in blocks, from memory, files or a cluster, reduced to moments that end in a
decomposition.
"""

from .rows import ArrayRows, BlockRows, Rows, is_rows
from .sources import open_rows

__all__ = ["ArrayRows", "BlockRows", "Rows", "is_rows", "open_rows"]
