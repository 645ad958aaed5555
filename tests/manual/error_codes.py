"""The error codes that the package can report, found in its source, and those that the manual explains."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

from planner.units import UnitErrorKind

_AREAS = (
    "yaml|spec|catalog|model|csv|json|measurements|plan|trace|replay|solve|policy|export|scenario|sweep|usage|internal"
)
CODE = re.compile(rf"(?:{_AREAS})/(?!v[0-9])[a-z0-9]+(?:-[a-z0-9]+)*")
TEMPLATE = re.compile(rf"(?:{_AREAS})/[a-z-]*\{{[^/]*")
BUILT_CODES = {
    "spec/{error.kind}": [f"spec/{kind}" for kind in get_args(UnitErrorKind) if kind != "negative"],
    "catalog/unknown-{unknown.kind}": [f"catalog/unknown-{kind}" for kind in ("gpu", "model", "provider")],
    "catalog/ambiguous-{unknown.kind}": [f"catalog/ambiguous-{kind}" for kind in ("gpu", "model")],
    "catalog/unknown-{kind}": [
        f"catalog/unknown-{kind}"
        for kind in ("gpu", "model", "provider", "engine", "engine-version", "calibration", "entry")
    ],
    "catalog/unknown-{what}": [f"catalog/unknown-{what}" for what in ("region", "instance")],
}
"""Codes that the source puts together, by the template that stands there."""


@cache
def codes_of(package: Path) -> frozenset[str]:
    """Return every code that stands in the source of the package; raises for a template that is not known here."""
    found: set[str] = set()
    for path in sorted(package.rglob("*.py")):
        for text, is_template in _texts(ast.parse(path.read_text(encoding="utf-8"))):
            if not is_template and CODE.fullmatch(text):
                found.add(text)
            elif is_template and TEMPLATE.fullmatch(text):
                found.update(BUILT_CODES[text])
    return frozenset(found)


def listed_codes(page: str) -> set[str]:
    """Return the codes that a page has an entry for."""
    return set(re.findall(r"^\| `([^`]+/[^`]+)` \|", page, re.MULTILINE))


def _texts(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the literal texts of a module, and its templates with `{...}` where values go."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, False
        elif isinstance(node, ast.JoinedStr):
            yield ast.unparse(node)[2:-1], True
