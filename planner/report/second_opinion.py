"""A second opinion as a section of text below the report."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from planner.report.figures import count, usd, visible
from planner.report.rows import Row, table
from planner.second_opinion.types import Opinion, Review

WIDTH = 120
DIGITS = 3
NOTES = (
    "One replica, both models given the same equal requests: the mean lengths of the pool, as many in flight as it has "
    "in its mean batch. ours: middle of the band; planned: with the margin of the spec's confidence; ratio: theirs over "
    "planned.",
    "needed: replicas for the same load at their requests/s, rounded up, those beyond the load (spares, rounding) kept. "
    "Latency limits, whole nodes and rules of the spec are not checked again, and the plan is not changed.",
)


def render(review: Review) -> str:
    """Return a review as text without a line end: both figures, what is not covered, the regret."""
    lines = [f"Second opinion: {review.reviewer}"]
    covered = [o for o in review.opinions if o.covered]
    if covered:
        lines += [f"  {line}" for line in table([row for o in covered for row in _figures(o)], DIGITS)]
        lines += [f"  {line}" for o in covered for line in _folded(_asked(o))]
    missing = [f"{o.pool}: not covered: {visible(o.reason)}" for o in review.opinions if not o.covered]
    lines += [f"  {line}" for text in missing for line in _folded(text)]
    if covered:
        lines += ["", "Regret if theirs were right"]
        lines += [f"  {line}" for line in table([_regret(o) for o in covered], DIGITS)]
        lines += [f"  {line}" for text in (_sum(review), *NOTES) for line in _folded(text)]
    return "\n".join(lines)


def _figures(opinion: Opinion) -> Iterator[Row]:
    best, planned, theirs = opinion.best, opinion.planned, opinion.theirs
    if best is None or planned is None or theirs is None:
        return
    for figure, key, size in (
        ("TPOT in ms", "tpot_s", 1e3),
        ("requests/s", "requests_per_s", 1.0),
        ("TTFT alone in ms", "ttft_alone_s", 1e3),
    ):
        ours, with_margin, other = (getattr(f, key) for f in (best, planned, theirs))
        yield {
            "pool": opinion.pool,
            "figure": figure,
            "ours": size * ours,
            "planned": size * with_margin,
            "theirs": size * other,
            "ratio": other / with_margin,
        }


def _asked(opinion: Opinion) -> str:
    q = opinion.question
    if q is None:
        return opinion.pool
    cached = f" ({q.cached_tokens:,} cached)" if q.cached_tokens else ""
    lengths = f"{q.input_tokens:,} tokens in{cached}, {q.output_tokens:,} out"
    return f"{opinion.pool}: {opinion.basis}; {count(q.in_flight, 'request')} in flight, {lengths}"


def _regret(opinion: Opinion) -> Row:
    return {
        "pool": opinion.pool,
        "replicas": opinion.replicas,
        "needed": opinion.needed,
        "$/h each": opinion.usd_per_replica_hour,
        "extra $/h": opinion.regret_usd_per_hour,
    }


def _sum(review: Review) -> str:
    extra, saved = review.extra_usd_per_hour, review.saved_usd_per_hour
    if not extra and not saved:
        return "If theirs were right, every pool would need as many replicas as planned: no regret."
    parts = [f"{usd(extra)} more per hour for replicas that are missing"] if extra else []
    parts += [f"{usd(saved)} less per hour without replicas that could go"] if saved else []
    return f"If theirs were right, this fleet would cost {' and '.join(parts)}."


def _folded(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH - 2, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
