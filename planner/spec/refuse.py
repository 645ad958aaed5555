"""Mistakes that a validator raises: diagnostics still without their place, which `describe` adds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pydantic_core import PydanticCustomError

MISTAKE = "planner_mistake"
"""The error type under which pydantic carries a mistake."""

UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters that control a terminal, end a line, turn the direction of text, or cannot be seen."""

_LONGEST_QUOTE = 60


def mistake(
    code: str,
    message: str,
    label: str = "",
    *,
    help: str = "",
    at: str = "",
    about_key: bool = False,
    part: tuple[int, int] = (0, 0),
) -> PydanticCustomError:
    """Return the error to raise in a validator: a diagnostic without its place.

    `at` names a key below the value that is validated, `part` bounds the offending characters of a scalar, and
    `about_key` points at the key instead of the value.
    """
    context: dict[str, str | int] = {"code": code, "message": message, "label": label, "help": help, "at": at}
    context |= {"about_key": about_key, "start": part[0], "end": part[1]}
    return PydanticCustomError(MISTAKE, "{message}", context)


def not_supported_yet(feature: str, instead: Iterable[str]) -> PydanticCustomError:
    """Return the mistake of using a part of the grammar that is not built: a word, or else a key."""
    words = ", ".join(f"`{word}`" for word in instead)
    label = f"use {words}" if words else "remove this key"
    return mistake("spec/not-supported-yet", f"{feature} is not supported yet", label, about_key=not words)


def quoted(value: object) -> str:
    """Quote a YAML value for a message: containers by kind, long text shortened."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "`null`", True: "`true`", False: "`false`"}[value]
    text = UNSEEN.sub("?", str(value))
    return f"`{text}`" if len(text) <= _LONGEST_QUOTE else f"`{text[: _LONGEST_QUOTE - 1]}…`"
