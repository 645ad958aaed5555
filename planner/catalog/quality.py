"""Quality kept by a weight or KV format, with how close the evidence is to the model asked about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Literal

from pydantic import Field, Strict

from planner.catalog.base import Positive, Record, Text, Texts
from planner.physics.types import Architecture

EvidenceLevel = Literal["native", "model", "family", "any"]
LEVELS: tuple[EvidenceLevel, ...] = ("native", "model", "family", "any")
"""How close evidence is, closest first."""

WIDE_FORMATS = frozenset({"bf16", "fp16", "fp32"})
"""Formats that keep everything: the native one or wider."""


@dataclass(frozen=True, slots=True)
class QualityEvidence:
    """Share of the native format's score that is kept, 0 to 1, over `n` published scores of models at `level`.

    `level` is native when the formats are the model's own, else the weakest level used; `source` is then empty.
    """

    recovery: float
    level: EvidenceLevel
    source: str
    n: int


NATIVE = QualityEvidence(1.0, "native", "", 0)


class Scores(Record):
    """Published scores of one model in one format, in percent of its native score.

    `label` is the name printed by the source. `pooled` names the families of one average over several models, in place
    of `model` and `family`.
    """

    label: Text
    model: str = ""
    family: str = ""
    pooled: Texts = ()
    scores: Annotated[dict[Text, Positive], Field(min_length=1)]
    source: Text

    @property
    def families(self) -> tuple[str, ...]:
        """Families that the scores are evidence for."""
        return self.pooled or (self.family,)


class LeftOut(Record):
    """Published evidence that is not used, with the reason."""

    what: Text
    reason: Text


class QualityFile(Record):
    """The content of `quality/weights.yaml` or `quality/kv.yaml`, whose head states the rule."""

    formats: dict[Text, Annotated[tuple[Scores, ...], Strict(False), Field(min_length=1)]]
    same_as: dict[Text, Text] = Field(default_factory=dict)
    left_out: Annotated[tuple[LeftOut, ...], Strict(False)] = ()

    def canonical(self, number_format: str) -> str:
        """Return the format whose evidence stands for `number_format`."""
        return self.same_as.get(number_format, number_format)


def evidence_for(file: QualityFile, number_format: str, arch: Architecture, weakest: str) -> QualityEvidence | None:
    """Return the closest evidence for one format, not weaker than the level `weakest`, or None.

    At each level the scores of a model are averaged, then the models, and the mean is cut at 1; a pooled average is
    used only where no single model is at hand.
    """
    entries = file.formats.get(file.canonical(number_format), ())
    for level in LEVELS[1 : LEVELS.index(_level(weakest)) + 1]:
        at_level = [e for e in entries if _applies(e, level, arch)]
        chosen = [e for e in at_level if not e.pooled] or at_level
        if chosen:
            return _mean(chosen, level)
    return None


def combine(parts: Iterable[QualityEvidence]) -> QualityEvidence:
    """Multiply the recoveries of weights and KV cache; the level is the weakest of the two."""
    recovery, level, sources, n = 1.0, NATIVE.level, dict[str, None](), 0
    for part in parts:
        recovery *= part.recovery
        level = max(level, part.level, key=LEVELS.index)
        sources |= dict.fromkeys(s for s in part.source.split("; ") if s)
        n += part.n
    return QualityEvidence(recovery, level, "; ".join(sources), n)


def _level(name: str) -> EvidenceLevel:
    return next((level for level in LEVELS if level == name), "any")


def _applies(entry: Scores, level: EvidenceLevel, arch: Architecture) -> bool:
    if level == "model":
        return entry.model == arch.name
    return level == "any" or arch.family in entry.families


def _mean(entries: Sequence[Scores], level: EvidenceLevel) -> QualityEvidence:
    by_model: dict[str, list[float]] = {}
    for entry in entries:
        by_model.setdefault(entry.model or entry.label, []).extend(entry.scores.values())
    recovery = min(1.0, fmean(fmean(scores) for scores in by_model.values()) / 100)
    sources = "; ".join(dict.fromkeys(e.source for e in entries))
    return QualityEvidence(recovery, level, sources, sum(len(s) for s in by_model.values()))
