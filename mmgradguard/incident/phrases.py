"""One line for the training log per incident, in the host's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mmgradguard.core.incident import name_image

_ACTIONS = {
    'none': 'the step was taken as it was',
    'clipped': 'step clipped',
    'skipped': 'step skipped',
    'raised': 'the error is raised',
    'stopped': 'training stopped',
    'rolled_back': 'rolled back',
}
_KINDS = {
    'exception': 'training raised',
    'nonfinite_weights': 'the weights were already not finite',
    'nonfinite_input': 'the input holds NaN or Inf',
    'nonfinite_target': 'the ground truth holds NaN, Inf or absurd values',
    'nonfinite_loss': 'the loss is not finite',
    'nonfinite_gradient': 'the loss is finite, a gradient is not',
    'norm_overflow': 'gradients are finite, their fp32 norm is not',
    'scale_collapse': 'gradients overflow at the smallest loss scale',
    'grad_spike': 'a finite spike',
    'loss_spike': 'a spike of the loss',
}


def incident_line(
    incident: dict[str, Any], place: str, total_norm: float | None, folder: Path | None
) -> str:
    """Return place, what, module, sample, action and where to read on."""
    kind = incident['kind']
    parts = [_KINDS.get(kind, kind)]
    if 'exception' in incident:
        error = incident['exception']
        first_line = (error['message'].strip().splitlines() or [''])[0][:120]
        parts = [f'training raised {error["type"]}: {first_line}'.rstrip(': ')]
    first_bad = incident['first_bad'] or {}
    if first_bad.get('module'):
        parts.append(f'module {first_bad["module"]}')
    if incident['params']:
        worst = incident['params'][0]
        parts.append(f'worst parameter {worst["name"]} ({_describe(worst)})')
    culprits = [s for s in incident['samples'] if s['culprit']]
    if culprits:
        parts.append(
            '; '.join(f'{name_image(s)} is to blame: {s["notes"][0]}' for s in culprits)
        )
    elif incident['samples']:
        images = [
            str(s['img_id']) for s in incident['samples'] if s['img_id'] is not None
        ]
        if images:
            parts.append(f'images {", ".join(images)}')
    parts.append(_ACTIONS[incident['action']])
    if folder is not None:
        parts.append(f'see {folder}')
    norm = '' if total_norm is None else f'grad_norm {total_norm:.4g} (total_norm): '
    return f'{place}  {norm}{", ".join(parts)}'


def _describe(param: dict[str, Any]) -> str:
    bad = [
        f'{param[key]} {name}'
        for key, name in (('num_nan', 'NaN'), ('num_inf', 'Inf'))
        if param[key]
    ]
    if bad:
        return f'{" and ".join(bad)} of {param["numel"]}'
    return f'norm {param["norm"]:.4g}'
