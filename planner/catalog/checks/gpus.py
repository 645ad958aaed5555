"""Checks of `gpus/`."""

from __future__ import annotations

from planner.catalog.checks.findings import Findings, doubts, place, warning
from planner.catalog.store import Catalog

BASIS_WORDS = {"estimate": "an estimate or a recalled figure", "derived": "derived from other figures"}


def findings(catalog: Catalog, name: str) -> Findings:
    """Yield what is doubtful about one GPU."""
    entry, path = catalog.gpu(name), catalog.root / "gpus" / f"{name}.yaml"
    yield from doubts(name, entry.doubts, path, "doubts")
    if entry.confidence == "low":
        yield warning("catalog/low-confidence", f"{name}: low-confidence figures", place(path, "confidence"))
    memory = entry.memory
    if memory.usable_basis in BASIS_WORDS:
        message = f"{name}: the usable memory of {memory.usable_gib:g} GiB is {BASIS_WORDS[memory.usable_basis]}"
        yield warning("catalog/estimated-memory", message, place(path, "memory", "usable_basis"))
