"""How findings are printed: each module of this folder is a format of that name, with a function `render`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

from planner.report.findings import CheckedFile


def formats() -> tuple[str, ...]:
    """Return the names of all formats, sorted; none of them is imported."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def render(format: str, files: Sequence[CheckedFile]) -> str:
    """Return what was found in the files, in one of the formats."""
    text: str = import_module(f"{__name__}.{format}").render(files)
    return text
