"""One replica under load at a given mean batch: flow, sensitivities and the slow noise of its batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from planner.physics.latency.flow import (
    PromptWork,
    effective_slots,
    extra_s,
    flow,
    prompt_work,
    saturation,
)
from planner.physics.latency.steps import Hinge, Lengthwise, hinge, lengthwise, mixed_steps, positive
from planner.physics.latency.types import Array, Flow, Pairs

# The linear noise theory underrates the swings of the batch; factor and floor fitted on simulated replicas.
_VARIANCE_FACTOR = 1.5
_POOLED_VARIANCE_FLOOR = 0.3
_ELASTICITY_CAP = 0.95
_STALL_SHARE_CAP = 0.98
_RELATIVE_STEP = 0.02
_TINY = 1e-12


class Basis(NamedTuple):
    """Facts of the pairs that do not depend on the batch; computed once per bisection."""

    pairs: Pairs
    lengths: Lengthwise
    slots: Array
    saturation_batch: Array
    saturation_requests_per_s: Array

    def take(self, index: npt.NDArray[np.intp]) -> Basis:
        """Return the facts of the pairs at `index`, in that order."""
        arrays = (self.slots, self.saturation_batch, self.saturation_requests_per_s)
        lengths = Lengthwise(*(moment[index] for moment in self.lengths))
        return Basis(self.pairs.take(index), lengths, *(array[index] for array in arrays))


class Load(NamedTuple):
    """State of one replica at a mean batch: arrays [P].

    `next_*` is the step cost with one more sequence, `tagged_*` the one that a request sees, which adds itself and its
    clump to the batch. `clump` is the mean number of other prompts that arrive with a request, `clumped_cv2` the
    arrival variability left for one of R replicas, `stall_share` the share of time in which prompts delay decoding,
    `variance` that of the batch (`variance_alone` without the balancing of a pool), `step_slope_s` the time that one
    more sequence adds to a step.
    """

    batch: Array
    flow: Flow
    cost: Hinge
    work: PromptWork
    next_cost: Hinge
    next_work: PromptWork
    tagged_cost: Hinge
    tagged_work: PromptWork
    tagged_extra_s: Array
    clumped_cv2: Array
    clump: Array
    stall_share: Array
    step_slope_s: Array
    elasticity: Array
    variance: Array
    variance_alone: Array
    saturation_share: Array

    def take(self, index: npt.NDArray[np.intp]) -> Load:
        """Return the state of the pairs at `index`, in that order."""
        return Load(*(_taken(part, index) for part in self))


def basis(pairs: Pairs) -> Basis:
    """Return the facts of `pairs` that hold at every batch."""
    lengths = lengthwise(pairs)
    top = saturation(pairs)
    return Basis(pairs, lengths, effective_slots(pairs), top.batch, top.requests_per_s)


def load(base: Basis, batch: Array) -> Load:
    r"""Return the state of one replica at the mean batch `batch` [P].

    LPS closed form, see planner/manual/physics.md. With `r = \lambda \partial F/\partial\nu`,
    `F' = \partial F/\partial B / (1 - r)` and `e = F' B / T` (capped), the batch of one replica has the variance
    `v_1 = 1.5 B (1 + c^2)/2 / (1 - e)`, and `v = \min(v_1, v_1/R + 0.3)` in a pool that sends each request to the
    replica with the fewest; `c_R^2 = 1 + (c^2 - 1)/R`.
    """
    pairs, lengths = base.pairs, base.lengths
    cv2 = np.maximum(pairs.arrival_cv2, 1.0)
    clumped_cv2 = 1.0 + (cv2 - 1.0) / pairs.replicas
    clump = 0.5 * (clumped_cv2 - 1.0)
    rows = hinge(pairs, lengths, np.stack([batch, batch + 1.0, batch + 1.0 + clump]))
    works = prompt_work(pairs, lengths, rows)
    cost, work = rows.at(0), _row(works, 0)
    state = flow(pairs, lengths, cost, work, batch)
    extra = extra_s(pairs, lengths, rows, works, state.prompts_per_step)
    more = extra_s(pairs, lengths, cost, work, state.prompts_per_step * (1.0 + _RELATIVE_STEP)) - extra[0]
    stall_share = np.clip(more / (_RELATIVE_STEP * np.maximum(state.mean_step_s, _TINY)), 0.0, _STALL_SHARE_CAP)
    slope = positive(rows.base_s[1] + extra[1] - rows.base_s[0] - extra[0]) / (1.0 - stall_share)
    elasticity = np.minimum(slope * batch / np.maximum(state.mean_step_s, _TINY), _ELASTICITY_CAP)
    alone = _VARIANCE_FACTOR * batch * 0.5 * (1.0 + cv2) / (1.0 - elasticity)
    return Load(
        batch=batch,
        flow=state,
        cost=cost,
        work=work,
        next_cost=rows.at(1),
        next_work=_row(works, 1),
        tagged_cost=rows.at(2),
        tagged_work=_row(works, 2),
        tagged_extra_s=extra[2],
        clumped_cv2=clumped_cv2,
        clump=clump,
        stall_share=stall_share,
        step_slope_s=slope,
        elasticity=elasticity,
        variance=np.minimum(alone, alone / pairs.replicas + _POOLED_VARIANCE_FLOOR),
        variance_alone=alone,
        saturation_share=state.requests_per_s / np.maximum(base.saturation_requests_per_s, _TINY),
    )


def longest_step_s(base: Basis, cost: Hinge) -> Array:
    """Return the time of a step with a full token budget; infinite where prompts run alone, any number in a row."""
    return np.where(mixed_steps(base.pairs, base.lengths), cost.full_s(), np.inf)


def _row(works: PromptWork, row: int) -> PromptWork:
    return PromptWork(*(part[row] for part in works))


def _taken(part: Any, index: npt.NDArray[np.intp]) -> Any:
    return part[index] if isinstance(part, np.ndarray) else type(part)(*(array[index] for array in part))
