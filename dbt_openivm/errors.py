"""Errors, kept apart by who can act on them.

Each message says what happened, where, and what to do next. The adapter turns them into dbt's own error types.
"""

from __future__ import annotations


class OpenIvmError(Exception):
    """Base of every error raised on purpose by this package."""


class ConfigError(OpenIvmError):
    """A setting of a model, source or profile is wrong. Collect all problems before raising."""


class QueryError(OpenIvmError):
    """The query of a view is not valid: it does not parse, does not bind, or is no single SELECT."""


class UnsupportedError(OpenIvmError):
    """A construct cannot be maintained incrementally.

    The compiler turns it into FULL_REFRESH with this text as the reason; it reaches a user as an error only in
    refresh mode ``strict``.
    """


class UnsafeError(OpenIvmError):
    """A refresh was refused because it could not be done safely. Nothing was changed."""


class InternalError(OpenIvmError):
    """A bug in dbt-openivm. The text asks for a report."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"{message}\nThis is a bug in dbt-openivm. Nothing was changed. Please report it with the view's query."
        )
