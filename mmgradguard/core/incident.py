"""``incident.json``: its fields, and what the plain evidence says about the cause.

The schema is a contract: readers outside of this package rely on it.
"""

from __future__ import annotations

import platform
from datetime import datetime, timezone
from importlib import metadata
from typing import Any, Mapping

from mmgradguard.core.types import Verdict
from mmgradguard.version import __version__

SCHEMA_VERSION = 1

KINDS = (
    'exception', 'nonfinite_weights', 'nonfinite_input', 'nonfinite_target',
    'masked_nonfinite', 'nonfinite_forward', 'nonfinite_loss', 'nonfinite_gradient',
    'norm_overflow', 'scale_collapse', 'grad_spike', 'loss_spike',
)  # fmt: skip
ACTIONS = ('none', 'clipped', 'skipped', 'rolled_back', 'stopped', 'raised')

#: Distributions that may provide a package: the maintained fork has other names.
_PACKAGES = {
    'torch': ('torch',),
    'mmengine': ('mmengine', 'onedl-mmengine', 'mmengine-lite'),
    'mmcv': ('mmcv', 'onedl-mmcv', 'mmcv-lite'),
    'mmdet': ('mmdet', 'onedl-mmdetection'),
}


def new_incident(
    *, kind: str, iteration: int, step: int, epoch: int, rank: int, action: str
) -> dict[str, Any]:
    """Return an incident with every field of the contract, still without evidence."""
    assert kind in KINDS, kind
    assert action in ACTIONS, action
    return {
        'schema_version': SCHEMA_VERSION,
        'iteration': iteration,
        'step': step,
        'epoch': epoch,
        'rank': rank,
        'time': datetime.now(timezone.utc).isoformat(timespec='seconds'),
        'kind': kind,
        'verdict': Verdict.SUSPICIOUS.value,
        'action': action,
        'first_bad': None,
        'params': [],
        'loss_terms': [],
        'samples': [],
        'interventions': [],
        'cause': None,
        'advice': [],
        'versions': {},
    }


def collect_versions(device: str) -> dict[str, Any]:
    """Return the versions that a bug report needs, without importing anything."""
    versions: dict[str, Any] = {'python': platform.python_version()}
    for package, names in _PACKAGES.items():
        versions[package] = next(filter(None, map(_version_of, names)), None)
    return {**versions, 'mmgradguard': __version__, 'device': device}


def _version_of(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def name_image(sample: Mapping[str, Any]) -> str:
    """Return an image's id, or its place in the batch where it has none.

    >>> name_image({'index': 2, 'img_id': 17}), name_image({'index': 2, 'img_id': None})
    ('image 17', 'the image at index 2 of the batch')
    """
    if sample.get('img_id') is None:
        return f'the image at index {sample.get("index")} of the batch'
    return f'image {sample["img_id"]}'


def describe_loss_terms(losses: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the terms with those that are not finite marked as culprits.

    The total, mmengine's ``loss``, is left out where there are terms to add up.
    """
    terms = {name: value for name, value in losses.items() if name != 'loss'} or losses
    rows = []
    for name, value in terms.items():
        finite = value - value == 0
        rows.append(
            {
                'name': name,
                'value': value,
                'grad_norm': None,
                'finite': finite,
                'culprit': not finite,
            }
        )
    return rows
