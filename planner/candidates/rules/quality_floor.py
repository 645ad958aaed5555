"""Quality floor: pairs of formats that keep too little of the native quality, or have no published score."""

from __future__ import annotations

from planner.candidates.rule import Draft, Rule


def _check(draft: Draft) -> str | None:
    floor = draft.model.spec.min_quality
    evidence = draft.model.quality[draft.weights, draft.kv_cache]
    pair = f"{draft.weights} weights with {draft.kv_cache} KV"
    if evidence.n == 0 and evidence.level not in ("native", "model"):
        return f"{pair}: no published score at evidence level {draft.model.spec.quality_evidence}; give quality: in the spec"
    if evidence.recovery < floor:
        return f"{pair} keep {evidence.recovery * 100:.1f} % of the quality, the floor is {floor * 100:.1f} % ({evidence.level} evidence, {evidence.n} scores)"
    return None


RULE = Rule("quality-floor", 30, "Weights and KV formats together must keep min_quality of the native quality.", _check)
