"""A replay of a fleet as text, data and CSV: which limits held, what pools did, and how it was done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.plan.replayed import Replayed
from planner.report import figures
from planner.report.content import Block, Lines
from planner.report.sections.replay import VERDICT_WORDS, about, goodput, latency, phases, pools


def render(replayed: Replayed, fleet: str) -> list[Block]:
    """Return a replay as tables and lines."""
    count = figures.count(len(replayed.pools), "pool")
    verdict = f"{replayed.verdict}: {VERDICT_WORDS[replayed.verdict]}"
    blocks = [latency(replayed.pools), phases(replayed.pools), goodput(replayed.pools), pools(replayed.pools)]
    title = f"{figures.visible(fleet)}: {count} replayed, {verdict}"
    return [Lines(title, tuple(about(replayed))), *(block for block in blocks if block is not None)]


def as_data(replayed: Replayed, fleet: str) -> Mapping[str, Any]:
    """Return a replay as plain data."""
    return {"fleet": fleet, **replayed.model_dump(mode="json", by_alias=True)}


def as_rows(replayed: Replayed) -> list[dict[str, Any]]:
    """Return a row for every percentile, for spreadsheets."""
    rows = []
    for pool in replayed.pools:
        for workload in pool.workloads:
            asked = {limit.metric: limit for limit in workload.limits}
            for key, seen in {**dict.fromkeys(asked), **workload.percentiles_s}.items():
                limit = asked.get(key)
                found = limit.replayed_s if limit is not None else seen
                rows.append(
                    {
                        "period": pool.period,
                        "pool": pool.name,
                        "pool_verdict": pool.verdict,
                        "workload": workload.name,
                        "requests_per_s": workload.requests_per_s,
                        "metric": key,
                        "value_s": found.value if found is not None else None,
                        "low_s": found.low if found is not None else None,
                        "high_s": found.high if found is not None else None,
                        "limit_s": limit.limit_s if limit is not None else None,
                        "verdict": limit.verdict if limit is not None else None,
                    }
                )
    return rows
