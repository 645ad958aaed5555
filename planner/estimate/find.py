"""Searches: the most sequences, the longest context, the fewest GPUs, the largest rate. The answer is always tried."""

from __future__ import annotations

from dataclasses import replace

from planner.estimate.answer import Found, Search
from planner.estimate.deployment import Deployment, legal_tensor_degrees
from planner.estimate.memory import GIB, Fit, fit, longest_context
from planner.estimate.words import counted

MOST_TENSOR = 64


def max_concurrency(held: Fit) -> tuple[Found, Deployment]:
    """Return how many requests the memory holds at once: of the stated lengths, else longest sequences."""
    d = held.deployment
    is_stated = d.asked.input_tokens is not None or d.asked.output_tokens is not None
    tokens = d.tokens if is_stated else d.max_model_len
    count = held.sequences(tokens) if held.fits else 0
    stated = f"{d.input_tokens:,} + {d.output_tokens:,} tokens"
    what = stated if is_stated else f"{counted(tokens, 'token')} (max_model_len)"
    found = Found(Search.MAX_CONCURRENCY, count or None, f"{counted(count, 'sequence')} of {what} at once, by memory")
    if not is_stated:
        output = min(d.output_tokens, tokens - 1) or 1
        d = replace(d, input_tokens=max(tokens - output, 1), output_tokens=output)
    return found, d


def max_model_len(deployment: Deployment) -> tuple[Found, Deployment]:
    """Return the longest sequence with which the deployment fits, and the deployment with it."""
    tokens = longest_context(deployment)
    own = deployment.architecture.max_position
    if not tokens:
        return Found(Search.MAX_MODEL_LEN, None, "no length fits: the weights leave no room for a cache"), deployment
    limit = " (all that the model has)" if tokens == own else f" of the {own:,} that the model has"
    found = Found(Search.MAX_MODEL_LEN, tokens, f"max_model_len {tokens:,}{limit}")
    return found, _at_length(deployment, tokens)


def _at_length(deployment: Deployment, tokens: int) -> Deployment:
    """Return the deployment with that longest sequence; default lengths that do not fit into it are cut."""
    d = deployment.changed(max_model_len=tokens)
    if d.tokens <= tokens:
        return d
    output = max(1, min(d.output_tokens, tokens // 4))
    return replace(d, input_tokens=max(1, tokens - output), output_tokens=output)


def min_tensor(deployment: Deployment) -> tuple[Found, Deployment]:
    """Return the least tensor-parallel degree that fits, with all that were tried; the last one where none does."""
    tried: list[dict[str, object]] = []
    last = deployment
    for degree in legal_tensor_degrees(deployment.architecture):
        if degree > MOST_TENSOR:
            break
        expert = degree * deployment.layout.attention_data if deployment.layout.expert > 1 else 1
        layout = replace(deployment.layout, tensor=degree, expert=expert)
        if degree % layout.decode_context:
            continue
        last = deployment.changed(layout=layout)
        held = fit(last)
        tried.append({"tensor_parallel": degree, "fits": held.fits, "short_bytes": held.short_bytes})
        if held.fits:
            sentence = f"--tp {degree} is the least that fits ({_tried(tried[:-1])})"
            return Found(Search.MIN_TP, degree, sentence, tried), last
    return Found(Search.MIN_TP, None, f"no tensor-parallel degree fits ({_tried(tried)})", tried), last


def _tried(tried: list[dict[str, object]]) -> str:
    if not tried:
        return "nothing less is possible"
    short = [f"TP{row['tensor_parallel']} {float(str(row['short_bytes'])) / GIB:.1f} GiB short" for row in tried]
    return ", ".join(short)
