"""Read a `config.json`: JSON from anybody, so its size and shape are bounded and its mistakes have a place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from planner.diagnostics import Diagnostic, DiagnosticError, Span
from planner.source import FilePath

LARGEST_BYTES = 20_000_000
DEEPEST = 64
QUANTISATION_FILE = "hf_quant_config.json"
_SHOWN = "config.json of a Hugging Face model repository"


def read_config(path: FilePath) -> dict[str, Any]:
    """Return the parsed file. Raises `DiagnosticError` when it is no JSON object, and `OSError` when it is not there."""
    with path.open("rb") as file:
        data = file.read(LARGEST_BYTES + 1)
    return parse_config(data, str(path))


def quantisation_beside(path: FilePath) -> dict[str, Any] | None:
    """Return the `hf_quant_config.json` in the folder of a config, None without one. Raises as `read_config`."""
    beside = path.parent / QUANTISATION_FILE
    return read_config(beside) if beside.is_file() else None


def parse_config(data: bytes, path: str) -> dict[str, Any]:
    """Return the parsed bytes of a file called `path`. Raises `DiagnosticError`."""
    if len(data) > LARGEST_BYTES:
        raise _wrong(path, f"larger than {LARGEST_BYTES // 1_000_000} MB: this is no {_SHOWN}")
    try:
        parsed = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise _wrong(path, "this file is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise _wrong(path, f"not JSON: {error.msg}", Span(path, error.lineno, error.colno, error.colno + 1)) from None
    except (RecursionError, ValueError):
        raise _wrong(path, "nested too deeply, or a number too long") from None
    if _depth_above(parsed, DEEPEST):
        raise _wrong(path, f"nested too deeply: more than {DEEPEST} levels")
    if not isinstance(parsed, dict):
        raise _wrong(path, f"the top level is no object: this is no {_SHOWN}")
    return parsed


def _depth_above(value: Any, most: int) -> bool:
    """Tell whether lists and objects are nested more than `most` levels deep."""
    level = [value]
    for _ in range(most):
        level = [item for held in level for item in _held(held)]
    return any(isinstance(item, Mapping | list) for item in level)


def _held(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []


def _wrong(path: str, message: str, span: Span | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic("model/config", message, span or Span(path, 1, 1, 2))])
