"""Traffic of a workload: how many requests, when, how long, and how much of the prompt is cached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, model_validator

from planner.spec.fields import Line, PerDay, Rate, Share, Tokens
from planner.spec.lengths import LengthSpec
from planner.spec.readers import Number, Planned
from planner.spec.refuse import mistake
from planner.spec.section import Section
from planner.units import SECONDS_PER_DAY

_HOURS = (24, 168)
_ARRIVALS = Number(0.0, 1000.0, "from 0 to 1000", "1.2")
_DRIFT = Number(1.0, 100.0, "from 1 to 100", "1.6")
_HOURLY_RATE = Number(0.0, 1e7, "from 0 to 1e7 req/s", "5.2")
_AGREEMENT = 0.05

HourlyRate = Annotated[float, _HOURLY_RATE]


def _check_hours(rates: tuple[float, ...]) -> tuple[float, ...]:
    if len(rates) not in _HOURS:
        raise mistake("spec/hourly-length", f"`hourly` has {len(rates)} values", "give 24 (one day) or 168 (one week)")
    if not any(rates):
        raise mistake("spec/out-of-range", "`hourly` is zero all day", "give at least one hour above zero")
    return rates


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        text = f"`{name}` is no time zone that is known here"
        raise mistake("spec/unknown-timezone", text, "name one such as `Europe/Berlin`") from None
    return name


def _from_burstiness(value: object) -> str:
    """Point from the benchmark's `burstiness` to its inverse, which this grammar uses."""
    cv2 = f"{1 / value:.4g}" if isinstance(value, int | float) and 0.001 <= value <= 1000.0 else "..."
    return f"it is the inverse of `arrival_cv2`: write `arrival_cv2: {cv2}`"


class RateSpec(Section):
    """Requests per second: the highest, and optionally the mean over the day."""

    peak: Rate
    """Highest rate to serve, such as `12 req/s`."""
    mean: Rate | None = None
    """Mean rate over the day; without it, money per token is printed at peak load."""

    @model_validator(mode="before")
    @classmethod
    def read_bare_rate(cls, value: Any) -> Any:
        """Take a bare rate as the peak."""
        return value if isinstance(value, dict) else {"peak": value}

    @model_validator(mode="after")
    def check_order(self) -> Self:
        """Refuse a mean above the peak."""
        if self.mean is not None and self.mean > self.peak:
            raise mistake(
                "spec/mean-above-peak", f"the mean of {self.mean:g} req/s is above the peak of {self.peak:g}", at="mean"
            )
        return self


class TokensPerDaySpec(Section):
    """Tokens of one day, spread evenly over it."""

    input: PerDay
    """Prompt tokens per day, such as `380M`."""
    output: PerDay
    """Generated tokens per day, such as `20M`."""


class SharedPrefixSpec(Section):
    """A prompt prefix that many requests share, kept in the prefix cache."""

    tokens: Tokens
    """Length of the prefix in tokens; `input_tokens` includes it."""
    hit_rate: Share
    """Share of requests that find the prefix cached."""


