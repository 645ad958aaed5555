"""Nodes that are bought before anybody knows which case comes true: the same in all of them, at the prices of the spec."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from planner.candidates.periods import Case, InPeriod, copy_of
from planner.candidates.types import PricedOffer


class HereAndNow:
    """Copies of an offer are equally many in all cases that have it, and together cost what one of them costs.

    Nodes of an offer that a case does not have are paid for, and of no use there.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self._share: dict[str, float] = defaultdict(float)
        for case in cases:
            for offer in case.table.supply.offers:
                self._share[offer.name] += case.share

    def copied(self, offer: PricedOffer, part: InPeriod) -> PricedOffer:
        """Return the copy of an offer for a case, at its part of the price."""
        own = part.share / self._share[offer.name]
        return replace(copy_of(offer, part, offer.name), usd_per_node_h=offer.usd_per_node_h * own, share=own)
