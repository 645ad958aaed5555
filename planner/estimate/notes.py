"""What to say about a deployment beside its numbers: warnings, notes on memory and formats, and assumptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.catalog import Catalog
from planner.catalog.engine import profile, version_key
from planner.estimate.answer import Assumption
from planner.estimate.deployment import Deployment, default_max_num_seqs
from planner.estimate.memory import GIB, Fit, budget_share
from planner.estimate.memory import fit as fit_of
from planner.estimate.remedies import FRACTION_NAMES
from planner.estimate.words import counted
from planner.physics.bands import OwnRows
from planner.physics.formats import weight_format
from planner.physics.kernels import is_weight_only, remnant_rate
from planner.physics.memory import FractionOf

NARROW_MARGIN_BYTES = 3 * GIB
"""Upgrades of engines moved start-up memory by this much without any setting changed (vLLM issues 23278, 33155)."""
NARROW_FREE_BYTES = GIB
HIGHEST_UTILIZATION = 0.97
PINNED_RATIO = 3.0
"""Engine versions whose caches hold this many times as many sequences are worth pinning."""
TERA = 1e12


def warnings(fit: Fit, catalog: Catalog, own: OwnRows | None) -> list[str]:
    """Return what can break the deployment, or is likely not what was meant; `own` measurements decide its speed."""
    return [
        *_unmeasured_version(fit.deployment, catalog, own),
        *_utilization(fit),
        *_margin(fit),
        *_uneven_heads(fit.deployment),
        *_next_version(fit, catalog),
    ]


def notes(fit: Fit, catalog: Catalog) -> list[str]:
    """Return how the figures come about: cache layout, formats, what the pool means."""
    d = fit.deployment
    return [
        *_latent(fit),
        *_copied_heads(d),
        *_windows(fit),
        *_pool(fit),
        *_static_share(fit),
        *_versions(fit, catalog),
        *_rates(d),
        *_not_modelled(d),
    ]


def assumptions(deployment: Deployment) -> list[Assumption]:
    """List what was filled in and what constants come from elsewhere."""
    d, asked, memory = deployment, deployment.asked, deployment.engine.memory
    catalog = f"catalog/engines/{d.engine.name}.yaml"
    default = "default"
    found = [
        Assumption("weights", f"{d.weights}, the native format", "catalog") if asked.weights is None else None,
        Assumption("kv", d.kv, default) if asked.kv is None else None,
        Assumption("engine_version", f"{d.engine.version}, the newest known", catalog)
        if asked.engine_version is None
        else None,
        Assumption("gpu_memory_utilization", f"{d.utilization:g}", f"default of {d.engine.name}")
        if asked.utilization is None and memory.fraction_of is not FractionOf.NONE
        else None,
        Assumption("max_model_len", f"{d.max_model_len}", "default: 32768, the model's own if less, input + output if more")
        if asked.max_model_len is None
        else None,
        Assumption("max_num_seqs", f"{d.max_num_seqs}", _seqs_source(d))
        if asked.max_num_seqs is None
        else None,
        Assumption("max_num_batched_tokens", f"{d.max_num_batched_tokens}", default)
        if asked.max_num_batched_tokens is None
        else None,
        Assumption("chunked_prefill", str(d.chunks).lower(), f"default of {d.engine.name} {d.engine.version}")
        if asked.chunked_prefill is None
        else None,
        Assumption("images and videos per prompt", f"{d.images} and {d.videos}", "what engines profile unless limited")
        if d.architecture.vision_patches and (asked.images is None or asked.videos is None)
        else None,
        Assumption("draft_weights", f"{d.draft.native_format}, its native format", "catalog") if d.draft else None,
        Assumption("usable memory", f"{d.device.usable_bytes / GIB:.2f} GiB, {d.entry.memory.usable_basis}", f"catalog/gpus/{d.device.name}.yaml"),
        Assumption("nodes", f"{d.layout.node_gpus} GPUs of the replica in each node", "servers of 8, or one scale-up domain")
        if d.layout.crosses_nodes
        else None,
        Assumption("memory constants", f"{d.engine.name} {d.engine.version} is computed with those of {memory.versions}", catalog)
        if d.engine.memory_extrapolated
        else None,
    ]  # fmt: skip
    return [item for item in found if item is not None]


def _seqs_source(d: Deployment) -> str:
    default = default_max_num_seqs(d.engine, d.device)
    if d.max_num_seqs < default:
        return (
            f"a step has no more tokens; the default of {d.engine.name} on this GPU is {default:,}, so write"
            f" --max-num-seqs {d.max_num_seqs}: some versions refuse to start otherwise"
        )
    return f"default of {d.engine.name} on this GPU"


def _unmeasured_version(d: Deployment, catalog: Catalog, own: OwnRows | None) -> Iterator[str]:
    """Tell when a stated version lies outside of what was measured."""
    engine, newest = d.engine, catalog.engine_file(d.engine.name).newest
    if d.asked.engine_version is None or not (engine.extrapolated or engine.memory_extrapolated):
        return
    beyond = f", newer than the newest known, {newest}" if version_key(engine.version) > version_key(newest) else ""
    speed = f"by {own}" if own is not None and own.same else f"as for {engine.versions}"
    yield (
        f"{engine.name} {engine.version} is outside of what was measured{beyond}: memory is computed as for"
        f" {engine.memory.versions}, speed {speed}"
    )


def _utilization(fit: Fit) -> Iterator[str]:
    d = fit.deployment
    if d.utilization > HIGHEST_UTILIZATION and d.engine.memory.fraction_of in (FractionOf.TOTAL, FractionOf.STATIC):
        yield (
            f"--gpu-memory-utilization {d.utilization:g}: some memory is gone before the engine starts (context, display,"
            f" other processes), so it may refuse to start; stay at {HIGHEST_UTILIZATION:g} or below, and lower"
            " --max-model-len and --max-num-seqs instead"
        )


def _margin(fit: Fit) -> Iterator[str]:
    if not fit.fits:
        return
    if fit.spare_bytes < NARROW_MARGIN_BYTES:
        yield (
            f"barely fits: {fit.spare_bytes / GIB:.1f} GiB of cache beyond one longest sequence; engine upgrades have moved"
            " start-up memory by 3 GiB, so pin the version and try an upgrade before it is rolled out"
        )
    free = fit.budget.free_bytes
    if free < NARROW_FREE_BYTES and fit.deployment.engine.memory.fraction_of is not FractionOf.NONE:
        yield f"only {max(free, 0.0) / GIB:.1f} GiB of each GPU are left free: a peak at run time can end the engine"


def _uneven_heads(d: Deployment) -> Iterator[str]:
    heads, tensor = d.architecture.n_kv_heads, d.layout.tensor
    if not d.architecture.is_mla and heads and heads % tensor and tensor % heads:
        yield f"--tp {tensor}: {heads} KV heads do not divide over {tensor} ranks; vllm and sglang refuse that"


def _next_version(fit: Fit, catalog: Catalog) -> Iterator[str]:
    """Tell when a newer range of versions would no longer start this deployment."""
    if not fit.fits:
        return
    for since, is_newer, other in _neighbours(fit, catalog):
        if is_newer and not other.fits:
            yield (
                f"an upgrade to {fit.deployment.engine.name} {since} or later does not start with these settings:"
                f" {other.short_bytes / GIB:.1f} GiB short per GPU; pin the version"
            )


def _latent(fit: Fit) -> Iterator[str]:
    d = fit.deployment
    if not d.architecture.is_mla:
        return
    if not d.engine.memory.latent_kv:
        yield (
            f"{d.engine.name} {d.engine.version} stores keys and values of every head and not the latent: many times"
            " the cache of versions from 0.7 on"
        )
        return
    ranks = d.layout.tensor
    if d.layout.decode_context > 1:
        yield (
            f"the latent cache is not divided by tensor parallelism; decode context parallelism spreads its tokens over"
            f" {d.layout.decode_context} of the {ranks} ranks"
        )
    elif ranks > 1:
        size = fit.budget.kv.global_bytes_per_token / 2**10
        yield (
            f"the latent cache is whole on every tensor rank, undivided by TP: {size:.1f} KiB per token on each of the"
            f" {ranks} GPUs; --dcp spreads it, attention data parallelism (--dp) divides the sequences"
        )


def _copied_heads(d: Deployment) -> Iterator[str]:
    heads, tensor = d.architecture.n_kv_heads, d.layout.tensor
    if not d.architecture.is_mla and 0 < heads < tensor and d.architecture.n_attention_layers:
        copies = tensor / heads
        yield (
            f"KV heads are copied: {tensor} tensor ranks share {heads} of them, so each is held {copies:g} times and"
            f" bytes per token stop falling at --tp {heads}"
        )


def _windows(fit: Fit) -> Iterator[str]:
    d, kv = fit.deployment, fit.budget.kv
    is_mixed = 0 < d.architecture.n_local_layers < d.architecture.n_attention_layers
    if kv.local_bytes_per_token:
        parts = (
            f"{kv.global_bytes_per_token / 2**10:.1f} KiB per token in layers that see all,"
            f" {kv.local_bytes_per_token / 2**10:.1f} KiB up to {counted(kv.window_tokens, 'token')} in layers with a window"
        )
        yield f"cache of a sequence: {parts}; KV tokens are concurrency x max_model_len, compare concurrency"
    elif kv.fixed_bytes and kv.global_bytes_per_token:
        yield (
            f"cache of a sequence: {kv.fixed_bytes / 2**20:,.1f} MiB of recurrent state, and"
            f" {kv.global_bytes_per_token / 2**10:.1f} KiB per token; KV tokens are concurrency x max_model_len, compare"
            " concurrency"
        )
    elif is_mixed:
        yield (
            f"{d.engine.name} {d.engine.version} keeps the whole cache of this model's {d.architecture.n_local_layers} layers"
            " with a window"
        )


def _pool(fit: Fit) -> Iterator[str]:
    if not fit.fits:
        return
    d = fit.deployment
    if d.engine.name == "llama.cpp":
        slots = d.stated_slots if d.asked.max_num_seqs else 1
        total = slots * d.max_model_len
        size = slots * fit.budget.longest_bytes / GIB
        yield (
            f"the cache is set aside for every slot at start-up: {slots} x {d.max_model_len:,} = {total:,} tokens,"
            f" {size:.1f} GiB per GPU"
        )
        return
    need = fit.sequence_bytes(d.tokens) / GIB
    yield (
        f"the KV pool of {fit.budget.kv_pool_bytes / GIB:.1f} GiB is reserved at start-up, used or not: a request of"
        f" {counted(d.tokens, 'token')} needs {need:.2f} GiB of it, and what finds no room queues silently"
    )


def _static_share(fit: Fit) -> Iterator[str]:
    if not fit.fits and fit.deployment.engine.memory.fraction_of is FractionOf.STATIC:
        yield (
            "mem_fraction_static covers weights and cache, activations and graphs live in the rest: raise it when the model"
            " does not load or the cache is too small, lower it when memory runs out at run time"
        )


def _versions(fit: Fit, catalog: Catalog) -> Iterator[str]:
    """Tell when the version of the engine decides how many sequences the cache holds."""
    now = fit.budget.max_concurrency
    for since, is_newer, other in _neighbours(fit, catalog):
        then = other.budget.max_concurrency
        if now > 0.0 and then > 0.0 and not 1 / PINNED_RATIO < then / now < PINNED_RATIO:
            yield (
                f"the cache layout depends on the version: {fit.deployment.engine.name}"
                f" {f'from {since} on' if is_newer else f'{since} up to this layout'} holds {then:.3g} longest sequences,"
                f" {fit.deployment.engine.version} holds {now:.3g}; pin the version"
            )
            return


def _rates(d: Deployment) -> Iterator[str]:
    fmt = weight_format(d.weights)
    rate = remnant_rate(d.weights, d.device)
    if rate is not None:
        wide = d.device.flops["bf16"] / TERA
        yield (
            f"{d.weights} on {d.device.name} reaches {rate / TERA:,.0f} TFLOPS, {rate / TERA / wide:.0%} of bf16"
            f" ({wide:,.0f}): choose another format".replace("% of", " % of")
        )
    elif fmt.quantised and fmt.peak != "bf16" and is_weight_only(d.weights, d.device):
        yield (
            f"{d.device.name} has no {fmt.peak} units: {d.weights} weights are stored and read at their size but"
            " multiplied in bf16 (weight-only)"
        )
    if d.entry.bf16_from == "fp16" and d.weights == "bf16":
        yield f"{d.device.name} has no bf16 units: engines run this model in fp16 there (same size)"


def _not_modelled(d: Deployment) -> Iterator[str]:
    if d.draft is not None:
        yield "speeds are those without the draft model: speculative decoding is not modelled, its memory is"
    if d.lora is not None:
        yield "speeds are those of the bare model: what adapters cost per step is not modelled, their memory is"


def _neighbours(fit: Fit, catalog: Catalog) -> Iterator[tuple[str, bool, Fit]]:
    """Yield the deployment on the ranges of memory constants after and before its own: (first version, newer, fit)."""
    d = fit.deployment
    ranges = catalog.engine_file(d.engine.name).memory
    here = [str(r) for r in ranges].index(d.engine.memory.versions)
    for index in (here + 1, here - 1):
        if 0 <= index < len(ranges):
            engine = profile(catalog.engine_file(d.engine.name), ranges[index].since)
            memory = replace(engine.memory, block_size_tokens=d.engine.memory.block_size_tokens)
            yield ranges[index].since, index > here, fit_of(replace(d, engine=replace(engine, memory=memory)))


def why(fit: Fit) -> str:
    """Return in one sentence what takes the memory and what is left for the cache."""
    d, budget = fit.deployment, fit.budget
    slots = counted(d.stated_slots, "sequence") if d.stated_slots > 1 else "one sequence"
    need = f"{slots} of {counted(d.max_model_len, 'token')} {'need' if d.stated_slots > 1 else 'needs'}"
    parts = (
        f"activations {budget.activation_bytes / GIB:.1f}, runtime {budget.runtime_bytes / GIB:.1f} and graphs"
        f" {budget.graph_bytes / GIB:.1f}"
    )
    left = f"{budget.kv_pool_bytes / GIB:.1f}" if budget.kv_pool_bytes > 0.0 else "nothing"
    return (
        f"{_weights_share(fit)}; {parts} leave {left} for the cache; {need}"
        f" {d.stated_slots * budget.longest_bytes / GIB:.1f}"
    )


def _weights_share(fit: Fit) -> str:
    """Return what weights take of the memory that the engine may use, and their largest part."""
    share, kind = budget_share(fit), fit.deployment.engine.memory.fraction_of
    part = max(fit.weight_parts, key=lambda name: fit.weight_parts[name])
    mostly = f"{part.replace('_', ' ')} {fit.weight_parts[part] / GIB:.1f}"
    is_fraction = kind in (FractionOf.TOTAL, FractionOf.STATIC)
    fraction = f"{FRACTION_NAMES[kind]} {fit.deployment.utilization:g}" if is_fraction else ""
    size, there = f"{fit.budget.weights_bytes / GIB:.1f}", f"{share / GIB:.1f} GiB"
    if fit.budget.weights_bytes > share:
        return f"weights need {size} GiB ({mostly}), {there} are there" + (f" ({fraction})" if is_fraction else "")
    return (
        f"weights take {size} of " + (f"the {there} that {fraction} allows" if is_fraction else there) + f" ({mostly})"
    )
