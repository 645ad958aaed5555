"""Layout: parallel degrees that the model's shape or the node cannot take."""

from __future__ import annotations

from planner.candidates.rule import Draft, Rule


def _check(draft: Draft) -> str | None:
    layout, arch = draft.layout, draft.model.architecture
    if layout.tensor & (layout.tensor - 1) or (layout.gpus & (layout.gpus - 1) and not layout.crosses_nodes):
        return f"{layout.gpus} GPUs per replica: sizes inside a node are powers of two, so that nodes pack exactly"
    if arch.n_heads % layout.tensor:
        return f"tensor {layout.tensor} does not divide {arch.n_heads} attention heads"
    if layout.pipeline > arch.n_layers:
        return f"pipeline {layout.pipeline} exceeds {arch.n_layers} layers"
    if layout.attention_data > 1 and not arch.is_moe:
        return f"attention_data {layout.attention_data} is for mixture-of-experts models; run replicas instead"
    if layout.expert not in (1, layout.tensor * layout.attention_data):
        return f"expert {layout.expert} must cover the {layout.tensor * layout.attention_data} GPUs of a stage, or be 1"
    return None


RULE = Rule("layout", 10, "The parallel degrees must suit the model's shape and the node.", _check)
