"""What can be seen of an anomaly at the step itself, while the gradients are there."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import Any, Sequence

from torch import Tensor

from mmgradguard.clip.guarded_step import StepOutcome
from mmgradguard.clip.param_table import ParamTable
from mmgradguard.ops.norms import find_nonfinite
from mmgradguard.ops.tensor_stats import describe_tensor

#: Parameters described in an incident.
MAX_PARAMS = 20


@dataclass
class Evidence:
    """The step, the worst parameters, and where the trouble probably sits."""

    outcome: StepOutcome
    params: list[dict[str, Any]] = field(default_factory=list)
    first_bad: dict[str, Any] | None = None
    weights_were_bad: bool = False
    all_are_bad: bool = False


def collect_evidence(
    outcome: StepOutcome,
    table: ParamTable,
    history: Sequence[Sequence[float]],
    grads_scaled_by: float = 1.0,
) -> Evidence:
    """Describe the worst parameters of an abnormal step, before it is taken.

    Args:
        outcome: Of the step.
        table: The parameters, with their gradients.
        history: Norms per parameter of earlier healthy steps.
        grads_scaled_by: The loss scale that the gradients still carry.
    """
    bad_weights = find_nonfinite([p.detach() for p in table.params])
    if bad_weights:
        ranked, phase, name = bad_weights, 'weights', table.names[bad_weights[0]]
    elif outcome.nonfinite:
        # backward runs from the loss down and spoils all below: the bad parameter that
        # is registered last is the nearest to where it began
        ranked, phase = _by_share_of_nonfinite(outcome, table), 'backward'
        name = table.names[outcome.nonfinite[-1]]
    else:
        ranked, phase = _by_excess(outcome.param_norms, history), 'backward'
        name = table.names[ranked[0]]
    scale = 1.0 if bad_weights else grads_scaled_by
    params = describe_params(
        [
            (table.names[i], table.params[i] if bad_weights else table.params[i].grad)
            for i in ranked
        ],
        scale,
    )
    place = first_bad_place(phase, name, params[0] if params else None)
    num_used = sum(p.grad is not None for p in table.params)
    all_are_bad = len(outcome.nonfinite) == num_used
    return Evidence(outcome, params, place, bool(bad_weights), all_are_bad)


def describe_params(
    tensors: Sequence[tuple[str, Tensor | None]], divide_by: float = 1.0
) -> list[dict[str, Any]]:
    """Return name and statistics of the first `MAX_PARAMS` tensors that are there."""
    return [
        {'name': name, **describe_tensor(tensor, divide_by)}
        for name, tensor in tensors[:MAX_PARAMS]
        if tensor is not None
    ]


def first_bad_place(phase: str, param_name: str | None, stats: Any) -> dict[str, Any]:
    """Return the `first_bad` of an incident; the module is the parameter's owner."""
    module = None
    if param_name is not None:
        module = param_name.rpartition('.')[0] or param_name
    return {
        'phase': phase,
        'module': module,
        'call': None,
        'op': None,
        'source': None,
        'stats': stats,
    }


def typical_norms(history: Sequence[Sequence[float]]) -> list[float]:
    """Return the median norm of each parameter over past steps."""
    return [statistics.median(norms) for norms in zip(*history)]


def _by_share_of_nonfinite(outcome: StepOutcome, table: ParamTable) -> list[int]:
    def share(i: int) -> float:
        grad = table.params[i].grad
        assert grad is not None
        stats = describe_tensor(grad)
        return float(stats['num_nan'] + stats['num_inf']) / max(stats['numel'], 1)

    # the last ones are nearest to the loss; describing thousands would take seconds
    candidates = outcome.nonfinite[-10 * MAX_PARAMS :]
    return sorted(candidates, key=lambda i: (-share(i), -i))


def _by_excess(norms: Sequence[float], history: Sequence[Sequence[float]]) -> list[int]:
    """Order parameters by how much of the norm's excess each carries."""
    usual = typical_norms(history) if history else [0.0] * len(norms)
    if len(usual) != len(norms):  # parameters were unfrozen in between
        usual = [0.0] * len(norms)
    excess = [_square(norm) - _square(past) for norm, past in zip(norms, usual)]
    return sorted(range(len(norms)), key=lambda i: -excess[i])


def _square(value: float) -> float:
    return value * value if math.isfinite(value) else math.inf
