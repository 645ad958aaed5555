"""What runs today: replicas of one shape on the nodes of one offer."""

from __future__ import annotations

from planner.spec.fields import KvFormat, Line, PositiveCount, WeightFormat
from planner.spec.section import Section


class DeployedSpec(Section):
    """Replicas that run today, of one model in one shape on one offer."""

    model: Line
    """Name of the model, one of `models`."""
    gpu: Line
    """GPU name of the catalog."""
    tensor_parallel: PositiveCount = 1
    """Tensor-parallel degree."""
    weights: WeightFormat
    """Weight format."""
    kv_cache: KvFormat = "bf16"
    """KV format."""
    max_num_seqs: PositiveCount | None = None
    """Batch cap of the engine; default: whatever the planner gives them."""
    replicas: PositiveCount
    """Replicas that run."""
    offer: Line
    """Entry of `supply.offers` whose nodes they lie on: its `name`, or else provider and region as plans name it."""
