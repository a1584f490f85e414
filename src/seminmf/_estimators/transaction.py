"""A fit is a transaction: what it found is published when it has succeeded, all at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


class Transactional:
    """Base of what is fitted; not for direct use.

    What comes from a fit are attributes whose names end with an underscore, as is the custom of
    scikit-learn, and those that a class declares.
    """

    _private_state: tuple[str, ...] = ()

    def _split_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """All attributes: those that are set by users, and those that come from a fit."""
        given: dict[str, Any] = {}
        fitted: dict[str, Any] = {}
        for name, value in vars(self).items():
            public = name.endswith("_") and not name.startswith("_")
            (fitted if public or name in self._private_state else given)[name] = value
        return given, fitted


def fits(method: Method) -> Method:
    """Make a method fit anew: once it has succeeded, nothing is left of an earlier fit."""
    return _published(method, keeps=False)


def goes_on(method: Method) -> Method:
    """Make a method go on from what was fitted so far."""
    return _published(method, keeps=True)


def _published(method: Method, *, keeps: bool) -> Method:
    @wraps(method)
    def transaction(self: Any, *args: Any, **named: Any) -> Any:
        given, fitted = self._split_state()
        draft = object.__new__(type(self))
        vars(draft).update(given | fitted if keeps else given)
        method(draft, *args, **named)
        # One assignment, so that neither a thread nor Ctrl-C ever sees a half of it.
        self.__dict__ = self._split_state()[0] | draft._split_state()[1]
        return self

    return transaction  # type: ignore[return-value]
