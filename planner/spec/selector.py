"""Selectors: which GPUs, providers, regions, countries and terms something is about."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from planner.spec.fields import Country, Line, Lines, Terms
from planner.spec.refuse import mistake
from planner.spec.section import Section

_SINGULARS = (("provider", "providers"), ("region", "regions"), ("country", "countries"))


class Selector(Section):
    """What to match. Every list that is given must match; an empty or absent list matches anything."""

    gpus: Lines = ()
    """GPU names of the catalog."""
    provider: Line | None = None
    """One provider, in place of `providers`."""
    providers: Lines = ()
    """Provider names, as in the offers."""
    region: Line | None = None
    """One region, in place of `regions`."""
    regions: Lines = ()
    """Region names; `*` and `?` match as in file names."""
    country: Country | None = None
    """One country, in place of `countries`."""
    countries: tuple[Country, ...] = ()
    """ISO country codes of two letters."""
    terms: Terms = ()
    """Terms of purchase: on-demand, spot, 1y, 3y."""

    @model_validator(mode="after")
    def check_one_form(self) -> Self:
        """Refuse one name beside a list of them."""
        for one, several in _SINGULARS:
            if one in self.model_fields_set and several in self.model_fields_set:
                raise mistake("spec/conflicting-keys", f"`{one}` and `{several}` say the same", "keep one", at=several)
        return self

    @property
    def all_providers(self) -> tuple[str, ...]:
        """Providers to match; empty matches any."""
        return self.providers if self.provider is None else (self.provider,)

    @property
    def all_regions(self) -> tuple[str, ...]:
        """Regions to match, `*` and `?` as in file names; empty matches any."""
        return self.regions if self.region is None else (self.region,)

    @property
    def all_countries(self) -> tuple[str, ...]:
        """Country codes to match; empty matches any."""
        return self.countries if self.country is None else (self.country,)

    @property
    def is_any(self) -> bool:
        """Tell whether nothing is restricted."""
        return not (self.gpus or self.all_providers or self.all_regions or self.all_countries or self.terms)
