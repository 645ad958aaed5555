"""Reliability: spare replicas, what must be survived, headroom."""

from __future__ import annotations

from typing import Annotated, Literal

from planner.spec.fields import Count, PositiveCount, ShareBelowOne
from planner.spec.readers import OneOf
from planner.spec.section import Section
from planner.spec.vocabulary import SURVIVE


class ReliabilitySpec(Section):
    """What the fleet must survive. On a model it overrides the top level, key by key."""

    spare_replicas: Count = 0
    """With this many replicas of any one pool gone, the model's other replicas still carry the demand."""
    survive: Annotated[Literal["replica", "node", "zone"], OneOf("failure to survive", SURVIVE)] = "replica"
    """Largest failure besides that of spare replicas: any one node, or all nodes of one zone (a region or site)."""
    min_replicas: PositiveCount = 1
    """Least replicas of the model."""
    headroom: ShareBelowOne = 0.0
    """Demand is multiplied by one plus this share."""

    def overridden_by(self, other: ReliabilitySpec | None) -> ReliabilitySpec:
        """Return this section with the keys that `other` gives explicitly."""
        if other is None:
            return self
        return self.model_copy(update={name: getattr(other, name) for name in sorted(other.model_fields_set)})
