"""Base of every section of a spec: frozen, closed to unknown keys, described by the text under each field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator


class Section(BaseModel):
    """A mapping of the spec with fixed keys. Keys that start with `x-` are ignored."""

    FOREIGN_KEYS: ClassVar[Mapping[str, Callable[[object], str]]] = {}
    """Keys of other tools that people write here, with the advice to give."""

    TITLE: ClassVar[str] = "the spec"
    """What a file that holds nothing but this section is called in messages."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def drop_extension_keys(cls, value: Any) -> Any:
        """Leave out `x-` keys, which are a home for YAML anchors and notes."""
        if not isinstance(value, dict):
            return value
        return {key: item for key, item in value.items() if not str(key).startswith("x-")}

    @classmethod
    def legal_keys(cls) -> tuple[str, ...]:
        """Return the keys as written in YAML, in declared order."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())
