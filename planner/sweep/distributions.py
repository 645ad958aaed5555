"""Distributions of uncertain inputs. A draw depends on the seed, the number of its scenario and its key, and on nothing else.

The uniform number behind it is the first 52 bits of a SHA-256 sum, so that it is the same on every machine and in every release.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from types import MappingProxyType

DIGITS = 6
"""Significant digits of a drawn value."""
_LONGEST = 1e15
"""Numbers from here on are written with an exponent."""
_BITS = 52
"""So many that half of the last one is still told from zero and one."""
_LEAST = 0.5**_BITS
_PARAMETER = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)", re.ASCII)
_SCALES = MappingProxyType({"k": 1e3, "M": 1e6, "G": 1e9})
_STANDARD = NormalDist()
Quantile = Callable[[Sequence[float], float], float]


class DistributionError(ValueError):
    """A distribution that cannot be drawn from, in one line."""


@dataclass(frozen=True)
class Kind:
    """A family of distributions: its parameters, its quantiles, and whether parameters make one of it.

    A parameter named `spread` is the standard deviation over the mean, a share; all others have the unit of the value. One that
    `has_ends` draws nothing below its first parameter and nothing above its last.
    """

    parameters: tuple[str, ...]
    quantile: Quantile
    is_one: Callable[[Sequence[float]], bool]
    condition: str
    has_ends: bool = False


def _lognormal(parameters: Sequence[float], u: float) -> float:
    mean, spread = parameters
    variance = math.log1p(spread**2)
    return mean * math.exp(math.sqrt(variance) * _STANDARD.inv_cdf(u) - variance / 2.0)


def _normal(parameters: Sequence[float], u: float) -> float:
    """Return a quantile of the part of a normal distribution that is above zero."""
    mean, spread = parameters
    below_zero = _STANDARD.cdf(-1.0 / spread)
    return mean * (1.0 + spread * _STANDARD.inv_cdf(below_zero + u * (1.0 - below_zero)))


def _uniform(parameters: Sequence[float], u: float) -> float:
    low, high = parameters
    return low + u * (high - low)


def _triangular(parameters: Sequence[float], u: float) -> float:
    low, mode, high = parameters
    left = (mode - low) / (high - low)
    if u < left:
        return low + math.sqrt(u * (high - low) * (mode - low))
    return high - math.sqrt((1.0 - u) * (high - low) * (high - mode))


def _has_spread(parameters: Sequence[float]) -> bool:
    mean, spread = parameters
    return mean > 0.0 and 0.0 < spread <= 10.0


def _rises(parameters: Sequence[float]) -> bool:
    return list(parameters) == sorted(parameters) and parameters[0] < parameters[-1]


_SPREAD = "the mean and the spread must be above zero, the spread at most 1000 %"
_RISING = "the parameters must rise"
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "lognormal": Kind(("mean", "spread"), _lognormal, _has_spread, _SPREAD),
        "normal": Kind(("mean", "spread"), _normal, _has_spread, _SPREAD),
        "triangular": Kind(("low", "mode", "high"), _triangular, _rises, _RISING, True),
        "uniform": Kind(("low", "high"), _uniform, _rises, _RISING, True),
    }
)


@dataclass(frozen=True)
class Distribution:
    """A distribution with its parameters, and the unit of what is drawn from it, empty for a bare number."""

    name: str
    parameters: tuple[float, ...]
    unit: str

    def value(self, u: float) -> str:
        """Return the quantile at `u`, above 0 and below 1, as YAML."""
        return written(KINDS[self.name].quantile(self.parameters, u), self.unit)

    @property
    def typical(self) -> tuple[str, ...]:
        """Values to check before any is drawn: both ends, or the median where there are none."""
        if KINDS[self.name].has_ends:
            return self.value(_LEAST), self.value(1.0 - _LEAST)
        return (self.value(0.5),)


def written(number: float, unit: str) -> str:
    """Return a quantity as YAML, with `DIGITS` significant digits."""
    text = f"{number:.{DIGITS}g}"
    if "e+" in text and abs(number) < _LONGEST:
        text = f"{float(text):.0f}"
    return f"{text} {unit}".strip()


def uniform_of(seed: int, scenario: int, key: str) -> float:
    """Return the number above 0 and below 1 that a draw is made of."""
    drawn = hashlib.sha256(f"{seed}\n{scenario}\n{key}".encode()).digest()
    return ((int.from_bytes(drawn[:8], "big") >> (64 - _BITS)) + 0.5) / 2.0**_BITS


def unit_of(text: str) -> str:
    """Return the unit of a quantity, empty for a bare number and for what is none."""
    match = _PARAMETER.fullmatch(text.strip())
    return "" if match is None else _scaled(match[2])[1]


def read_distribution(name: str, parameters: Sequence[str], own_unit: str) -> Distribution:
    """Read the parameters of a distribution; where none has a unit, they have `own_unit`. Raises `DistributionError`."""
    kind = KINDS.get(name)
    if kind is None:
        raise DistributionError(f"there is no distribution `{name}`; write {', '.join(KINDS)}")
    wanted = f"{name}({', '.join(kind.parameters)})"
    if len(parameters) != len(kind.parameters):
        raise DistributionError(f"`{name}` takes {len(kind.parameters)} parameters: {wanted}")
    values: list[float] = []
    units: set[str] = set()
    for meaning, text in zip(kind.parameters, parameters, strict=True):
        match = _PARAMETER.fullmatch(text.strip())
        if match is None:
            raise DistributionError(f"`{text.strip()}` is not the {meaning} of {wanted}: write a number, with its unit")
        scale, unit = _scaled(match[2])
        if meaning == "spread":
            if unit not in ("", "%"):
                raise DistributionError(f"`{text.strip()}` is no spread: it is a share of the mean, such as `30 %`")
            scale *= 0.01 if unit else 1.0
        elif unit:
            units.add(unit)
        values.append(float(match[1]) * scale)
    if len(units) > 1:
        raise DistributionError(f"one unit for all, not {' and '.join(sorted(units))}")
    if not kind.is_one(values):
        raise DistributionError(f"no {wanted}: {kind.condition}")
    return Distribution(name, tuple(values), next(iter(units), own_unit))


def _scaled(rest: str) -> tuple[float, str]:
    """Return the factor that `k`, `M` or `G` before a unit stands for, and the unit."""
    if rest[:1] in _SCALES and rest[1:2] in ("", " "):
        return _SCALES[rest[0]], rest[1:].strip()
    return 1.0, " ".join(rest.split())
