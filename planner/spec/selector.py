"""Selectors: which GPUs, providers, regions, countries and terms something is about."""

from __future__ import annotations

from planner.spec.fields import Country, Lines, Terms
from planner.spec.section import Section


class Selector(Section):
    """What to match. Every list that is given must match; an empty or absent list matches anything."""

    gpus: Lines = ()
    """GPU names of the catalog."""
    providers: Lines = ()
    """Provider names, as in the offers."""
    regions: Lines = ()
    """Region names; `*` and `?` match as in file names."""
    countries: tuple[Country, ...] = ()
    """ISO country codes of two letters."""
    terms: Terms = ()
    """Terms of purchase: on-demand, 1y, 3y."""

    @property
    def is_any(self) -> bool:
        """Tell whether nothing is restricted."""
        return not (self.gpus or self.providers or self.regions or self.countries or self.terms)
