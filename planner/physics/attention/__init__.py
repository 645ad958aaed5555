"""Attention families, one module each, found by listing this folder. A module follows `AttentionFamily`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from planner.physics.footprint import AttentionFamily, UnknownArchitecture
from planner.physics.types import Architecture


@cache
def families() -> tuple[AttentionFamily, ...]:
    """List the plug-ins, the most specific first."""
    names = sorted(m.name for m in iter_modules(__path__))
    modules = [cast(AttentionFamily, import_module(f"{__name__}.{name}")) for name in names]
    return tuple(sorted(modules, key=lambda m: m.RANK))


def family_of(arch: Architecture) -> AttentionFamily:
    """Find the family that computes `arch`. Raises `UnknownArchitecture` when none does."""
    for family in families():
        if family.matches(arch):
            return family
    raise UnknownArchitecture(arch.name, f"no attention family knows {arch.attention!r}")
