"""The frozen base of every catalog record, and the few field types they share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, Strict

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Whole = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], Strict(False)]


class Record(BaseModel):
    """A catalog record: frozen, without unknown keys, with text never read as a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
