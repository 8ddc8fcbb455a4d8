"""Steps of a fit as tasks of scikit-learn's callbacks, where the installed version has them.

``model.set_callbacks(sklearn.callback.ProgressBar())`` then shows one line per decomposition,
inside GridSearchCV too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        return method


class CallbackTasks:
    """The root task of a fit and its subtasks; does nothing without callback support."""

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self._arguments = {"estimator": estimator, "X": X, "y": y}
        start = getattr(estimator, "_init_callback_context", None)
        self._root = None if start is None else start(max_subtasks=None)
        if self._root is not None:
            self._root.call_on_fit_task_begin(**self._arguments)

    @contextmanager
    def task(self, name: str) -> Iterator[None]:
        """One subtask, such as a decomposition."""
        context = None if self._root is None else self._root.subcontext(task_name=name)
        if context is not None:
            context.call_on_fit_task_begin(**self._arguments)
        yield
        if context is not None:
            context.call_on_fit_task_end(**self._arguments)

    def end(self) -> None:
        if self._root is not None:
            self._root.call_on_fit_task_end(**self._arguments)


__all__ = ["CallbackSupportMixin", "CallbackTasks", "with_callbacks"]
