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


class Release(Record):
    """The newest release of a project when the issue of this number was opened."""

    from_issue: Whole
    version: Text


class UndatedVersions(Record):
    """Which version a log is from that does not say: by the number of the issue that it is quoted in, else `usual`."""

    usual: Text
    repository: str = ""
    releases: Annotated[tuple[Release, ...], Strict(False)] = ()

    def version_at(self, issue: int) -> str | None:
        """Return the newest release when an issue was opened, None before the first one that is listed."""
        return next((r.version for r in reversed(self.releases) if r.from_issue <= issue), None)


class LabelFile(Record):
    """The content of `labels.yaml`."""

    versions: dict[str, UndatedVersions] = Field(default_factory=dict)
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
