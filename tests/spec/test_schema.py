"""The JSON schema: current, valid, strict where the planner is strict."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from small_specs import EVERYTHING

from planner.cli.schema import SchemaOf, schema_text
from planner.source import parse
from planner.spec.readers import UNITS
from planner.spec.schema import spec_schema

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "specs" / "fleet.schema.json"
BAD = ROOT / "tests" / "data" / "bad_specs"
SPECS = sorted(path for path in (ROOT / "specs").rglob("*.yaml") if path.parent.name != "scenarios")
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


@cache
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
    committed = SCHEMA.read_text(encoding="utf-8")

    assert committed == schema_text(SchemaOf.SPEC), "run: planner schema > specs/fleet.schema.json"


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


def test_quantities_say_how_they_are_written() -> None:
    """Each has a pattern with an example that fits it, and its units in the hover text."""
    for path, node in nodes(spec_schema()):
        assert UNITS not in node, path
        if "pattern" in node and "examples" in node:
            assert all(re.search(node["pattern"], example) for example in node["examples"]), path
        for key, value in node.get("properties", {}).items():
            if "USD" in value.get("pattern", "") or "req/s" in value.get("pattern", ""):
                assert re.search(r"Units?: .*\.$", value["description"]), f"{path}: {key}"


def test_defaults_are_valid() -> None:
    """What an editor fills in, the schema takes."""
    schema = spec_schema()
    for path, node in nodes(schema):
        for key, value in node.get("properties", {}).items():
            if "default" in value:
                whole = {**value, "$defs": schema["$defs"]}
                assert jsonschema.Draft7Validator(whole).is_valid(value["default"]), f"{path}: {key}"


def check_jsonschema(*arguments: str | Path) -> tuple[int, str]:
    """Run the public command on files as they are, without the planner's own reader."""
    command = [sys.executable, "-m", "check_jsonschema", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_other_tools_take_the_schema_and_the_specs() -> None:
    """The committed file fits its metaschema, and every spec fits the file."""
    assert check_jsonschema("--check-metaschema", SCHEMA) == (0, "ok -- validation done\n")
    assert check_jsonschema("--schemafile", SCHEMA, *SPECS) == (0, "ok -- validation done\n")


def test_other_tools_see_mistakes() -> None:
    """Each wrong spec is named."""
    wrong = [
        BAD / f"{name}.yaml" for name in ("unknown_key", "missing_unit", "half_a_node", "bad_date", "unknown_format")
    ]
    code, text = check_jsonschema("--schemafile", SCHEMA, *wrong)

    assert code == 1
    assert [path.name for path in wrong if f"{path}::" not in text] == []


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
    assert schema_text(SchemaOf.SPEC) == schema_text(SchemaOf.SPEC)
    assert json.loads(schema_text(SchemaOf.SPEC))["$schema"] == "http://json-schema.org/draft-07/schema#"
