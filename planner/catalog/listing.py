"""What `catalog list` and `catalog show` say: plain rows of numbers and text, without any layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.catalog.model import BILLION
from planner.catalog.names import MAX_SUGGESTIONS, UnknownName
from planner.catalog.offer import TERMS, CatalogOffer
from planner.catalog.store import Catalog

Row = dict[str, Any]

WIDE_BYTES = 2
GIGA = 1e9


def gpu_rows(catalog: Catalog) -> list[Row]:
    """Return one row per GPU, sorted by name. Rates are dense TFLOPS, the link one way in GB/s."""
    return [_gpu_row(catalog, name) for name in catalog.gpu_names()]


def _gpu_row(catalog: Catalog, name: str) -> Row:
    gpu = catalog.gpu(name)
    device = gpu.device()
    return {
        "name": name,
        "class": gpu.architecture_class or gpu.architecture,
        "memory_gib": gpu.memory.usable_gib,
        "bandwidth_tb_s": gpu.memory.bandwidth_tb_s,
        "bf16_tflops": gpu.dense_tflops[gpu.bf16_from],
        "fp8_tflops": gpu.dense_tflops.get("fp8") if "fp8" in gpu.native else None,
        "fp4_tflops": gpu.dense_tflops.get("fp4") if "fp4" in gpu.native else None,
        "link": gpu.link.kind,
        "link_gb_s": gpu.link.gb_s_one_way,
        "scale_up": device.scale_up_gpus,
        "tdp_w": gpu.tdp_w or None,
        "confidence": gpu.confidence,
    }


def model_rows(catalog: Catalog) -> list[Row]:
    """Return one row per model, sorted by name. Parameters are in billions, KV in bytes per token at 16 bits."""
    return [_model_row(catalog, name) for name in catalog.model_names()]


def _model_row(catalog: Catalog, name: str) -> Row:
    model = catalog.model(name)
    return {
        "name": name,
        "family": model.family,
        "params_b": round(model.parameters.total / BILLION, 3),
        "active_b": round(model.parameters.active / BILLION, 3),
        "layers": model.layers,
        "attention": model.attention.kind,
        "kv_bytes_per_token": WIDE_BYTES * model.attention.kv_elements_per_token,
        "native": model.native_format,
        "max_position": model.max_position,
    }


def offer_rows(catalog: Catalog, provider: str | None = None, gpu: str | None = None) -> list[Row]:
    """Return one row per offer of modelled GPUs, prices in USD per node and hour. Raises `UnknownName`."""
    wanted = catalog.gpu(gpu).name if gpu else None
    providers = [provider] if provider else list(catalog.providers())
    offers = (o for p in providers for o in catalog.offers(p))
    return [_offer_row(o) for o in offers if wanted in (None, o.gpu)]


def _offer_row(offer: CatalogOffer) -> Row:
    row: Row = {
        "provider": offer.provider,
        "region": offer.region,
        "country": offer.country or None,
        "instance": offer.instance,
        "gpu": offer.gpu,
        "gpus": offer.gpus_per_node,
    }
    row |= {term: offer.prices_usd_per_node_h.get(term) for term in TERMS}
    return row | {"priced": offer.price_date, "basis": offer.basis, "doubts": len(offer.doubts)}


def describe(catalog: Catalog, name: str) -> tuple[str, Mapping[str, Any]]:
    """Return the kind of the thing called `name` and all that the catalog says about it.

    GPUs, models, engines, providers and instance types are tried in this order. Raises `UnknownName`.
    """
    misses: list[UnknownName] = []
    for kind, describe_one in (
        ("gpu", _describe_gpu),
        ("model", _describe_model),
        ("engine", _describe_engine),
        ("provider", _describe_provider),
    ):
        try:
            return kind, describe_one(catalog, name)
        except UnknownName as unknown:
            misses.append(unknown)
    offers = list(_offers_called(catalog, name))
    if offers:
        return "instance", {"instance": offers[0].instance, "offers": [_full_offer(o) for o in offers]}
    raise next((m for m in misses if m.ambiguous or m.reason), _unknown(name, misses))


def _unknown(name: str, misses: list[UnknownName]) -> UnknownName:
    suggestions = dict.fromkeys(s for m in misses for s in m.suggestions)
    return UnknownName("entry", name, tuple(suggestions)[:MAX_SUGGESTIONS])


def _describe_gpu(catalog: Catalog, name: str) -> Row:
    gpu = catalog.gpu(name)
    formats = sorted(gpu.flops())
    ridges = {f: round(gpu.ridge_flop_per_byte(f), 1) for f in formats}
    offers = [o for p in catalog.providers() for o in catalog.offers(p) if o.gpu == gpu.name]
    providers = sorted({o.provider for o in offers})
    return gpu.model_dump(exclude_defaults=True) | {"ridge_flop_per_byte": ridges, "sold_by": providers}


def _describe_model(catalog: Catalog, name: str) -> Row:
    model = catalog.model(name)
    total = model.parameters.total
    derived = {"weights_gb_at_16_bits": round(total * WIDE_BYTES / GIGA, 2)}
    derived["kv_bytes_per_token_at_16_bits"] = WIDE_BYTES * model.attention.kv_elements_per_token
    return model.model_dump(exclude_defaults=True) | {"derived": derived}


def _describe_engine(catalog: Catalog, name: str) -> Row:
    profile = catalog.engine(name)
    return catalog.engine_file(profile.name).model_dump(exclude_none=True)


def _describe_provider(catalog: Catalog, name: str) -> Row:
    offers = catalog.offers(name)
    provider = offers[0].provider if offers else name
    return {
        "provider": provider,
        "offers": len(offers),
        "price_lists": {
            n: p.model_dump(exclude_defaults=True) for n, p in catalog.offer_file(provider).price_lists.items()
        },
        "gpus": sorted({o.gpu for o in offers}),
        "regions": dict(sorted(catalog.regions(provider).items())),
    }


def _offers_called(catalog: Catalog, name: str) -> Iterator[CatalogOffer]:
    for provider in catalog.providers():
        for offer in catalog.all_offers(provider):
            if offer.instance.casefold() == name.strip().casefold():
                yield offer


def _full_offer(offer: CatalogOffer) -> Row:
    return {
        "provider": offer.provider,
        "region": offer.region,
        "country": offer.country,
        "gpu": offer.gpu,
        "gpus_per_node": offer.gpus_per_node,
        "prices_usd_per_node_h": dict(offer.prices_usd_per_node_h),
        "unsold_usd_per_node_h": dict(offer.unsold_usd_per_node_h),
        "price_date": offer.price_date,
        "basis": offer.basis,
        "source": offer.source,
        "doubts": list(offer.doubts),
    }
