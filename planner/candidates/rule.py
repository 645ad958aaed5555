"""The type of a pruning rule, and the draft of a shape that rules look at."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from planner.candidates.types import ResolvedModel
from planner.physics.memory import HbmBudget, UnknownArchitecture, hbm_budget
from planner.physics.types import Device, Layout


@dataclass(frozen=True)
class Draft:
    """A shape under consideration: a model on a GPU type in one layout, weight format and KV format.

    `node_gpus` is the largest node of the type on offer.
    """

    model: ResolvedModel
    device: Device
    layout: Layout
    weights: str
    kv_cache: str
    node_gpus: int

    @property
    def max_num_seqs(self) -> int:
        """Most sequences of one replica: the user's cap, else what the engine defaults to on this device.

        Engines that serve one stream unless told otherwise are told so: the catalog's cap of the engine counts then.
        """
        default = self.model.memory.max_num_seqs_on(self.device)
        return self.model.spec.engine.max_num_seqs or (default if default > 1 else self.model.engine.max_num_seqs)

    @cached_property
    def budget(self) -> HbmBudget:
        """HBM budget per GPU. Raises `UnknownArchitecture` where the KV cache has no known size."""
        engine = self.model.spec.engine
        return hbm_budget(
            self.model.architecture,
            self.device,
            self.layout,
            self.weights,
            self.kv_cache,
            self.model.memory,
            self.max_num_seqs,
            engine.max_num_batched_tokens,
            self.model.max_model_len,
            engine.gpu_memory_utilization,
            engine.chunked_prefill,
        )

    @property
    def shortfall_bytes(self) -> float:
        """Memory that a GPU lacks, 0 where the KV cache has no known size."""
        try:
            return self.budget.shortfall_bytes
        except UnknownArchitecture:
            return 0.0


@dataclass(frozen=True)
class Rule:
    """A reason to rule a shape out. `check` returns that reason with its numbers, or None; rules run by `order`."""

    name: str
    order: int
    sentence: str
    check: Callable[[Draft], str | None]


def all_rules() -> tuple[Rule, ...]:
    """Return every rule of the package `rules`, in order: a new file there is a new rule."""
    package = importlib.import_module("planner.candidates.rules")
    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__))
    rules = [importlib.import_module(f"{package.__name__}.{name}").RULE for name in names]
    return tuple(sorted(rules, key=lambda rule: (rule.order, rule.name)))
