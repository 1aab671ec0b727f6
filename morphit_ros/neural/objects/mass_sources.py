"""Where an object's mass is known from: how it is spread, and how much there is of it."""

from __future__ import annotations

from enum import StrEnum


class MassSource(StrEnum):
    """Where the distribution of mass is known from."""

    UNIFORM = "uniform"
    MATERIALS = "materials"
    IDENTIFIED = "identified"


class TotalMassSource(StrEnum):
    """Where the mass of it all is known from; assumed: from nowhere, it is the volume times a guessed density."""

    ASSUMED = "assumed"
    GIVEN = "given"
    MATERIALS = "materials"
    IDENTIFIED = "identified"
