"""A question about a known pool, and reviewers that answer as they are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from planner.catalog import Catalog
from planner.second_opinion import Figures, Question, Reply


def question(catalog: Catalog, model: str = "llama-3.3-70b", **changes: Any) -> Question:
    """A replica of two H100 in fp8, with 24 requests in flight."""
    asked = Question(
        pool="chat",
        architecture=catalog.architecture(model),
        gpu="H100-SXM-80GB",
        engine="vllm",
        weights="fp8",
        kv_cache="fp8",
        tensor=2,
        pipeline=1,
        expert=1,
        attention_data=1,
        in_flight=24,
        input_tokens=1200,
        cached_tokens=0,
        output_tokens=200,
        chunk_tokens=8192,
    )
    return replace(asked, **changes)


@dataclass
class Told:
    """A reviewer that answers by a function."""

    by: Callable[[Question], Reply]
    name: str = "told 1.0"

    def answer(self, question: Question) -> Reply:
        """Answer as told."""
        return self.by(question)


def reply(tpot_s: float = 0.02, requests_per_s: float = 3.0, ttft_alone_s: float = 0.1) -> Reply:
    """Plain figures."""
    return Reply(Figures(tpot_s, requests_per_s, ttft_alone_s), "tables of nobody")
