"""Resolve the models of a spec: architecture, engine, formats and the quality that each keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.candidates.types import Assumption, ResolvedModel
from planner.catalog import Catalog
from planner.catalog.model import BILLION
from planner.catalog.quality import QualityEvidence
from planner.physics.types import Architecture
from planner.spec import FleetSpec, ModelSpec
from planner.spec.vocabulary import DEFAULT_MAX_MODEL_LEN_TOKENS

WIDE_FORMATS = ("bf16", "fp16")
NARROW_DEFAULTS = ("fp8", "int8", "int4")
DEFAULT_ENGINE = "vllm"
DEFAULT_KV_FORMATS = ("bf16", "fp8")


def resolve_models(spec: FleetSpec, catalog: Catalog) -> dict[str, ResolvedModel]:
    """Resolve every model of the spec, sorted by name. Raises `UnknownName` for a name that was not checked before."""
    return {name: _resolve(name, spec.models[name], spec, catalog) for name in sorted(spec.models)}


def _resolve(name: str, model: ModelSpec, spec: FleetSpec, catalog: Catalog) -> ResolvedModel:
    architecture = catalog.architecture(model.config or model.use or "")
    # The default version is that of the default engine; another engine is taken at its newest known release.
    version = (
        model.engine.version
        if "version" in model.engine.model_fields_set or model.engine.name == DEFAULT_ENGINE
        else None
    )
    engine = catalog.engine(model.engine.name, version)
    weights = model.weights or default_weights(architecture)
    kv_cache = model.kv_cache or DEFAULT_KV_FORMATS
    return ResolvedModel(
        name=name,
        spec=model,
        architecture=architecture,
        engine=engine,
        memory=engine.memory,
        weights=tuple(sorted(weights)),
        kv_cache=tuple(sorted(kv_cache)),
        quality={(w, k): _quality(model, architecture, w, k, catalog) for w in weights for k in kv_cache},
        max_model_len=model.max_model_len or min(DEFAULT_MAX_MODEL_LEN_TOKENS, architecture.max_position),
        reliability=spec.reliability.overridden_by(model.reliability),
        preferred_gpus=tuple(catalog.gpu(g).name for g in model.prefer.gpus) if model.prefer is not None else (),
    )


def default_weights(architecture: Architecture) -> tuple[str, ...]:
    """Return the native weight format, with 8- and 4-bit ones where the native one has 16 bits."""
    native = architecture.native_format
    return (native, *NARROW_DEFAULTS) if native in WIDE_FORMATS else (native,)


def _quality(
    model: ModelSpec, architecture: Architecture, weights: str, kv_cache: str, catalog: Catalog
) -> QualityEvidence:
    """Return the quality kept by a pair of formats; the user's own evaluation of the weights wins over the catalog."""
    own = model.quality.get(weights)
    evidence = catalog.quality(architecture, None if own is not None else weights, kv_cache, model.quality_evidence)
    if own is None:
        return evidence or QualityEvidence(0.0, "any", "no published score", 0)
    kv_recovery = evidence.recovery if evidence else 0.0
    source = "models.quality of the spec" + (f"; {evidence.source}" if evidence and evidence.source else "")
    return QualityEvidence(own * kv_recovery, "model", source, evidence.n if evidence else 0)


def model_assumptions(models: dict[str, ResolvedModel], own: Mapping[str, Sequence[str]]) -> list[Assumption]:
    """List what was assumed about models: longest sequence, engine constants from another version.

    `own` says by model for which of its shapes the user's measurements decide the speed instead.
    """
    found: list[Assumption] = []
    for name, model in models.items():
        if model.spec.config is not None:
            count = f"{model.architecture.n_params_total / BILLION:.3f}B parameters, counted from the config"
            found.append(Assumption(f"models.{name}.config", count, model.spec.config))
        if model.spec.max_model_len is None:
            value = f"{model.max_model_len} tokens"
            found.append(
                Assumption(f"models.{name}.max_model_len", value, "default: 32768, or the model's own if less")
            )
        engine = model.engine
        if engine.extrapolated or engine.memory_extrapolated:
            value = f"{engine.name} {engine.version} is planned with constants measured on {engine.versions} (memory: {engine.memory.versions})"
            value += f"; speed of {'; '.join(own[name])}" if own[name] else ""
            found.append(Assumption(f"models.{name}.engine", value, f"catalog/engines/{engine.name}.yaml"))
        if engine.generation == "local":
            value = f"{engine.name} speeds are from single-stream benchmarks; many sequences at once were not measured"
            found.append(Assumption(f"models.{name}.engine.concurrency", value, "catalog/calibration/default.yaml"))
    return found
