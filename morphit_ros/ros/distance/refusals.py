"""What a monitor did not take: said until a good message of the same kind comes, whatever else comes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from morphit_ros.errors import MorphitError


class Refusals:
    """Whose text is empty as long as nothing is refused."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def __str__(self) -> str:
        return "; ".join(self._said.values())

    @contextmanager
    def of(self, kind: str, kept: str = "") -> Iterator[None]:
        """Take a message within: an error of this package is a refusal of it, anything else takes back the last one.

        Args:
            kind: name of the topic, or of what comes on it.
            kept: what stays as it was.
        """
        try:
            yield
            self._said.pop(kind, None)
        except MorphitError as error:
            self._said[kind] = f"{kind} refused{f', {kept}' if kept else ''}: {error}"
