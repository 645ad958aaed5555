"""`planner schema`: what it prints describes what the other commands print."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from cli_run import ROOT, run

from planner.cli.schema import SchemaOf

BAD = ROOT / "tests" / "data" / "bad_specs"
PLANS = sorted((ROOT / "tests" / "data" / "plans").glob("*.json"))


def validator(what: str) -> jsonschema.protocols.Validator:
    """A validator over a printed schema, in the dialect that it names."""
    schema = json.loads(run("schema", what).out)
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


@pytest.mark.parametrize("what", list(SchemaOf))
def test_schemas_describe_every_key(what: str) -> None:
    """Each names its dialect, and is strict at the top."""
    schema = validator(what).schema

    assert schema["title"].endswith("version 1")
    assert schema["additionalProperties"] is False


def test_findings_fit_their_schema() -> None:
    """The findings of every wrong spec of the tests, and those of none."""
    check = validator("diagnostics")
    found = [run("check", "--format", "json", str(path)).out for path in (BAD, ROOT / "specs" / "prod.yaml")]

    assert [error.message for text in found for error in check.iter_errors(json.loads(text))] == []
    assert not check.is_valid(json.loads(found[0]) | {"more": 1})


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_plans_fit_their_schema(path: Path) -> None:
    """Saved plans, and not those with a field of the wrong form."""
    check = validator("plan")
    plan = json.loads(path.read_text(encoding="utf-8"))

    assert [error.message for error in check.iter_errors(plan)] == []
    assert not check.is_valid(plan | {"fleet": 1})
