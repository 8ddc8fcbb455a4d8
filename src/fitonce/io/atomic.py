"""Files that are whole or absent."""

from ..core.atomic import atomic_file, write_atomically

__all__ = ["atomic_file", "write_atomically"]
