"""Format support: weight and KV formats that the engine or the GPU has no kernels for."""

from __future__ import annotations

from planner.candidates.rule import Draft, Rule
from planner.physics.kernels import unsupported


def _check(draft: Draft) -> str | None:
    engine = draft.model.spec.engine.name
    if not draft.model.engine.supports(draft.device.vendor):
        return f"{engine} does not run on {draft.device.vendor} GPUs"
    return unsupported(engine, draft.weights, draft.kv_cache, draft.device)


RULE = Rule("format-support", 20, "Engine and GPU must have kernels for the formats.", _check)
