"""Token lengths of requests: constant, lognormal from mean and p95, or quantiles."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

from pydantic import Field, model_validator

from planner.physics.lengths import LOGNORMAL_P95_TO_MEAN_LIMIT, Lengths
from planner.spec.fields import Tokens
from planner.spec.refuse import mistake
from planner.spec.section import Section

_QUANTILES = ("p50", "p90", "p95", "p99")


class LengthSpec(Section):
    """Tokens per request: a number (constant), `{mean, p95}` (lognormal) or `{p50, p90, p95, p99[, mean]}`."""

    constant: Tokens | None = None
    """Every request has this many tokens. A bare number in place of the mapping means the same."""
    mean_tokens: Tokens | None = Field(None, alias="mean")
    """Mean tokens per request."""
    p50_tokens: Tokens | None = Field(None, alias="p50")
    """Half of the requests have at most this many tokens."""
    p90_tokens: Tokens | None = Field(None, alias="p90")
    """90 % of the requests have at most this many tokens."""
    p95_tokens: Tokens | None = Field(None, alias="p95")
    """95 % of the requests have at most this many tokens."""
    p99_tokens: Tokens | None = Field(None, alias="p99")
    """99 % of the requests have at most this many tokens."""

    @model_validator(mode="before")
    @classmethod
    def read_bare_number(cls, value: Any) -> Any:
        """Take a bare number as a constant length."""
        return {"constant": value} if isinstance(value, int | float | str) else value

    @model_validator(mode="after")
    def check_form(self) -> Self:
        """Refuse mixed forms, quantiles that fall, and a p95 that no lognormal of this mean has."""
        given = {name.removesuffix("_tokens") for name in self.model_fields_set}
        if given in ({"constant"}, {"mean", "p95"}):
            self._check_lognormal()
        elif given - {"mean"} == set(_QUANTILES):
            self._check_quantiles()
        else:
            raise mistake(
                "spec/length-form",
                f"{{{', '.join(sorted(given))}}} does not describe a length",
                "write a number, or {mean, p95}, or {p50, p90, p95, p99}",
            )
        return self

    @cached_property
    def lengths(self) -> Lengths:
        """The distribution, for the physics."""
        if self.constant is not None:
            return Lengths.constant(self.constant)
        if self.p50_tokens is None:
            return Lengths.lognormal(self.mean_tokens or 0.0, self.p95_tokens or 0.0)
        return Lengths.quantiles(dict(zip(_QUANTILES, self._quantiles(), strict=True)), self.mean_tokens)

    @property
    def mean(self) -> float:
        """Mean tokens per request."""
        return self.lengths.mean

    @property
    def p95(self) -> float:
        """The 95th percentile, in tokens."""
        return self.p95_tokens or self.quantile(0.95)

    def quantile(self, u: float) -> float:
        """Return the length in tokens that a share `u` (strictly between 0 and 1) of requests stays within."""
        return self.lengths.quantile(u)

    def _quantiles(self) -> tuple[float, ...]:
        return tuple(q or 0.0 for q in (self.p50_tokens, self.p90_tokens, self.p95_tokens, self.p99_tokens))

    def _check_lognormal(self) -> None:
        if self.mean_tokens is None or self.p95_tokens is None:
            return
        if self.p95_tokens < self.mean_tokens:
            raise mistake(
                "spec/p95-below-mean",
                f"p95 of {self.p95_tokens:g} tokens is below the mean of {self.mean_tokens:g}",
                "95 % of requests stay within p95: it is at least the mean",
                at="p95",
            )
        ratio = self.p95_tokens / self.mean_tokens
        if ratio > LOGNORMAL_P95_TO_MEAN_LIMIT:
            raise mistake(
                "spec/no-such-lognormal",
                f"p95 is {ratio:.2f} times the mean; a lognormal reaches {LOGNORMAL_P95_TO_MEAN_LIMIT:.2f} at most",
                "give quantiles instead: {p50, p90, p95, p99}",
                at="p95",
            )

    def _check_quantiles(self) -> None:
        values = self._quantiles()
        for name, low, high in zip(_QUANTILES[1:], values, values[1:], strict=False):
            if high < low:
                raise mistake(
                    "spec/quantiles-fall", f"{name} of {high:g} tokens is below the quantile before it", at=name
                )
        least = Lengths.least_mean(values)
        if self.mean_tokens is not None and not least <= self.mean_tokens <= values[-1]:
            raise mistake(
                "spec/mean-outside-quantiles",
                f"a mean of {self.mean_tokens:g} tokens does not fit these quantiles",
                f"it lies between {least:g} and {values[-1]:g}",
                at="mean",
            )
