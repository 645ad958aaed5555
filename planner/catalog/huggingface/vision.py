"""Image encoders and their projectors. Counts are those of a plain vision transformer, within a few per cent."""

from __future__ import annotations

from planner.catalog.huggingface.fields import Fields
from planner.catalog.model import Vision

_GATED = frozenset({"qwen2_5_vl", "pixtral", "gemma4_vision", "glm4v", "glm4v_moe"})
_NATIVE_RESOLUTION = frozenset({"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"})
_FOLDING = _NATIVE_RESOLUTION | {"moonvit"}
DEFAULT_IMAGE_PATCHES = 4096


LARGEST_PATCHES = 65_536
"""Patches of the largest image of encoders with native resolution: 16,384 merged tokens of 2 x 2 (Qwen preprocessors)."""


def vision_of(config: Fields, width: int) -> Vision | None:
    """Count the image encoder and projector of a config, None without one. `width` is that of the language model.

    Per layer 4 h^2 + 2 h i (3 h i where gated), plus patches and positions; the projector maps the encoder, folded by
    its merge size, to the language model.
    """
    vision = config.section("vision_config")
    if not vision.data:
        return None
    kind = vision.text("model_type")
    names = (
        ("embed_dim", "hidden_size") if kind == "qwen2_vl" else ("hidden_size", "vt_hidden_size", "embed_dim", "width")
    )
    hidden = vision.count(*names)
    layers = vision.count("num_hidden_layers", "vt_num_hidden_layers", "depth", "layers")
    layers += vision.count("num_global_layers", default=0, least=0)
    inner = vision.count("intermediate_size", "vt_intermediate_size", default=4 * hidden)
    matrices = 3 if kind in _GATED else 2
    patch = vision.count("patch_size", "spatial_patch_size", default=14)
    time = vision.count("temporal_patch_size", default=1)
    positions = vision.count("num_position_embeddings", default=DEFAULT_IMAGE_PATCHES)
    encoder = (
        layers * (4 * hidden**2 + matrices * hidden * inner + 4 * hidden) + (3 * time * patch**2 + positions) * hidden
    )
    return Vision(
        parameters=encoder + _projector(config, vision, kind, hidden, width),
        width=hidden,
        patches=LARGEST_PATCHES if kind in _NATIVE_RESOLUTION else 0,
    )


def _projector(config: Fields, vision: Fields, kind: str, hidden: int, width: int) -> int:
    merge = vision.count("spatial_merge_size", default=config.count("spatial_merge_size", default=1))
    if kind in _FOLDING or vision.has("merge_kernel_size"):
        folded = hidden * (merge if merge > 1 else 2) ** 2
        mergers = 1 + len(vision.listed("deepstack_visual_indexes"))
        return mergers * (folded**2 + folded * width)
    if kind == "mllama_vision_model":
        return vision.count("vision_output_dim", default=hidden) * width
    if kind == "siglip_vision_model":
        return hidden * width
    if merge > 1:
        return (hidden * merge**2) * hidden + hidden * width + width**2
    return hidden * width + width**2
