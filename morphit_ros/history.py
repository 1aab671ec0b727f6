"""Undo and redo of immutable states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State")
_MAXIMUM_STEPS = 200


@dataclass(frozen=True)
class History(Generic[State]):
    """The state of an edit with what undo and redo lead to; itself immutable.

    Attributes:
        present: as it is.
        past: states before, oldest first; at most 200.
        future: states that were undone, the next to redo last.
    """

    present: State
    past: tuple[State, ...] = ()
    future: tuple[State, ...] = ()

    def changed(self, state: State, merged: bool = False) -> History[State]:
        """After a step; what was undone can no longer be redone.

        Args:
            state: the new one.
            merged: whether the step belongs to the one before (a drag in progress), so that one undo takes back both.
        """
        if merged and self.past:
            return History(state, self.past)
        return History(state, (*self.past, self.present)[-_MAXIMUM_STEPS:])

    def undone(self) -> History[State]:
        """One step back, or itself where there is none."""
        if not self.past:
            return self
        return History(self.past[-1], self.past[:-1], (*self.future, self.present))

    def redone(self) -> History[State]:
        """One step forward again, or itself where there is none."""
        if not self.future:
            return self
        return History(self.future[-1], (*self.past, self.present), self.future[:-1])
