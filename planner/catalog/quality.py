"""Quality kept by a weight or KV format, with how close the evidence is to the model asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EvidenceLevel = Literal["native", "model", "family", "any"]


@dataclass(frozen=True, slots=True)
class QualityEvidence:
    """Share of the native format's score that is kept, 0 to 1, over `n` scores of models at `level`.

    `level` is native when the format is the model's own, else the weakest level of the evidence used. `source` names
    where the scores are from; it is empty for native formats.
    """

    recovery: float
    level: EvidenceLevel
    source: str
    n: int
