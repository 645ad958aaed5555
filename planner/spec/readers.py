"""Readers of single YAML scalars: quantities with units, closed words, text, dates.

Each is put into `Annotated`; it reads the value or raises a mistake, and describes the YAML side to editors.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from planner.source import nearest
from planner.spec.refuse import UNSEEN, mistake, not_supported_yet, quoted
from planner.spec.vocabulary import SPEC_VERSION
from planner.units import DIMENSIONS, Dimension, Price, UnitError, parse_price, parse_quantity

LONGEST_TEXT = 300
"""Most characters of a name or line of text."""

UNITS = "x-units"
"""Key of a quantity's schema for the sentence on its units, which goes into the description of the field."""

KNOWN_WORDS = "known: "
"""Starts the help line that lists a closed set of words."""

_JsonSchema = dict[str, Any]


class Scalar:
    """A field read from one YAML scalar by `read`, described for editors by `json_schema`."""

    def read(self, value: object) -> object:
        """Return the value in base units, or raise a mistake."""
        raise NotImplementedError

    def json_schema(self) -> _JsonSchema:
        """Return the JSON schema of the YAML side."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> _JsonSchema:
        return self.json_schema()


@dataclass(frozen=True)
class Quantity(Scalar):
    """A quantity of one dimension, within bounds in base units; `above` and `below` exclude the bound itself."""

    dimension: str
    minimum: float = 0.0
    maximum: float = float("inf")
    above: float | None = None
    below: float | None = None
    whole: bool = False
    bounds: str = ""

    def read(self, value: object) -> float | int:
        try:
            amount = parse_quantity(value, self.dimension)
        except UnitError as error:
            raise _bad_quantity(error, self.bounds) from error
        if self._is_outside(amount):
            raise mistake("spec/out-of-range", f"`{value}` is out of range", f"must be {self.bounds}")
        if not self.whole:
            return amount
        if amount != int(amount):
            raise mistake("spec/out-of-range", f"`{value}` is not a whole number", "write a whole number")
        return int(amount)

    def json_schema(self) -> _JsonSchema:
        dimension = DIMENSIONS[self.dimension]
        texts = {"type": "string", "pattern": _pattern(self.dimension), "examples": [dimension.example]}
        if dimension.bare is None:
            return texts | {UNITS: _units(dimension)}
        number: _JsonSchema = {"type": "integer" if self.whole else "number"}
        number |= {"minimum": self.minimum} if self.above is None else {"exclusiveMinimum": self.above}
        number |= {} if self._top() is None else {"maximum": self._top()}
        return {"anyOf": [number, texts], UNITS: _units(dimension)}

    def _is_outside(self, amount: float) -> bool:
        too_low = amount < self.minimum or (self.above is not None and amount <= self.above)
        return too_low or amount > self.maximum or (self.below is not None and amount >= self.below)

    def _top(self) -> float | None:
        known = DIMENSIONS[self.dimension]
        top = min(self.maximum, known.maximum, known.bare_maximum, self.below or float("inf"))
        return None if top == float("inf") else top


@dataclass(frozen=True)
class Number(Scalar):
    """A bare number without unit: a ratio or an hourly rate."""

    minimum: float
    maximum: float
    bounds: str
    example: str

    def read(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise mistake("spec/wrong-type", f"{quoted(value)} is not a number", f"write it as `{self.example}`")
        if not self.minimum <= value <= self.maximum:
            raise mistake("spec/out-of-range", f"{quoted(value)} is out of range", f"must be {self.bounds}")
        return float(value)

    def json_schema(self) -> _JsonSchema:
        return {"type": "number", "minimum": self.minimum, "maximum": self.maximum}


@dataclass(frozen=True)
class OneOf(Scalar):
    """One word of a closed list. `planned` words belong to the grammar but are not built."""

    what: str
    words: tuple[str, ...]
    planned: tuple[str, ...] = ()

    def read(self, value: object) -> str:
        if value in self.planned:
            raise not_supported_yet(f"{self.what} `{value}`", self.words)
        if isinstance(value, str) and value in self.words:
            return value
        close = nearest(value, self.words) if isinstance(value, str) else None
        label = f"did you mean `{close}`?" if close else ""
        raise mistake(
            "spec/unknown-value", f"{quoted(value)} is no {self.what}", label, help=KNOWN_WORDS + ", ".join(self.words)
        )

    def json_schema(self) -> _JsonSchema:
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True)
class Text(Scalar):
    """Text of one line. Numbers and booleans are refused, since YAML changes their spelling (`0.20` reads as 0.2)."""

    pattern: str = ""
    must_be: str = ""

    def read(self, value: object) -> str:
        if isinstance(value, bool | int | float):
            raise mistake(
                "spec/unquoted-number", f"{quoted(value)} is a {_kind(value)}; this field is text", "put it in quotes"
            )
        if not isinstance(value, str):
            raise mistake("spec/wrong-type", f"{quoted(value)} is not text", "write one word or line")
        if not value.strip() or len(value) > LONGEST_TEXT or UNSEEN.search(value):
            raise mistake(
                "spec/bad-text", f"{quoted(value)} is not a name", f"write 1 to {LONGEST_TEXT} visible characters"
            )
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise mistake("spec/bad-text", f"{quoted(value)} is not {self.must_be}")
        return value

    def json_schema(self) -> _JsonSchema:
        return {"type": "string", "minLength": 1} | ({"pattern": f"^(?:{self.pattern})$"} if self.pattern else {})


class SpecVersion(Scalar):
    """The version of the grammar that this release reads."""

    def read(self, value: object) -> int:
        if isinstance(value, int) and value == SPEC_VERSION and not isinstance(value, bool):
            return value
        raise mistake("spec/version", f"{quoted(value)} is no version of the spec", f"write `{SPEC_VERSION}`")

    def json_schema(self) -> _JsonSchema:
        return {"const": SPEC_VERSION}


class Flag(Scalar):
    """`true` or `false`, nothing else."""

    def read(self, value: object) -> bool:
        if isinstance(value, bool):
            return value
        raise mistake("spec/wrong-type", f"{quoted(value)} is neither true nor false", "write `true` or `false`")

    def json_schema(self) -> _JsonSchema:
        return {"type": "boolean"}


class IsoDate(Scalar):
    """A calendar date as `2027-09-30`."""

    def read(self, value: object) -> datetime.date:
        text = value if isinstance(value, str) else ""
        try:
            if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
                return datetime.date.fromisoformat(text)
        except ValueError:
            pass
        raise mistake("spec/bad-date", f"{quoted(value)} is not a date", "write it as `2027-09-30`")

    def json_schema(self) -> _JsonSchema:
        return {"type": "string", "format": "date", "examples": ["2027-09-30"]}


class HardwarePrice(Scalar):
    """A price per GPU and hour, or per node and hour."""

    def read(self, value: object) -> Price:
        try:
            return parse_price(value)
        except UnitError as error:
            raise _bad_quantity(error) from error

    def json_schema(self) -> _JsonSchema:
        examples = ["1.10 USD/gpu/h", "8.80 USD/node/h"]
        units = _units(DIMENSIONS["price"])
        return {"type": "string", "pattern": _pattern("price"), "examples": examples, UNITS: units}


@dataclass(frozen=True)
class Planned(Scalar):
    """A key of the grammar whose feature is not built: refused with its place, never ignored. Empty lists pass."""

    feature: str

    def read(self, value: object) -> None:
        if value not in ([], {}):
            raise not_supported_yet(self.feature, ())

    def json_schema(self) -> _JsonSchema:
        return {"enum": [[], {}]}


def _bad_quantity(error: UnitError, bounds: str = "") -> PydanticCustomError:
    if error.kind == "negative":
        return mistake("spec/out-of-range", error.message, f"must be {bounds}" if bounds else error.hint)
    return mistake(f"spec/{error.kind}", error.message, error.hint, part=(error.start, error.end))


def _kind(value: object) -> str:
    return "true/false value" if isinstance(value, bool) else "number"


def _units(dimension: Dimension) -> str:
    """Return the sentence on the units of a dimension, empty for counts."""
    written = ", ".join(dimension.units)
    share = "; a bare 1 is 100 %" if dimension.bare is not None else ""
    return f"Unit{'s' if len(dimension.units) > 1 else ''}: {written}{share}." if written else ""


def _pattern(dimension: str) -> str:
    """Return the regular expression of a quantity's text, for editors."""
    wanted = DIMENSIONS[dimension]
    units = "|".join(re.escape(unit) for unit in wanted.units)
    unit = f"({units})" + ("" if wanted.bare is None else "?") if units else ""
    return rf"^\s*[0-9.]+([eE][+-]?[0-9]+)?{' ?[kMG]?' if wanted.scaled else ''}\s*{unit}\s*$"
