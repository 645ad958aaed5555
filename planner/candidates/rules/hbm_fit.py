"""HBM fit: weights, workspace and the KV cache of one longest sequence must fit the usable memory of a GPU."""

from __future__ import annotations

from planner.candidates.rule import Draft, Rule
from planner.physics.memory import UnknownArchitecture

GIB = 2.0**30


def _check(draft: Draft) -> str | None:
    try:
        budget = draft.budget
    except UnknownArchitecture as error:
        return str(error)
    if budget.fits:
        return None
    return (
        f"short by {budget.shortfall_bytes / GIB:.1f} GiB per GPU: weights {budget.weights_bytes / GIB:.1f}, activations "
        f"{budget.activation_bytes / GIB:.1f}, runtime {budget.runtime_bytes / GIB:.1f}, graphs {budget.graph_bytes / GIB:.1f} "
        f"of {budget.usable_bytes / GIB:.1f} GiB usable leave {budget.kv_pool_bytes / GIB:.1f} GiB for KV; one sequence of "
        f"{draft.model.max_model_len} tokens must fit"
    )


RULE = Rule("hbm-fit", 40, "Weights, workspace and the KV cache of one longest sequence must fit each GPU.", _check)
