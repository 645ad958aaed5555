"""The JSON schema: current, valid, strict where the planner is strict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from small_specs import EVERYTHING

from planner.source import parse
from planner.spec.schema import spec_schema, spec_schema_text

ROOT = Path(__file__).parents[2]
BAD = ROOT / "tests" / "data" / "bad_specs"
SPECS = sorted((ROOT / "specs").rglob("*.yaml"))
SEEN_BY_SCHEMA = (
    "unknown_key",
    "unknown_top_key",
    "missing_key",
    "missing_section",
    "missing_unit",
    "rate_without_unit",
    "wrong_unit",
    "unquoted_version",
    "version_2",
    "yes_for_true",
    "unknown_format",
    "unknown_engine",
    "text_for_list",
    "negative_rate",
    "percent_without_sign",
    "no_value",
    "burstiness",
)


def validator() -> jsonschema.Draft7Validator:
    """A validator over the generated schema."""
    return jsonschema.Draft7Validator(spec_schema())


def nodes(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mapping of a schema with its path."""
    if isinstance(schema, dict):
        yield path, schema
        for key, value in schema.items():
            yield from nodes(value, f"{path}/{key}")
    if isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from nodes(value, f"{path}/{index}")


def test_committed_schema_is_current() -> None:
    """`specs/fleet.schema.json` is what `planner schema` prints."""
    committed = (ROOT / "specs" / "fleet.schema.json").read_text(encoding="utf-8")

    assert committed == spec_schema_text(), "run: planner schema > specs/fleet.schema.json"


def test_schema_is_valid_in_both_drafts() -> None:
    """Editors read draft 7, tools read 2020-12."""
    jsonschema.Draft7Validator.check_schema(spec_schema())
    jsonschema.Draft202012Validator.check_schema(spec_schema())


def test_every_key_has_a_sentence() -> None:
    """Hover text exists for each key of the grammar."""
    for path, node in nodes(spec_schema()):
        for key, value in node.get("properties", {}).items():
            assert value.get("description", "").endswith("."), f"{path}: {key}"


def test_nothing_that_editors_do_not_read() -> None:
    """No tuples, nothing beside a reference, no nulls, and notes are allowed in each section."""
    for path, node in nodes(spec_schema()):
        assert "prefixItems" not in node, path
        assert "$ref" not in node or set(node) == {"$ref"}, path
        assert node.get("type") != "null", path
        if node.get("additionalProperties") is False and "patternProperties" not in node:
            assert path.endswith("/slo"), path


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_specs_are_valid(path: Path) -> None:
    """Every spec of the repository fits the schema."""
    document, diagnostics = parse(path.read_text(encoding="utf-8"), str(path))

    assert diagnostics == []
    assert document is not None
    assert [error.message for error in validator().iter_errors(document.data)] == []


def test_every_built_key_is_valid() -> None:
    """The schema takes what the planner takes."""
    document, _ = parse(EVERYTHING, "f.yaml")

    assert document is not None
    assert [error.message for error in validator().iter_errors(document.data)] == []


@pytest.mark.parametrize("name", SEEN_BY_SCHEMA)
def test_schema_sees_mistakes(name: str) -> None:
    """What a schema can see, an editor underlines."""
    document, _ = parse((BAD / f"{name}.yaml").read_text(encoding="utf-8"), name)

    assert document is not None
    assert list(validator().iter_errors(document.data))


def test_schema_is_deterministic() -> None:
    """The same text every time, and JSON."""
    assert spec_schema_text() == spec_schema_text()
    assert json.loads(spec_schema_text())["$schema"] == "http://json-schema.org/draft-07/schema#"
