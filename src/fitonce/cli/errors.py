"""One clear sentence and an exit code instead of a traceback."""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import typer

FAILED, INTERRUPTED = 1, 130
TRACEBACK = "FITONCE_TRACEBACK"  # an environment variable for those who look for a bug


class UserError(Exception):
    """What is wrong, got what, and what to do, in words for the user of a command."""


def careful(command: Callable[..., None]) -> Callable[..., None]:
    """A command that ends in a sentence on standard error and an exit code, whatever
    happens in it.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            _end("stopped; nothing half-written was left behind.", INTERRUPTED)
        except BrokenPipeError:
            _silence_stdout()
            raise typer.Exit(0) from None
        except (UserError, ValueError, TypeError, ImportError) as error:
            _end(_sentence(str(error)), FAILED, error)
        except MemoryError as error:
            _end(
                "there is not enough memory for this table: fewer rows, or --landmarks with a "
                "smaller number, need less.",
                FAILED,
                error,
            )
        except OSError as error:
            _end(_os_sentence(error), FAILED, error)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            _end(
                f"something unforeseen happened ({text}). Please report it; {TRACEBACK}=1 shows "
                "where it was.",
                FAILED,
                error,
            )

    return run


def _end(message: str, code: int, error: BaseException | None = None) -> None:
    if error is not None and os.environ.get(TRACEBACK):
        raise error
    print(f"fitonce: {message}", file=sys.stderr)
    raise typer.Exit(code)


def _sentence(text: str) -> str:
    """The message without the blank lines of long ones."""
    return " ".join(text.split()) or "the library refused without a reason."


def _os_sentence(error: OSError) -> str:
    if (
        error.errno in (errno.ENOSPC, errno.EDQUOT)
        and error.filename is None
        and "full" not in str(error)
    ):
        _silence_stdout()
        return "the disk is full: the output could not be written."
    return _sentence(str(error))


def _silence_stdout() -> None:
    """Nothing more can be written there; keep the interpreter from trying at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
