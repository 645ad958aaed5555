"""The optimisation program in Pyomo: sets, variables and one named constraint a file, compiled to arrays."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

LOADED_BY_PYOMO_UNUSED = ("scipy.stats", "scipy.integrate", "scipy.spatial")
"""Pyomo imports these as soon as it sees scipy, for parts that are not used here: half a second of every start."""


def _defer(name: str) -> None:
    """Put a module in place that loads the real one when something in it is first asked for.

    `importlib.util.LazyLoader` does not do: the import statement alone reads an attribute, which makes it load.
    """
    spec = find_spec(name)
    if name in sys.modules or spec is None:
        return
    placeholder = ModuleType(name)
    placeholder.__spec__ = spec
    placeholder.__path__ = list(spec.submodule_search_locations or ())

    def load(attribute: str) -> Any:
        if sys.modules.get(name) is placeholder:
            del sys.modules[name]
        return getattr(importlib.import_module(name), attribute)

    placeholder.__dict__["__getattr__"] = load
    sys.modules[name] = placeholder


for _name in LOADED_BY_PYOMO_UNUSED:
    _defer(_name)
