"""Checks of `quality/`: known formats, and models and families that exist."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from planner.catalog.checks.findings import Findings, place
from planner.catalog.quality import Scores
from planner.catalog.store import Catalog
from planner.diagnostics import Diagnostic, Span
from planner.physics.formats import KV_FORMATS, WEIGHT_FORMATS


def findings(catalog: Catalog, what: Literal["weights", "kv"]) -> Findings:
    """Yield what is wrong about the scores of weight formats or KV formats."""
    path = catalog.root / "quality" / f"{what}.yaml"
    file = catalog.weight_quality if what == "weights" else catalog.kv_quality
    known: Collection[str] = WEIGHT_FORMATS if what == "weights" else KV_FORMATS
    for name in sorted({*file.formats, *file.same_as, *file.same_as.values()} - set(known)):
        yield Diagnostic("catalog/unknown-format", f"unknown format `{name}`", place(path, "formats", name))
    for name, entries in file.formats.items():
        for position, entry in enumerate(entries):
            yield from _scores(catalog, entry, place(path, "formats", name, position))


def _scores(catalog: Catalog, entry: Scores, span: Span) -> Findings:
    if bool(entry.family) == bool(entry.pooled):
        yield Diagnostic("catalog/invalid-value", f"{entry.label}: give either a family or `pooled`", span)
    if not entry.model:
        return
    if entry.model not in catalog.model_names():
        yield Diagnostic("catalog/unknown-name", f"{entry.label}: no `{entry.model}` in models/", span)
    elif (family := catalog.model(entry.model).family) != entry.family:
        yield Diagnostic("catalog/invalid-value", f"{entry.label}: the family of the model is `{family}`", span)
