"""Prices of an API that could serve a workload in place of the fleet."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from planner.spec.fields import Line, MoneyPerMtok
from planner.spec.refuse import mistake
from planner.spec.section import Section


class ApiSpec(Section):
    """Prices of an API by the token, to compare the cost of the fleet with. Nothing else about the API is compared."""

    name: Line | None = None
    """What reports call it, such as `small model, list of 2026-07-30`."""
    input_usd_per_mtok: MoneyPerMtok = Field(alias="input")
    """Price of prompt tokens, such as `0.15 USD/Mtok`."""
    cached_input_usd_per_mtok: MoneyPerMtok | None = Field(None, alias="cached_input")
    """Price of prompt tokens that are found cached; default: that of `input`."""
    output_usd_per_mtok: MoneyPerMtok = Field(alias="output")
    """Price of generated tokens, such as `0.60 USD/Mtok`."""

    @model_validator(mode="after")
    def check_prices(self) -> Self:
        """Refuse prices that no API has: nothing at all, and more for a cached token than for another."""
        if self.output_usd_per_mtok <= 0.0:
            raise mistake("spec/out-of-range", "generated tokens have a price", "give one above zero", at="output")
        if (self.cached_input_usd_per_mtok or 0.0) > self.input_usd_per_mtok:
            raise mistake(
                "spec/out-of-range", "cached tokens cost more than other prompt tokens", "swap or correct them",
                at="cached_input",
            )  # fmt: skip
        return self
