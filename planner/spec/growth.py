"""Growth: how demand rises over the months ahead, and how far ahead to plan."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from planner.spec.fields import GrowthRate
from planner.spec.readers import Quantity
from planner.spec.refuse import mistake
from planner.spec.section import Section

MONTHS_PER_YEAR = 12
MOST_STEPS = 24
STEPS_BY_DEFAULT = 12
STEP_MONTHS = (1, 2, 3, 4, 6, 12)
"""Months that a step may have: those that a year is a whole number of."""

_HORIZON = Quantity("months", minimum=1.0, maximum=72.0, whole=True, bounds="from 1 to 72 months")
_STEP = Quantity("months", minimum=1.0, maximum=12.0, whole=True, bounds="from 1 to 12 months")


class GrowthSpec(Section):
    """Demand that grows by the month. Month 1 has the demand of `workloads`, each later one that of the month before and the rate."""

    rate: GrowthRate
    """Growth of the demand of every workload by the month, such as `8 %/month`; a workload's own `growth` wins."""
    horizon_months: Annotated[int, _HORIZON] = Field(alias="horizon")
    """Months to plan, such as `12 months`."""
    step_months: Annotated[int, _STEP] | None = Field(None, alias="step")
    """Months of one step, planned for its last one; default: as few as make twelve steps at most."""

    @property
    def months_per_step(self) -> int:
        """Months of a step."""
        if self.step_months is not None:
            return self.step_months
        whole = [n for n in STEP_MONTHS if self.horizon_months % n == 0]
        return next((n for n in whole if self.horizon_months <= STEPS_BY_DEFAULT * n), whole[-1])

    @model_validator(mode="after")
    def check_steps(self) -> Self:
        """Refuse steps that do not make up the horizon, or a year, and too many of them."""
        months = self.months_per_step
        if months not in STEP_MONTHS:
            known = ", ".join(f"`{n} months`" for n in STEP_MONTHS)
            raise mistake(
                "spec/growth-steps",
                f"steps of {months} months do not make up a year",
                f"write one of {known}",
                at="step",
            )
        if self.horizon_months % months:
            raise mistake(
                "spec/growth-steps", f"steps of {months} months do not make up {self.horizon_months} months",
                "write a horizon of whole steps", at="step",
            )  # fmt: skip
        if self.horizon_months // months > MOST_STEPS:
            raise mistake(
                "spec/growth-steps", f"{self.horizon_months // months} steps are more than {MOST_STEPS}",
                "write a longer `step`, such as `3 months`", at="horizon",
            )  # fmt: skip
        return self
