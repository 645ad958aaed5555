"""The certificate: whether the planned fleet held in a replay, and what was tightened for it."""

from __future__ import annotations

from planner.plan.replayed import Certificate, Tightening
from planner.plan.schema import Plan
from planner.report import figures
from planner.report.content import Block, Lines
from planner.report.sections import replay

NOT_CERTIFIED = "Not certified: latencies are predicted, not replayed; `planner solve --certify` does that."
ONLY_REPLAYED = "Not certified: latencies are predicted, not replayed; `planner simulate` replays this fleet."
"""Of fleets for more than the spec of today, which no replay tightens."""


def certificate(plan: Plan) -> Block | None:
    """Return the verdict of the replay, and what it cost to make it hold."""
    if plan.certificate is None:
        is_more = plan.growth is not None or plan.robust is not None
        return Lines("", (ONLY_REPLAYED if is_more else NOT_CERTIFIED,)) if plan.pools else None
    found = plan.certificate
    verdict = found.replayed.verdict
    title = "Certified" if verdict == "pass" else "NOT CERTIFIED"
    words = f"{title}: in the replay of round {found.rounds}, {replay.VERDICT_WORDS[verdict]}"
    lines = [*replay.about(found.replayed), *(_tightened(t) for t in found.tightened), *_price(found)]
    lines += [f"No other fleet was found: {figures.visible(found.gave_up)}."] if found.gave_up is not None else []
    return Lines(words, tuple(lines))


def certified_latency(plan: Plan) -> Block | None:
    """Return every limit with its percentile in the replay."""
    return None if plan.certificate is None else replay.latency(plan.certificate.replayed.pools)


def _tightened(step: Tightening) -> str:
    what = figures.visible(", ".join(step.failed)) or "its queue"
    return (
        f"Round {step.round}: pool {figures.visible(step.pool)} ({figures.visible(step.shape)}) was {step.verdict} on {what}; its "
        f"candidates are rated at {figures.share(step.kept_share)} from then on."
    )


def _price(found: Certificate) -> list[str]:
    if not found.tightened:
        return []
    return [
        f"What was tightened costs {figures.usd(found.price_usd_per_hour)} per hour: {figures.usd(found.first_usd_per_hour)} before."
    ]
