"""Other spellings of catalog names: short ones for people, and the labels of published measurements."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, Strict

from planner.catalog.base import Record, Text, Whole


class Label(Record):
    """What a label of a measurement means: a catalog name, with what was `assumed`, or why there is none (`absent`)."""

    gpu: str = ""
    model: str = ""
    devices: Whole = 1
    assumed: str = ""
    absent: str = ""

    @property
    def name(self) -> str:
        """The catalog name, empty when the label has none."""
        return self.gpu or self.model


class LabelFile(Record):
    """The content of `labels.yaml`."""

    gpus: dict[str, Label] = Field(default_factory=dict)
    models: dict[str, Label] = Field(default_factory=dict)


Names = Annotated[tuple[Text, ...], Strict(False), Field(min_length=1)]


class AliasFile(Record):
    """The content of `aliases.yaml`."""

    gpus: dict[str, Names] = Field(default_factory=dict)
    models: dict[str, Names] = Field(default_factory=dict)


def folded(aliases: dict[str, Names]) -> dict[str, tuple[str, ...]]:
    """Return the aliases with their spelling in lower case."""
    return {spelling.casefold(): names for spelling, names in sorted(aliases.items())}
