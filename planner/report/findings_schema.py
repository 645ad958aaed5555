"""JSON Schema of what `planner check --format json` prints."""

from __future__ import annotations

from typing import Any

from planner.diagnostics import Severity
from planner.report.diagnostics.json import SCHEMA_VERSION

_DIALECT = "http://json-schema.org/draft-07/schema#"
_Schema = dict[str, Any]


def findings_schema() -> _Schema:
    """Return the JSON Schema of the findings of a check as plain data."""
    report = _object(
        "What was found in the files that were checked.",
        schema_version={"description": "Version of this format.", "const": SCHEMA_VERSION},
        checked=_list("The files that were read, in order.", _TEXT),
        errors={"description": "Number of errors.", **_COUNT},
        warnings={"description": "Number of warnings.", **_COUNT},
        diagnostics=_list("What was found, file by file, in the order of places.", {"$ref": "#/$defs/diagnostic"}),
    )
    diagnostic = _object(
        "One finding.",
        code={
            "description": "Stable name of the mistake, explained in the manual.",
            "pattern": "^[a-z]+/[a-z0-9-]+$",
            **_TEXT,
        },
        severity={"description": "Whether it stops the run.", "enum": [str(severity) for severity in Severity]},
        message={"description": "What is wrong, in one sentence.", **_TEXT},
        span={"description": "Where it is; null where no file is at fault.", "anyOf": [_SPAN, {"type": "null"}]},
        label={"description": "What to do at this place; may be empty.", **_TEXT},
        help=_list("Further lines of advice.", _TEXT),
        related=_list("Second places, such as the first of two equal keys.", {"$ref": "#/$defs/related"}),
    )
    related = _object("A second place.", span=_SPAN, label={"description": "What is there; may be empty.", **_TEXT})
    definitions = {"diagnostic": diagnostic, "related": related, "span": _SPAN_DEFINITION}
    return {"$schema": _DIALECT, "title": "Findings of planner check, schema version 1", **report, "$defs": definitions}


def _object(description: str, **properties: _Schema) -> _Schema:
    """Return the schema of an object that has exactly these keys."""
    return {
        "description": description,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(description: str, items: _Schema) -> _Schema:
    return {"description": description, "type": "array", "items": items}


_TEXT: _Schema = {"type": "string"}
_COUNT: _Schema = {"type": "integer", "minimum": 0}
_FROM_1: _Schema = {"type": "integer", "minimum": 1}
_SPAN: _Schema = {"$ref": "#/$defs/span"}
_SPAN_DEFINITION = _object(
    "A place in a text file, on one line.",
    path={"description": "The file as it was named, or `<stdin>`.", **_TEXT},
    line={"description": "Line, from 1 on.", **_FROM_1},
    column={"description": "First column in characters, from 1 on.", **_FROM_1},
    end_column={"description": "Column behind the last one.", **_FROM_1},
)
