"""Plain scalars by the core schema of YAML 1.2: `no` and `12:30` are text, `010` is ten, `1e9` a number."""

from __future__ import annotations

import math
import re

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE"))
_FALSE = frozenset(("false", "False", "FALSE"))
_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OCTAL = re.compile(r"0o[0-7]+", re.ASCII)
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_INFINITY = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NOT_A_NUMBER = frozenset((".nan", ".NaN", ".NAN"))
_LONGEST_NUMBER = 100

Scalar = str | int | float | bool | None


def resolve(text: str) -> Scalar:
    """Return the value of an unquoted scalar. Digits beyond 100 characters stay text."""
    if text in _NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text[0] not in "+-.0123456789" or len(text) > _LONGEST_NUMBER:
        return text
    return _resolve_number(text)


def _resolve_number(text: str) -> Scalar:
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text):
        return int(text[2:], 8)
    if _HEXADECIMAL.fullmatch(text):
        return int(text[2:], 16)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITY.fullmatch(text):
        return -math.inf if text.startswith("-") else math.inf
    return math.nan if text in _NOT_A_NUMBER else text
