"""Checks across sections: names that must exist or be unique, and numbers that do not fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from planner.diagnostics import Diagnostic, Severity, Span
from planner.physics.lengths import is_surely_within, joint_share_above
from planner.source import Document, YamlPath, nearest
from planner.spec.fields import MOST_REQUESTS_PER_S, is_name
from planner.spec.fleet import FleetSpec
from planner.spec.readers import LONGEST_TEXT
from planner.spec.refuse import quoted
from planner.spec.vocabulary import DEFAULT_MAX_MODEL_LEN_TOKENS, SPOT
from planner.spec.workload import WorkloadSpec

TRUNCATION_ERROR_SHARE = 0.5  # a plan for a workload that is mostly cut is a plan for another workload
TRUNCATION_WARNING_SHARE = 0.01
"""Share of requests that may exceed the longest sequence before a warning."""

_MOST_CHOICES = 500
SpanOf = Callable[[YamlPath], Span]


def check_names(data: Mapping[str, Any], document: Document) -> Iterator[Diagnostic]:
    """Check the names in the plain data, so that mistakes elsewhere hide nothing here."""
    models = _mapping(data.get("models"))
    workloads = _mapping(data.get("workloads"))
    yield from _check_own_names("models", models, document)
    yield from _check_own_names("workloads", workloads, document)
    yield from _check_models_named(models, document)
    named = [*((("workloads", name), workload) for name, workload in workloads.items()), *_deployed(data)]
    yield from _check_models_exist(named, _mapping(document.data.get("models")), document)
    supply = _mapping(data.get("supply"))
    yield from _check_repeats(supply.get("offers"), ("supply", "offers"), "name", "offer", document)
    yield from check_policy_names(data, document)


def check_policy_names(data: Mapping[str, Any], document: Document) -> Iterator[Diagnostic]:
    """Check that policies of one file have names of their own."""
    yield from _check_repeats(data.get("policies"), ("policies",), "id", "policy", document)


def check_plausibility(spec: FleetSpec, span: Callable[..., Span]) -> Iterator[Diagnostic]:
    """Warn about numbers that are legal and do not fit together."""
    served = {workload.model for workload in spec.workloads.values()}
    for name in spec.models:
        if name not in served:
            message = f"no workload uses model `{name}`: it gets no pool"
            yield _warning("spec/unused-model", message, span(("models", name), key=True))
    for name, workload in spec.workloads.items():
        yield from _check_daily_tokens(name, workload, span)
        yield from _check_truncation(name, workload, spec, span)
    yield from _check_deployed_offers(spec, span)
    yield from _check_policy_workloads(spec, span)
    yield from _check_growth(spec, span)
    if any(workload.spot is not None for workload in spec.workloads.values()):
        return
    for index, offer in enumerate(spec.supply.offers):
        if SPOT in offer.terms:
            yield _warning(
                "spec/unused-spot",
                "no workload allows spot nodes: none is bought",
                span(("supply", "offers", index, "terms")),
                "give a workload `spot: {max_share: 50 %}`, or remove the term",
            )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _check_own_names(section: str, named: Mapping[str, Any], document: Document) -> Iterator[Diagnostic]:
    for name in named:
        if not is_name(name):
            yield Diagnostic(
                "spec/bad-text",
                f"{quoted(name)} cannot be a name",
                document.span((section, name), key=True),
                label=_name_rule(name),
            )


def _name_rule(name: str) -> str:
    """Say what a name that is none has to be."""
    if len(name) > LONGEST_TEXT:
        return f"use up to {LONGEST_TEXT} characters"
    return "start with a letter, a digit or _, and go on with letters, digits, spaces and . _ : / + @ -"


def _check_models_named(models: Mapping[str, Any], document: Document) -> Iterator[Diagnostic]:
    for name, model in models.items():
        if isinstance(model, dict) and "use" not in model and "config" not in model:
            yield Diagnostic(
                "spec/missing-key",
                f"`{name}` lacks `use`",
                document.span(("models", name), key=True),
                label="add `use` with a model name of the catalog, or `config` with the path of a config.json",
            )
        if isinstance(model, dict) and "use" in model and "config" in model:
            yield Diagnostic(
                "spec/conflicting-keys",
                f"`{name}` has both `use` and `config`",
                document.span(("models", name), key=True),
                label="keep one of them",
            )


def _deployed(data: Mapping[str, Any]) -> Iterator[tuple[YamlPath, Any]]:
    items = data.get("deployed")
    yield from ((("deployed", i), item) for i, item in enumerate(items if isinstance(items, list) else []))


def _check_models_exist(
    named: Sequence[tuple[YamlPath, Any]], models: Mapping[str, Any], document: Document
) -> Iterator[Diagnostic]:
    for path, section in named:
        wanted = _mapping(section).get("model")
        if not isinstance(wanted, str) or wanted in models or not models:
            continue
        close = nearest(wanted, models) if len(models) <= _MOST_CHOICES else None
        known = ", ".join(list(models)[:10]) + (", ..." if len(models) > 10 else "")
        yield Diagnostic(
            "spec/unknown-model",
            f"{quoted(wanted)} is not under `models`",
            document.span((*path, "model")),
            label=f"did you mean `{close}`?" if close else "",
            help=(f"models here: {known}",),
        )


def _check_deployed_offers(spec: FleetSpec, span: Callable[..., Span]) -> Iterator[Diagnostic]:
    labels = spec.supply.offer_labels()
    for index, entry in enumerate(spec.deployed):
        if entry.offer not in labels:
            close = nearest(entry.offer, labels)
            yield Diagnostic(
                "spec/unknown-offer",
                f"{quoted(entry.offer)} is no entry of `supply.offers`",
                span(("deployed", index, "offer")),
                label=f"did you mean `{close}`?" if close else "",
                help=(f"offers here: {', '.join(labels[:10])}",),
            )


def _check_growth(spec: FleetSpec, span: Callable[..., Span]) -> Iterator[Diagnostic]:
    """Check that growth of single workloads has months to be planned for, and that no fleet is to be kept meanwhile."""
    if spec.growth is not None:
        if spec.deployed:
            yield Diagnostic(
                "spec/growth-deployed",
                "a plan of months ahead does not keep what is deployed",
                span(("deployed",), key=True),
                label="remove it, or `growth`",
            )
        yield from _check_grown_demand(spec, span)
        return
    for name, workload in spec.workloads.items():
        if workload.growth is not None:
            yield Diagnostic(
                "spec/growth-alone",
                f"workload `{name}` grows, and nothing says for how many months to plan",
                span(("workloads", name, "growth"), key=True),
                label="add `growth: {rate: 0 %/month, horizon: 12 months}` at the top level",
            )


def _check_grown_demand(spec: FleetSpec, span: Callable[..., Span]) -> Iterator[Diagnostic]:
    """Check that demand stays within what a spec may ask for."""
    assert spec.growth is not None
    months = spec.growth.horizon_months - 1
    for name, workload in spec.workloads.items():
        rate = workload.traffic.peak_requests_per_s() * (1.0 + spec.growth_of(name)) ** months
        if rate > MOST_REQUESTS_PER_S:
            yield Diagnostic(
                "spec/growth-demand",
                f"workload `{name}` grows to {rate:.2g} req/s in month {months + 1}, more than {MOST_REQUESTS_PER_S:g}",
                span(("growth",) if workload.growth is None else ("workloads", name, "growth"), key=True),
                label="plan fewer months, or a lower rate of growth",
            )


def _check_policy_workloads(spec: FleetSpec, span: Callable[..., Span]) -> Iterator[Diagnostic]:
    for index, policy in enumerate(spec.policies):
        for position, name in enumerate(policy.workloads):
            if not any(fnmatchcase(workload, name) for workload in spec.workloads):
                close = nearest(name, spec.workloads)
                yield Diagnostic(
                    "spec/unknown-workload",
                    f"{quoted(name)} matches no workload of this spec",
                    span(("policies", index, "workloads", position)),
                    label=f"did you mean `{close}`?" if close else "",
                    help=(f"workloads here: {', '.join(list(spec.workloads)[:10])}",),
                )


def _check_repeats(items: object, path: YamlPath, key: str, what: str, document: Document) -> Iterator[Diagnostic]:
    first: dict[str, Span] = {}
    for index, item in enumerate(items if isinstance(items, list) else []):
        name = _mapping(item).get(key)
        if not isinstance(name, str):
            continue
        span = document.span((*path, index, key))
        if name in first:
            yield Diagnostic(
                "spec/duplicate-name",
                f"two {what.removesuffix('y') + 'ies' if what.endswith('y') else what + 's'} are called `{name}`",
                span,
                label="give it another name",
                related=((first[name], "first here"),),
            )
        first.setdefault(name, span)


def _check_daily_tokens(name: str, workload: WorkloadSpec, span: Callable[..., Span]) -> Iterator[Diagnostic]:
    daily = workload.traffic.daily_requests()
    if daily is None or not workload.traffic.daily_tokens_disagree():
        return
    larger = "input" if daily[0] > daily[1] else "output"
    yield _warning(
        "spec/tokens-disagree",
        f"input tokens mean {daily[0]:,.0f} requests a day, output tokens {daily[1]:,.0f}",
        span(("workloads", name, "traffic", "tokens_per_day")),
        f"the larger is used (`{larger}`); tokens per day over the mean length should agree within 5 %",
    )


def _check_truncation(
    name: str, workload: WorkloadSpec, spec: FleetSpec, span: Callable[..., Span]
) -> Iterator[Diagnostic]:
    limit = spec.models[workload.model].max_model_len or DEFAULT_MAX_MODEL_LEN_TOKENS
    traffic = workload.traffic
    lengths = traffic.input_tokens.lengths, traffic.output_tokens.lengths
    if is_surely_within(*lengths, limit, TRUNCATION_WARNING_SHARE):
        return
    share = joint_share_above(*lengths, limit)
    if share > TRUNCATION_ERROR_SHARE:
        yield Diagnostic(
            "spec/too-long",
            f"{share * 100:.0f} % of the requests of `{name}` are longer than max_model_len {limit:,}",
            span(("workloads", name, "traffic", "input_tokens")),
            label=f"raise `max_model_len` of model `{workload.model}`, or shorten the lengths",
        )
    elif share > TRUNCATION_WARNING_SHARE:
        yield _warning(
            "spec/truncated-lengths",
            f"{share * 100:.2g} % of the requests of `{name}` are longer than max_model_len {limit:,} and are cut",
            span(("workloads", name, "traffic", "input_tokens")),
            f"raise `max_model_len` of model `{workload.model}`, or shorten the lengths",
        )


def _warning(code: str, message: str, span: Span, label: str = "") -> Diagnostic:
    return Diagnostic(code, message, span, Severity.WARNING, label)
