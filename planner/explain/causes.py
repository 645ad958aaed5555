"""Why no candidate can serve a workload, in the order in which a shape must pass: place, price, format, memory, latency."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.candidates.types import CandidateTable, Rejection
from planner.catalog import Catalog
from planner.explain.wish import is_admitted, rejections_of, selected
from planner.explain.wishes import milliseconds
from planner.spec import FleetSpec

GIB = 2.0**30
MOST_REASONS = 12
RULE_ORDER = ("latency", "hbm-fit", "quality-floor", "format-support", "layout", "selector")
"""The nearer a shape came to being used, the earlier its rule: what failed last is what is in the way."""


@dataclass(frozen=True)
class Cause:
    """What is in the way of a workload: the rule that the nearest shapes failed, and the reasons, the main one first."""

    rule: str
    reasons: tuple[str, ...]


def cause_of(spec: FleetSpec, table: CandidateTable, workload: str, catalog: Catalog) -> Cause:
    """Return why no candidate can serve a workload, with the nearest shape and the reason on every GPU type."""
    found = rejections_of(table, workload)
    model = table.workloads[workload].model
    first = f"no candidate can serve workload {workload} of model {model}"
    unpriced = [r for r in table.rejections if r.rule in ("no-nodes", "no-price", "supply-ended")]
    if not table.supply.offers:
        rule = unpriced[0].rule if unpriced else "selector"
        return Cause(
            rule, (f"{first}: no offer has a price", *dict.fromkeys(r.reason for r in unpriced[:MOST_REASONS]))
        )
    if not is_admitted(spec, table, workload, catalog):
        return Cause("selector", (f"{first}: {_not_admitted(spec, table, workload, catalog)}", *_offered(table)))
    rule = min((r.rule for r in found if r.rule in RULE_ORDER), key=RULE_ORDER.index, default="")
    best = _best(table, workload, [r for r in found if r.rule == rule], rule)
    nearest = _nearest_by_gpu(found)
    each = [f"{gpu}: {r.shape or 'all shapes'}: {r.reason}" for gpu, r in nearest[:MOST_REASONS]]
    return Cause(rule, (f"{first}{f': {best}' if best else ''}", *each))


def _not_admitted(spec: FleetSpec, table: CandidateTable, workload: str, catalog: Catalog) -> str:
    """Return what keeps a workload from every offer: allow and deny, or spot nodes that it does not allow."""
    own = selected(spec, table, workload, catalog)
    if not own:
        return "allow and deny leave none of the offers"
    which = "all offers" if len(own) == len(table.supply.offers) else "all offers that allow and deny leave"
    return f"{which} are spot nodes, and the workload does not allow spot"


def _offered(table: CandidateTable) -> Iterator[str]:
    """Yield where the offers are, and which are of spot nodes."""
    places = sorted({(o.entry, o.provider, o.region, o.country, o.is_spot) for o in table.supply.offers})
    for entry, provider, region, country, is_spot in places[:MOST_REASONS]:
        yield f"offer {entry}: {provider} {region}{f' ({country})' if country else ''}{', spot' if is_spot else ''}"


def _best(table: CandidateTable, workload: str, failed: list[Rejection], rule: str) -> str:
    """Return the best that any shape reaches against what is asked."""
    slow = [r for r in failed if r.slo]
    if rule == "latency" and slow:
        limits = table.workloads[workload].spec.slo
        best = min(slow, key=lambda r: (r.best_s / limits[r.slo], r.shape))
        text = (
            f"{best.slo} of {milliseconds(limits[best.slo])} is below what any shape reaches; "
            f"the best is {_rounded(best.best_s)} on {best.shape}, idle"
        )
        if best.slo.startswith("ttft"):
            longest = table.workloads[workload].prefill_tokens.max()
            text += f"; prompts of up to {longest:,.0f} tokens to compute set it"
        return text
    if rule == "hbm-fit":
        best = min(failed, key=lambda r: (r.short_bytes, r.shape))
        if best.short_bytes <= 0.0:
            return best.reason
        return f"memory; the nearest shape, {best.shape}, is short by {best.short_bytes / GIB:.1f} GiB per GPU"
    if rule == "quality-floor":
        model = table.models[table.workloads[workload].model]
        kept = max(e.recovery for e in model.quality.values())
        return f"quality; the formats allowed keep {100.0 * kept:.4g} %, min_quality is {100.0 * model.spec.min_quality:.4g} %"
    return "memory; no sequence fits the KV cache of any shape" if rule == "latency" else ""


def _rounded(seconds: float) -> str:
    return milliseconds(float(f"{seconds:.3g}"))


def _nearest_by_gpu(rejections: list[Rejection]) -> list[tuple[str, Rejection]]:
    """Return, by GPU type, the rejection that came nearest to a usable shape."""
    nearest: dict[str, Rejection] = {}
    ranked = [r for r in rejections if r.gpu and r.rule in RULE_ORDER]
    for rejection in sorted(ranked, key=lambda r: (RULE_ORDER.index(r.rule), r.best_s, r.short_bytes, r.shape)):
        nearest.setdefault(rejection.gpu, rejection)
    return sorted(nearest.items())
