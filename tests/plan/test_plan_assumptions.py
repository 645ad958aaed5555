"""Assumptions of a plan about the formats that its candidates use."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from planner.candidates.types import CandidateTable
from planner.catalog.quality import QualityEvidence
from planner.plan.build import assumptions


@pytest.mark.parametrize(("scores", "said"), [(1, "model evidence, 1 score)"), (3, "model evidence, 3 scores)")])
def test_scores_behind_a_format_are_counted(scores: int, said: str) -> None:
    shape = SimpleNamespace(model="chat", weights="fp8", kv_cache="bf16")
    model = SimpleNamespace(quality={("fp8", "bf16"): QualityEvidence(0.99, "model", "a list", scores)})
    table = SimpleNamespace(assumptions=(), candidates=[SimpleNamespace(shape=shape)], models={"chat": model})
    (found,) = assumptions(cast(CandidateTable, table))
    assert found.value == f"99.0 % of native quality ({said}"
