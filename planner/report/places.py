"""The spec that a plan was made from, as reports need it."""

from __future__ import annotations

from planner.report.content import Origin
from planner.spec import LoadedSpec
from planner.spec.keys import locate


def origin_of(loaded: LoadedSpec) -> Origin:
    """Return the spec as reports need it: a finder of keys, and its lines."""
    lines = loaded.document.lines if loaded.document is not None else ()
    return Origin(lambda key: locate(loaded, key), {loaded.path: lines})
