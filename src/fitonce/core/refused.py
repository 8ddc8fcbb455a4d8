"""The one exception that says that something cannot be done with these settings or rows."""


class RefusedError(ValueError):
    """Settings or rows for which there is no model, raised where they are checked.

    A closed form for all rows that is refused leaves the refits: each is refused for the same
    reason, or its rows do not have it. Any other exception is a mistake in the code.
    """


def refuse(*reasons: tuple[object, str]) -> None:
    """Raise a ValueError that gives the first of these reasons whose condition holds."""
    for holds, reason in reasons:
        if holds:
            raise ValueError(reason)
