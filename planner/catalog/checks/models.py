"""Checks of `models/`: parameter counts and cached elements against the shape."""

from __future__ import annotations

from planner.catalog.checks.findings import Findings, doubts, place
from planner.catalog.model import BILLION, ModelEntry
from planner.catalog.store import Catalog
from planner.diagnostics import Diagnostic, Span
from planner.physics.formats import WEIGHT_FORMATS
from planner.physics.parameters import count_parameters

COUNT_TOLERANCE = 0.01
"""Largest relative difference between two parameter counts that need no stated exception."""


def findings(catalog: Catalog, name: str) -> Findings:
    """Yield what is wrong or doubtful about one model."""
    entry, path = catalog.model(name), catalog.root / "models" / f"{name}.yaml"
    yield from count_findings(entry, place(path, "parameters"))
    if entry.native_format not in WEIGHT_FORMATS:
        message = f"{name}: unknown native format `{entry.native_format}`"
        yield Diagnostic("catalog/unknown-format", message, place(path, "native_format"))
    elements = kv_elements(entry)
    if elements != entry.attention.kv_elements_per_token and not entry.attention.pattern:
        message = f"{name}: the attention fields give {elements} cached elements per token"
        yield Diagnostic("catalog/kv-elements", message, place(path, "attention", "kv_elements_per_token"))
    yield from doubts(name, entry.doubts, path, "doubts")


def count_findings(entry: ModelEntry, span: Span | None = None) -> Findings:
    """Yield disagreements of the shape, the stated total and the published figure beyond `COUNT_TOLERANCE`.

    A stated exception excuses one; an exception without need is an error too, so that none outlives its reason.
    """
    counts = entry.parameters
    published = counts.published_billions * BILLION
    shape = count_parameters(entry.architecture())
    yield from _compared(entry.name, "count from the shape", shape, counts.total, counts.shape_exception, span)
    yield from _compared(entry.name, "total", counts.total, published, counts.published_exception, span)
    if counts.active > counts.total:
        yield Diagnostic("catalog/parameter-count", f"{entry.name}: more active than total parameters", span)


def _compared(name: str, what: str, count: float, stated: float, exception: str, span: Span | None) -> Findings:
    difference = count / stated - 1
    message = f"{name}: the {what}, {count / BILLION:.3f}B, is {difference:+.1%} from {stated / BILLION:.3f}B"
    if abs(difference) > COUNT_TOLERANCE and not exception:
        yield Diagnostic("catalog/parameter-count", f"{message} and no exception is stated", span)
    if abs(difference) <= COUNT_TOLERANCE and exception:
        yield Diagnostic("catalog/needless-exception", f"{message}, which needs no exception", span)


def kv_elements(entry: ModelEntry) -> int:
    """Return the elements cached per token (keys and values, or latent) when all attention layers have one shape."""
    a = entry.attention
    width = a.kv_lora_rank + a.qk_rope_head_dim if a.kv_lora_rank else 2 * a.kv_heads * a.head_dim
    return a.layers * width
