"""Memory and time of one training step on one GPU: states, activations, checkpointing, offload. Pure functions of floats.

Sources: mixed-precision Adam and ZeRO stages: Rajbhandari et al., arXiv 1910.02054, sections 3.1 and 5. Activations
and selective recomputation: Korthikanti et al., arXiv 2205.05198, sections 4 and 5. Segments: Chen et al., arXiv
1604.06174, section 4. Offload: Ren et al. (ZeRO-Offload), arXiv 2101.06840; Rajbhandari et al., arXiv 2104.07857.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum, StrEnum

PARAMETER_BYTES = 2.0
GRADIENT_BYTES = 2.0
OPTIMIZER_BYTES = 12.0
"""Adam per parameter: 32-bit master weight, momentum and variance (arXiv 1910.02054, section 3.1)."""
ACTIVATION_BYTES = 2.0
ACTIVATION_FACTOR = 16.0
"""Tensors of batch x sequence x width that one layer keeps for the backward pass; 10 to 30 by implementation."""
FORWARD_FLOPS_PER_PARAMETER = 2.0
BACKWARD_OVER_FORWARD = 2.0
MODEL_FLOPS_SHARE = 0.40
"""Share of the peak that training reaches: 46 % in PaLM (arXiv 2204.02311, section 4.1), often less."""


class ZeroStage(IntEnum):
    """What ZeRO divides over the data-parallel GPUs: each stage includes those before it."""

    NONE = 0
    OPTIMIZER = 1
    GRADIENTS = 2
    PARAMETERS = 3


class Checkpoint(StrEnum):
    """Which activations are kept for the backward pass; the others are computed again."""

    NONE = "none"
    SELECTIVE = "selective"
    LAYER = "layer"
    SQRT = "sqrt"


class Offload(StrEnum):
    """What leaves the GPU between its uses."""

    NONE = "none"
    OPTIMIZER = "optimizer"
    ACTIVATIONS = "activations"
    ALL = "all"

    @property
    def moves_optimizer(self) -> bool:
        """Tell whether optimizer states live elsewhere."""
        return self in (Offload.OPTIMIZER, Offload.ALL)

    @property
    def moves_activations(self) -> bool:
        """Tell whether activations live elsewhere between the passes."""
        return self in (Offload.ACTIVATIONS, Offload.ALL)


class Tier(StrEnum):
    """Where offloaded bytes live."""

    CPU = "cpu"
    NVME = "nvme"


@dataclass(frozen=True, slots=True)
class TrainedShape:
    """What training needs of a model; `heads` counts query heads and is 0 when unknown."""

    parameters: float
    layers: int
    width: int
    heads: int = 0


@dataclass(frozen=True, slots=True)
class TrainingSetup:
    """How one GPU trains: `batch` sequences of `sequence` tokens each per step, one of `gpus` data-parallel GPUs.

    `fused` attention never stores the scores. `activation_factor` is c in c x batch x sequence x width x bytes.
    """

    batch: int
    sequence: int
    gpus: int = 1
    zero: ZeroStage = ZeroStage.NONE
    checkpoint: Checkpoint = Checkpoint.NONE
    fused: bool = True
    offload: Offload = Offload.NONE
    activation_factor: float = ACTIVATION_FACTOR


@dataclass(frozen=True, slots=True)
class TrainingMemory:
    """Bytes of one GPU. `stored_activations_bytes` are kept from forward to backward, `working_activations_bytes` is
    what is rebuilt around one layer or segment; `offloaded_bytes` live in another tier and are in no other field."""

    parameters_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    stored_activations_bytes: float
    working_activations_bytes: float
    offloaded_bytes: float

    @property
    def activations_bytes(self) -> float:
        """Activations at their peak."""
        return self.stored_activations_bytes + self.working_activations_bytes

    @property
    def total_bytes(self) -> float:
        """Everything on the GPU."""
        return self.parameters_bytes + self.gradients_bytes + self.optimizer_bytes + self.activations_bytes


def training_memory(shape: TrainedShape, setup: TrainingSetup) -> TrainingMemory:
    """Return what one GPU holds of parameters, gradients, optimizer states and activations."""
    parameters, gradients, optimizer = state_bytes(shape.parameters, setup.zero, setup.gpus)
    stored, working = activation_bytes(shape, setup)
    moved_optimizer = optimizer if setup.offload.moves_optimizer else 0.0
    moved_activations = stored if setup.offload.moves_activations else 0.0
    if setup.offload.moves_activations:
        # What is moved out comes back layer by layer, so one layer's share of it is on the GPU at its peak.
        working = max(working, stored / shape.layers)
    return TrainingMemory(
        parameters_bytes=parameters,
        gradients_bytes=gradients,
        optimizer_bytes=optimizer - moved_optimizer,
        stored_activations_bytes=stored - moved_activations,
        working_activations_bytes=working,
        offloaded_bytes=moved_optimizer + moved_activations,
    )


def state_bytes(parameters: float, zero: ZeroStage, gpus: int) -> tuple[float, float, float]:
    """Return bytes of parameters, gradients and optimizer states on one of `gpus` data-parallel GPUs.

    Mixed-precision Adam keeps 2 + 2 + 12 bytes per parameter; ZeRO 1, 2 and 3 divide the optimizer states, also the
    gradients, also the parameters by `gpus` (arXiv 1910.02054, section 5).
    """
    return (
        PARAMETER_BYTES * parameters / (gpus if zero >= ZeroStage.PARAMETERS else 1),
        GRADIENT_BYTES * parameters / (gpus if zero >= ZeroStage.GRADIENTS else 1),
        OPTIMIZER_BYTES * parameters / (gpus if zero >= ZeroStage.OPTIMIZER else 1),
    )


def layer_activation_bytes(shape: TrainedShape, setup: TrainingSetup, scores: bool) -> float:
    """Return the activations of one layer: c x batch x sequence x width x bytes.

    With `scores` also batch x heads x sequence^2 x bytes, which attention keeps unless it is fused (arXiv 2205.05198,
    equation 1: the part that grows with the square of the sequence).
    """
    linear = setup.activation_factor * boundary_bytes(shape, setup)
    square = setup.batch * shape.heads * float(setup.sequence) ** 2 * ACTIVATION_BYTES
    return linear + (square if scores else 0.0)


def boundary_bytes(shape: TrainedShape, setup: TrainingSetup) -> float:
    """Return the bytes of what one layer hands to the next: batch x sequence x width x bytes."""
    return setup.batch * float(setup.sequence) * shape.width * ACTIVATION_BYTES


def activation_bytes(shape: TrainedShape, setup: TrainingSetup) -> tuple[float, float]:
    """Return the activations of one step in bytes: stored from forward to backward, and rebuilt around one place.

    None: everything of all layers. Selective: all but the attention scores, which are computed again. Layer: the input
    of each layer, and one whole layer. Sqrt: the inputs of about sqrt(layers) segments, and one whole segment.
    """
    full = layer_activation_bytes(shape, setup, scores=not setup.fused)
    match setup.checkpoint:
        case Checkpoint.NONE:
            return shape.layers * full, 0.0
        case Checkpoint.SELECTIVE:
            slim = layer_activation_bytes(shape, setup, scores=False)
            return shape.layers * slim, full - slim
        case Checkpoint.LAYER:
            return shape.layers * boundary_bytes(shape, setup), full
        case Checkpoint.SQRT:
            segments = segment_count(shape.layers)
            return segments * boundary_bytes(shape, setup), -(-shape.layers // segments) * full


def segment_count(layers: int) -> int:
    """Return the number of segments: the whole number nearest to sqrt(layers) (arXiv 1604.06174, section 4.1)."""
    return round(math.sqrt(layers))


def forward_flops(shape: TrainedShape, setup: TrainingSetup) -> float:
    """Return FLOP of one forward pass: 2 per parameter and token, plus attention."""
    tokens = setup.batch * float(setup.sequence)
    return FORWARD_FLOPS_PER_PARAMETER * shape.parameters * tokens + attention_flops(shape, setup)


def attention_flops(shape: TrainedShape, setup: TrainingSetup) -> float:
    """Return FLOP of scores and weighted values in one forward pass: 4 x batch x sequence^2 x width per layer.

    Source: arXiv 2205.05198, appendix A. Causal kernels may skip half of it.
    """
    return 4.0 * setup.batch * float(setup.sequence) ** 2 * shape.width * shape.layers


def recomputed_flops(shape: TrainedShape, setup: TrainingSetup) -> float:
    """Return FLOP that a step computes a second time: attention alone, or about one forward pass."""
    match setup.checkpoint:
        case Checkpoint.NONE:
            return 0.0
        case Checkpoint.SELECTIVE:
            return 0.0 if setup.fused else attention_flops(shape, setup)
        case Checkpoint.LAYER | Checkpoint.SQRT:
            return forward_flops(shape, setup)


def step_flops(shape: TrainedShape, setup: TrainingSetup) -> float:
    """Return FLOP of a step: forward, a backward pass of twice that, and what is computed again."""
    return forward_flops(shape, setup) * (1.0 + BACKWARD_OVER_FORWARD) + recomputed_flops(shape, setup)


def recompute_share(shape: TrainedShape, setup: TrainingSetup) -> float:
    """Return the extra compute of a step over one without checkpoints: a third for one more forward pass."""
    return recomputed_flops(shape, setup) / (forward_flops(shape, setup) * (1.0 + BACKWARD_OVER_FORWARD))


def moved_bytes(shape: TrainedShape, setup: TrainingSetup, tier: Tier) -> float:
    """Return the bytes that one GPU's step moves to and from the tier.

    Activations go out and come back. With the optimizer on the CPU, 16-bit gradients go down and 16-bit parameters
    come back (arXiv 2101.06840, section 4); from NVMe its states are read and written (arXiv 2104.07857).
    """
    _, _, optimizer = state_bytes(shape.parameters, setup.zero, setup.gpus)
    updated = optimizer / OPTIMIZER_BYTES
    per_parameter = GRADIENT_BYTES + PARAMETER_BYTES if tier is Tier.CPU else 2.0 * OPTIMIZER_BYTES
    states = updated * per_parameter if setup.offload.moves_optimizer else 0.0
    stored = activation_bytes(shape, setup)[0] if setup.offload.moves_activations else 0.0
    return states + 2.0 * stored


def hidden_share(transfer_s: float, compute_s: float) -> float:
    """Return the share (0 to 1) of a transfer that the compute of the same step can hide at best."""
    return min(1.0, compute_s / transfer_s) if transfer_s > 0.0 else 1.0
