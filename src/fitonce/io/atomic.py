"""Files that are written completely or not at all."""

from ..core.atomic import atomic_file, write_atomically

__all__ = ["atomic_file", "write_atomically"]
