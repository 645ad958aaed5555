"""Plans as text: canonical JSON with digests, and back."""

from __future__ import annotations

import hashlib
import json
from codecs import BOM_UTF8
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from planner.diagnostics import Diagnostic, DiagnosticError, Span
from planner.plan.page import plans_in
from planner.plan.schema import Plan

SIGNIFICANT_DIGITS = 12  # enough for any figure here, and below the noise of the last bits
ABSENT_WHEN_NULL = (
    "demand_by_period",
    "certificate",
    "growth",
    "robust",
    "infeasible",
    "preferred",
    "unsolved",
    "max_load_factor",
)
ABSENT_FROM_ITEMS_WHEN_NULL = {
    "pools": ("workloads_by_period", "serving"),
    "workloads": ("api",),
    "nodes": ("country",),
    "policies": ("at", "file", "waiver"),
}
LARGEST_FILE_BYTES = 50_000_000


def text_of(record: BaseModel) -> str:
    """Return a record as JSON text: keys in the order of its schema, one form for every number."""
    return _text(_rounded(record.model_dump(mode="json")))


def line_of(record: BaseModel) -> str:
    """Return a record as JSON text on one line, without its end."""
    return json.dumps(_rounded(record.model_dump(mode="json")), ensure_ascii=False, allow_nan=False)


def dump(plan: Plan) -> str:
    """Return a plan as JSON text: keys in the order of the schema, one form for every number."""
    return _text(_plain(plan))


def with_digest(plan: Plan) -> Plan:
    """Return the plan with the digest of everything else in it."""
    digests = plan.digests.model_copy(update={"plan": _digest(_plain(plan))})
    return plan.model_copy(update={"digests": digests})


def _digest(data: Any) -> str:
    """Return the digest of a plan as plain data: of its text while the place of the digest is empty."""
    return sha256(_text({**data, "digests": {**data["digests"], "plan": ""}}))


def sha256(text: str) -> str:
    """Return the SHA-256 of a text as `sha256:` and hexadecimal digits."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def load(path: Path) -> Plan:
    """Read a saved plan. Raises `DiagnosticError` saying what is wrong with the file."""
    return loads(path.read_bytes(), str(path))


def loads(data: bytes, path: str) -> Plan:
    """Read a plan from the bytes of the file named `path`: JSON, or a report in HTML. Raises `DiagnosticError`."""
    if len(data) > LARGEST_FILE_BYTES:
        raise _error(path, f"this file has {len(data)} bytes: no plan is that large")
    text = _of_page(data, path) if data.removeprefix(BOM_UTF8).lstrip().startswith(b"<") else data
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _error(
            path, f"this is not JSON: {error}", getattr(error, "lineno", 1), getattr(error, "colno", 1)
        ) from error
    version = raw.get("schema_version") if isinstance(raw, dict) else None
    if version != 1:
        raise _error(path, "this is not a plan of schema_version 1, as `planner solve --out plan.json` writes it")
    try:
        plan = Plan.model_validate(raw)
    except ValidationError as error:
        raise DiagnosticError(_field_error(path, e) for e in error.errors()[:20]) from error
    # The digest of the file as it is: keys that a later release adds do not make older plans look changed.
    if plan.digests.plan != _digest(raw):
        raise _error(path, "the plan was changed after it was written: its digest does not match")
    return plan


def _of_page(page: bytes, path: str) -> str:
    """Return the JSON text of the only plan in a page."""
    found = plans_in(page)
    if len(found) != 1:
        what = f"{len(found)} plans; it must hold one" if found else "no plan; only HTML reports of this program do"
        raise _error(path, f"this page holds {what}")
    return found[0]


def _text(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(plan: Plan) -> Any:
    data = _without_nulls(plan.model_dump(mode="json"), ABSENT_WHEN_NULL)
    for section, keys in ABSENT_FROM_ITEMS_WHEN_NULL.items():
        data[section] = [_without_nulls(item, keys) for item in data[section]]
    return _rounded(data)


def _without_nulls(data: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value is not None or key not in keys}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value


def _error(path: str, message: str, line: int = 1, column: int = 1) -> DiagnosticError:
    return DiagnosticError([Diagnostic("plan/unreadable", message, Span(path, line, column, column + 1))])


def _field_error(path: str, error: Any) -> Diagnostic:
    where = ".".join(str(part) for part in error["loc"])
    return Diagnostic("plan/wrong-field", f"{where}: {error['msg']}", Span(path, 1, 1, 2))
