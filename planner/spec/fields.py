"""Types of the spec's fields: which quantity, within which bounds, in which base unit."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Annotated, TypeVar

from pydantic import AfterValidator

from planner.spec import vocabulary
from planner.spec.readers import LONGEST_TEXT, Flag, IsoDate, OneOf, Quantity, Text
from planner.spec.refuse import mistake

_NAME = re.compile(r"\w[\w .:/+@-]*")
_T = TypeVar("_T")


def is_name(text: str) -> bool:
    """Tell whether a user's own name (model, workload) is printable and safe in every output."""
    return len(text) <= LONGEST_TEXT and _NAME.fullmatch(text) is not None


def unique(values: tuple[_T, ...]) -> tuple[_T, ...]:
    """Refuse a value that is listed twice."""
    for index, value in enumerate(values):
        if value in values[:index]:
            raise mistake("spec/duplicate-value", f"`{value}` is listed twice", "remove one", at=str(index))
    return values


def some(what: str) -> Callable[[_T], _T]:
    """Return a validator that refuses an empty collection of `what`."""

    def check(values: _T) -> _T:
        if not values:
            raise mistake("spec/empty", f"no {what} is given", f"name at least one {what}")
        return values

    return check


MOST_REQUESTS_PER_S = 1e7
"""Highest demand of a workload that is planned for."""
Line = Annotated[str, Text()]
Bool = Annotated[bool, Flag()]
Date = Annotated[datetime.date, IsoDate()]
Duration = Annotated[float, Quantity("time", above=0.0, bounds="above zero")]
Rate = Annotated[
    float, Quantity("rate", above=0.0, maximum=MOST_REQUESTS_PER_S, bounds="above zero and at most 1e7 req/s")
]
GrowthRate = Annotated[float, Quantity("growth", maximum=1.0, bounds="from 0 to 100 %/month")]
Share = Annotated[float, Quantity("share")]
ShareBelowOne = Annotated[float, Quantity("share", below=1.0, bounds="at least 0 % and below 100 %")]
PositiveShare = Annotated[float, Quantity("share", above=0.0, bounds="above 0 % and at most 100 %")]
Tokens = Annotated[float, Quantity("count", minimum=1.0, maximum=1e8, bounds="from 1 to 100M tokens")]
WholeTokens = Annotated[int, Quantity("count", minimum=1, maximum=1e8, whole=True, bounds="from 1 to 100M tokens")]
PerDay = Annotated[float, Quantity("count", above=0.0, maximum=1e18, bounds="above zero")]
Count = Annotated[int, Quantity("count", maximum=1e6, whole=True, bounds="from 0 to 1M")]
PositiveCount = Annotated[int, Quantity("count", minimum=1, maximum=1e6, whole=True, bounds="from 1 to 1M")]
Money = Annotated[float, Quantity("money", maximum=1e15, bounds="at most 1e15 USD")]
MoneyPerMonth = Annotated[float, Quantity("money_per_month", maximum=1e15, bounds="at most 1e15 USD/month")]
MoneyPerMtok = Annotated[float, Quantity("money_per_mtok", maximum=1e9, bounds="at most 1e9 USD/Mtok")]
Power = Annotated[float, Quantity("power", maximum=1e12, bounds="at most 1e12 W")]
ElectricityPrice = Annotated[float, Quantity("price_per_kwh", maximum=100.0, bounds="at most 100 USD/kWh")]
Increase = Annotated[float, Quantity("change", maximum=10.0, bounds="from 0 % to 1000 %")]
WeightFormat = Annotated[str, OneOf("weight format", vocabulary.WEIGHT_FORMATS)]
KvFormat = Annotated[str, OneOf("KV format", vocabulary.KV_FORMATS)]
Term = Annotated[str, OneOf("term", vocabulary.TERMS)]
Country = Annotated[str, Text("[A-Z]{2}", "a country code of two capital letters, such as `DE`")]

Lines = Annotated[tuple[Line, ...], AfterValidator(unique)]
Terms = Annotated[tuple[Term, ...], AfterValidator(unique)]
WeightFormats = Annotated[tuple[WeightFormat, ...], AfterValidator(unique), AfterValidator(some("weight format"))]
KvFormats = Annotated[tuple[KvFormat, ...], AfterValidator(unique), AfterValidator(some("KV format"))]
Degrees = Annotated[tuple[PositiveCount, ...], AfterValidator(unique), AfterValidator(some("degree"))]
