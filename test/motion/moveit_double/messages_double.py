"""Message classes that take their own fields only: of packages that are not installed here, or left out on purpose."""

from __future__ import annotations

import copy


def message(name, **fields):
    """A message class: known fields only, fresh defaults."""

    def initialise(self, **values):
        unknown = set(values) - set(fields)
        if unknown:
            raise AssertionError(f"{name} has no field {unknown}")
        for field, default in fields.items():
            setattr(self, field, values.get(field, default() if callable(default) else copy.deepcopy(default)))

    return type(name, (), {"__slots__": tuple(fields), "__init__": initialise})


def plain(value):
    """A message, or what holds messages, as JSON can say it."""
    if hasattr(value, "__slots__") and not isinstance(value, (list, dict, str)):
        return {name: plain(getattr(value, name)) for name in value.__slots__}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
