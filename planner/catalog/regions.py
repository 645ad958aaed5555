"""The country of each region of each provider."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, RootModel

Country = Annotated[str, Field(pattern=r"^([A-Z]{2})?$")]


class RegionFile(RootModel[dict[str, dict[str, Country]]]):
    """The content of `offers/regions.yaml`: provider, region, ISO 3166 country; empty where the region fixes none."""

    model_config = ConfigDict(frozen=True, strict=True)