class TrafficSpec(Section):
    """Requests of a workload. Exactly one of rate, hourly, tokens_per_day and requests_per_day says how many."""

    FOREIGN_KEYS: ClassVar[Mapping[str, Callable[[object], str]]] = {"burstiness": _from_burstiness}
    DEMANDS: ClassVar[tuple[str, ...]] = ("rate", "hourly", "tokens_per_day", "requests_per_day", "trace")

    rate: RateSpec | None = None
    """Requests per second: `12 req/s`, or `{peak: 12 req/s, mean: 5 req/s}`."""
    hourly: Annotated[tuple[HourlyRate, ...], AfterValidator(_check_hours)] | None = None
    """24 or 168 hourly mean rates in req/s, the first from midnight (Monday)."""
    timezone: Annotated[Line, AfterValidator(_check_zone)] = "UTC"
    """Time zone of `hourly`."""
    tokens_per_day: TokensPerDaySpec | None = None
    """Tokens per day, even over the day."""
    requests_per_day: PerDay | None = None
    """Requests per day, such as `60k`, even over the day."""
    trace: Annotated[None, Planned("traffic from a trace")] = None
    """Arrivals and lengths from a file. Not supported yet."""
    input_tokens: LengthSpec
    """Prompt tokens per request, the shared prefix included."""
    output_tokens: LengthSpec
    """Generated tokens per request."""
    shared_prefix: SharedPrefixSpec | None = None
    """A prefix that requests share; or give `cached_input`."""
    cached_input: Share | None = None
    """Share of prompt tokens found in the prefix cache; or give `shared_prefix`."""
    arrival_cv2: Annotated[float, _ARRIVALS] = 1.0
    """Squared coefficient of variation of the times between arrivals; 1 is Poisson."""
    peak_to_mean_30s: Annotated[float, _DRIFT] = 1.0
    """Highest rate over 30 seconds divided by the mean of its hour; capacity is divided by it."""

    @model_validator(mode="after")
    def check_demand(self) -> Self:
        """Require exactly one kind of demand, and at most one of shared prefix and cached share."""
        kinds = [kind for kind in self.DEMANDS if kind in self.model_fields_set]
        known = ", ".join(f"`{kind}`" for kind in self.DEMANDS[:-1])
        if not kinds:
            raise mistake("spec/no-demand", "this traffic does not say how many requests there are", f"add {known}")
        if len(kinds) > 1:
            both = " and ".join(f"`{kind}`" for kind in kinds)
            raise mistake("spec/conflicting-keys", f"{both} both say how many requests", "keep one", at=kinds[1])
        if "timezone" in self.model_fields_set and self.hourly is None:
            raise mistake("spec/conflicting-keys", "`timezone` says when `hourly` starts", "remove it", at="timezone")
        self._check_cache()
        return self

    def peak_requests_per_s(self) -> float:
        """Return the rate to plan for, without headroom and drift, in requests per second."""
        if self.rate is not None:
            return self.rate.peak
        if self.hourly is not None:
            return max(self.hourly)
        return self._per_day() / SECONDS_PER_DAY

    def times(self, factor: float) -> TrafficSpec:
        """Return the same traffic with so many times the requests, however they are given."""
        daily = self.tokens_per_day
        changed = {
            "rate": None
            if self.rate is None
            else RateSpec.model_construct(
                peak=self.rate.peak * factor, mean=None if self.rate.mean is None else self.rate.mean * factor
            ),
            "hourly": None if self.hourly is None else tuple(rate * factor for rate in self.hourly),
            "tokens_per_day": None
            if daily is None
            else TokensPerDaySpec.model_construct(input=daily.input * factor, output=daily.output * factor),
            "requests_per_day": None if self.requests_per_day is None else self.requests_per_day * factor,
        }
        return self.model_copy(update=changed)

    def mean_requests_per_s(self) -> float | None:
        """Return the mean rate over the day in requests per second, None when only a peak is given."""
        if self.rate is not None:
            return self.rate.mean
        if self.hourly is not None:
            return sum(self.hourly) / len(self.hourly)
        return self._per_day() / SECONDS_PER_DAY

    @property
    def is_even(self) -> bool:
        """Tell whether demand is a daily amount, even over the day."""
        return self.tokens_per_day is not None or self.requests_per_day is not None

    def cached_input_share(self) -> float:
        """Return the mean share of prompt tokens that the prefix cache holds, from 0 to 1."""
        if self.shared_prefix is None:
            return self.cached_input or 0.0
        return self.shared_prefix.tokens * self.shared_prefix.hit_rate / self.input_tokens.mean

    def daily_requests(self) -> tuple[float, float] | None:
        """Return requests per day as input and as output tokens state them; None unless given by tokens per day."""
        if self.tokens_per_day is None:
            return None
        return (
            self.tokens_per_day.input / self.input_tokens.mean,
            self.tokens_per_day.output / self.output_tokens.mean,
        )

    def daily_tokens_disagree(self) -> bool:
        """Tell whether input and output tokens per day state request counts more than 5 % apart."""
        daily = self.daily_requests()
        return daily is not None and max(daily) > min(daily) * (1 + _AGREEMENT)

    def _per_day(self) -> float:
        daily = self.daily_requests()
        return max(daily) if daily is not None else self.requests_per_day or 0.0

    def _check_cache(self) -> None:
        if self.shared_prefix is None:
            return
        if self.cached_input is not None:
            raise mistake(
                "spec/conflicting-keys",
                "`shared_prefix` and `cached_input` both say what is cached",
                "keep one",
                at="cached_input",
            )
        if self.cached_input_share() >= 1.0:
            raise mistake(
                "spec/out-of-range",
                f"a prefix of {self.shared_prefix.tokens:g} tokens is longer than the mean prompt"
                f" of {self.input_tokens.mean:g}",
                "`input_tokens` includes the shared prefix",
                at="shared_prefix",
            )
