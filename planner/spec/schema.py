"""JSON Schema of a spec, for editors: the YAML side of every field with its sentence.

Keeps to what draft 7 and draft 2020-12 read alike: no `prefixItems`, no keywords beside `$ref`.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Any

from planner.spec.fleet import FleetSpec
from planner.spec.lengths import LengthSpec
from planner.spec.readers import UNITS
from planner.spec.section import Section
from planner.spec.traffic import RateSpec

_DIALECT = "http://json-schema.org/draft-07/schema#"
_EXTENSION_KEYS = {"^x-": {"description": "Ignored: a home for notes and YAML anchors."}}
_SHORT_FORMS = {LengthSpec.__name__: "constant", RateSpec.__name__: "peak"}

_Schema = dict[str, Any]


def spec_schema() -> _Schema:
    """Return the JSON schema of a spec as plain data."""
    generated = FleetSpec.model_json_schema(by_alias=True)
    classes = {section.__name__: section for section in _below(Section)}
    raw = generated.pop("$defs")
    definitions = {name: _clean(_described(schema, classes[name])) for name, schema in raw.items()}
    for name, key in _SHORT_FORMS.items():
        definitions[name] = _with_short_form(definitions[name], key)
    schema: _Schema = {"$schema": _DIALECT, "title": "Fleet spec of planner, version 1"}
    schema |= _clean(_described(generated, FleetSpec))
    schema["$defs"] = dict(sorted(definitions.items()))
    return schema


def _described(schema: _Schema, section: type[Section]) -> _Schema:
    """Add the sentence under each field. Read here and not by pydantic, which would do it at every start."""
    texts = field_texts(section)
    fields = {field.alias or name: texts[name] for name, field in section.model_fields.items()}
    properties = {key: {"description": fields[key]} | value for key, value in schema["properties"].items()}
    return schema | {"properties": properties}


def _below(section: type[Section]) -> list[type[Section]]:
    """Return all sections of the grammar that build on one."""
    return [found for own in section.__subclasses__() for found in (own, *_below(own))]


def field_texts(section: type[Section]) -> dict[str, str]:
    """Return the sentence under each field, those of the sections that it builds on first."""
    bases = [base for base in reversed(section.__mro__) if issubclass(base, Section)]
    return {name: text for base in bases for name, text in _own_texts(base).items()}


def _own_texts(section: type[Section]) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(section))).body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    texts: dict[str, str] = {}
    for field, below in pairwise(body):
        has_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if isinstance(field, ast.AnnAssign) and has_text:
            texts[ast.unparse(field.target)] = inspect.cleandoc(ast.literal_eval(ast.unparse(below)))
    return texts


def _clean(node: Any) -> Any:
    """Return a copy without generated titles and nulls, references alone, and `x-` keys allowed."""
    if isinstance(node, list):
        return [_clean(item) for item in node]
    if not isinstance(node, dict):
        return node
    dropped = {UNITS} | ({"title"} if isinstance(node.get("title"), str) else set())
    if isinstance(node.get("default"), dict) or node.get("default", ...) is None:
        dropped.add("default")
    copy = {key: _clean(value) for key, value in node.items() if key not in dropped}
    if "properties" in node:
        copy["properties"] = {
            key: _with_units(copy["properties"][key], field) for key, field in node["properties"].items()
        }
    if copy.get("additionalProperties") is False and "properties" in copy:
        copy["patternProperties"] = _EXTENSION_KEYS
    return _without_reference_siblings(_without_null(copy))


def _with_units(described: _Schema, field: _Schema) -> _Schema:
    """Say in the description of a field in which units it is written."""
    choices = [field, *field.get("anyOf", ()), field.get("items"), field.get("additionalProperties")]
    units = next((choice[UNITS] for choice in choices if isinstance(choice, dict) and choice.get(UNITS)), "")
    return described | {"description": f"{described['description']} {units}"} if units else described


def _without_null(schema: _Schema) -> _Schema:
    """Drop `null` from a choice: a key without a value is refused."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == len(schema.get("anyOf", ())):
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return (choices[0] | rest) if len(choices) == 1 else rest | {"anyOf": choices}


def _without_reference_siblings(schema: _Schema) -> _Schema:
    if "$ref" not in schema or len(schema) == 1:
        return schema
    return {key: value for key, value in schema.items() if key != "$ref"} | {"allOf": [{"$ref": schema["$ref"]}]}


def _with_short_form(schema: _Schema, key: str) -> _Schema:
    """Allow the value of one key in place of the whole mapping."""
    short = {name: value for name, value in schema["properties"][key].items() if name != "description"}
    return {"description": schema.get("description", ""), "anyOf": [short, schema]}
