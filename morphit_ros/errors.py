"""Errors for a caller's mistake: each names the value, the bound and the remedy.

A numerical outcome (no grasp found, no path found) is not an error: functions report it as a
status in their result. Nodes map these errors to replies, command lines to exit status 2.
"""

from __future__ import annotations

from typing import Any


class MorphitError(Exception):
    """Base of every error that this package raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers send errors home, and `Exception` would make them anew from the message alone.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[MorphitError], args: tuple[Any, ...], attributes: dict[str, Any]) -> MorphitError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


class InvalidInputError(MorphitError, ValueError):
    """A value that a function cannot work with.

    Args:
        name: what was wrong, as the caller knows it ("points", "voxel_size").
        value: the offending value, or a short description of it.
        bound: what would have been accepted ("finite numbers of shape (N, 3)").
        remedy: what the caller can do about it.
    """

    def __init__(self, name: str, value: object, bound: str, remedy: str = "") -> None:
        self.name = name
        self.value = value
        self.bound = bound
        self.remedy = remedy
        message = f"{name}: got {value}, expected {bound}"
        super().__init__(f"{message}. {remedy}" if remedy else f"{message}.")


class ResourceNotFoundError(MorphitError, FileNotFoundError):
    """A file, package, robot or object that is not where it was looked for.

    Args:
        resource: what was asked for, as it was written.
        searched: where it was looked for.
        remedy: what the caller can do about it.
    """

    def __init__(self, resource: str, searched: list[str], remedy: str = "") -> None:
        self.resource = resource
        self.searched = searched
        self.remedy = remedy
        places = "; looked in: " + ", ".join(searched) if searched else ""
        super().__init__(f"'{resource}' was not found{places}." + (f" {remedy}" if remedy else ""))

    def __str__(self) -> str:
        # FileNotFoundError would print only its first two arguments as errno and text.
        return str(self.args[0])


class MissingDependencyError(MorphitError, ImportError):
    """An optional package that the chosen feature needs and that is not installed.

    Args:
        package: import name of the package.
        needed_for: the feature that needs it.
        remedy: how to install it.
    """

    def __init__(self, package: str, needed_for: str, remedy: str) -> None:
        self.package = package
        self.needed_for = needed_for
        self.remedy = remedy
        super().__init__(f"{needed_for} needs the package '{package}'. {remedy}")
