"""What the reference of the documentation site does with docstrings: an extension of griffe, named in mkdocs.yml."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

# "a, b: both in metres" in a section: several names with one description, as this project writes them.
_GROUP = re.compile(r"^( +\w+(?:, \w+)+)(?=: )", flags=re.M)
_NO_BREAK_SPACE = "\u00a0"


class GroupedNames(Extension):
    """Names that share a description stay together: griffe takes what follows a space for a type."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _GROUP.sub(lambda found: keep_together(found[1]), obj.docstring.value)


def keep_together(names: str) -> str:
    """The same names, with spaces after commas that are not taken for the end of a name."""
    return names.replace(", ", f",{_NO_BREAK_SPACE}")
