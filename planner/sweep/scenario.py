"""The scenarios of a sweep: every combination of values, values side by side, or draws."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from planner.sweep.distributions import uniform_of
from planner.sweep.setting import Setting

MOST_SCENARIOS = 100_000
Values = tuple[tuple[str, str], ...]
"""Keys with their values as YAML, in the order in which they are set."""


class Mode(StrEnum):
    """How the values of several keys are combined."""

    GRID = "grid"
    ZIP = "zip"
    SAMPLE = "sample"


class DefinitionError(ValueError):
    """Settings that make no sweep, in one line."""


@dataclass(frozen=True)
class Scenario:
    """A variant of the spec, numbered from 1."""

    number: int
    values: Values


@dataclass(frozen=True)
class Definition:
    """What is swept; `samples` draws are made from `seed`."""

    settings: tuple[Setting, ...]
    mode: Mode
    samples: int = 0
    seed: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that are set."""
        return tuple(setting.key for setting in self.settings)

    @property
    def text(self) -> str:
        """What makes scenarios of the same number the same: samples may be added to, all else is part of it."""
        kind: list[object] = [self.mode, self.seed] if self.mode is Mode.SAMPLE else [self.mode]
        drawn = [[s.key, repr(s.drawn)] if s.drawn else [s.key, *(v.text for v in s.values)] for s in self.settings]
        return json.dumps([*kind, *drawn], ensure_ascii=False)

    def scenarios(self) -> tuple[Scenario, ...]:
        """Return the scenarios, those of a grid with the last key changing first. Raises `DefinitionError`."""
        drawn = [s.key for s in self.settings if s.drawn is not None]
        if drawn and self.mode is not Mode.SAMPLE:
            raise DefinitionError(f"{drawn[0]} is drawn from a distribution: say with --sample how often")
        lists = [[value.text for value in setting.values] for setting in self.settings]
        counts = {
            Mode.GRID: math.prod(map(len, lists)),
            Mode.ZIP: len(lists[0]),
            Mode.SAMPLE: self.samples,
        }
        if counts[self.mode] > MOST_SCENARIOS:
            raise DefinitionError(f"{counts[self.mode]:,} scenarios are more than {MOST_SCENARIOS:,}")
        return tuple(
            Scenario(number, tuple(zip(self.keys, values, strict=True)))
            for number, values in enumerate(self._combined(lists), 1)
        )

    def _combined(self, lists: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
        if self.mode is Mode.GRID:
            return list(product(*lists))
        if self.mode is Mode.ZIP:
            if len({*map(len, lists)}) > 1:
                counted = ", ".join(f"{key} has {len(own)}" for key, own in zip(self.keys, lists, strict=True))
                raise DefinitionError(f"--zip needs as many values of every key: {counted}")
            return list(zip(*lists, strict=True))
        return [
            [setting.value_at(uniform_of(self.seed, number, setting.key)) for setting in self.settings]
            for number in range(1, self.samples + 1)
        ]
