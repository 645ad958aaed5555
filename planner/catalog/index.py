"""The file `catalog.yaml` that makes a folder a catalog."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import Field, Strict

from planner.catalog.base import Record, Text, Whole


class NotModelled(Record):
    """An accelerator that the facts name and the planner leaves out, with the reason."""

    name: Text
    reason: Text


class CatalogIndex(Record):
    """What holds for the catalog as a whole."""

    catalog: Literal[1]
    newest_price_date: Annotated[date, Strict(False)]
    stale_after_days: Whole
    not_modelled: Annotated[tuple[NotModelled, ...], Strict(False)] = Field(default=())
