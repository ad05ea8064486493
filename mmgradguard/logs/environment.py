"""The environment that a header prints: GPUs, seed, versions."""

from __future__ import annotations

import re

from mmgradguard.logs.table import Header

_GPU_NUMBER = re.compile(r'(?:GPU number|world[ _]size)\s*[:=]\s*(\d{1,5})\b')
_DISTRIBUTED = re.compile(r'Distributed training\s*:\s*(True|False)')
_VISIBLE = re.compile(r'^[ \t]{0,40}GPU ([\d, ]{1,999}):', re.MULTILINE)
_SEED = re.compile(
    r'(?:^[ \t]{0,40}seed\s?[:=]|[Ss]et random seed to)\s*(\d{1,18})\b', re.MULTILINE
)
_VERSION = re.compile(
    r'^[ \t]{0,40}(Python|PyTorch|TorchVision|OpenCV|MMCV|MMEngine|MMDetection3D'
    r'|MMDetection|MMSegmentation|MMPose|mmdet|mmdet3d)[ \t]?:[ \t]*([^\s|]{1,200})',
    re.MULTILINE,
)


def read_environment(text: str, header: Header) -> None:
    """Fill in what ``text`` says; what it does not say stays as it is."""
    number = _GPU_NUMBER.search(text)
    distributed = _DISTRIBUTED.search(text)
    visible = {
        int(gpu)
        for match in _VISIBLE.finditer(text)
        for gpu in re.findall(r'\d{1,5}', match.group(1))
    }
    if number:
        header.num_gpus = int(number.group(1))
    elif distributed and distributed.group(1) == 'False':
        header.num_gpus = 1
    elif visible and header.num_gpus is None:
        header.num_gpus = len(visible)
    seed = _SEED.search(text)
    if seed:
        header.seed = int(seed.group(1))
    for name, version in _VERSION.findall(text):
        header.versions.setdefault(name, version)
