"""Which format a log is in, and whether a file is a log at all, by what it holds."""

from __future__ import annotations

import os
import re

from mmgradguard.core.errors import LogParseError
from mmgradguard.logs.config_text import parse_config
from mmgradguard.logs.folders import find_runs
from mmgradguard.logs.formats import FORMATS
from mmgradguard.logs.formats.base import LogParser
from mmgradguard.logs.formats.json_lines import load_object
from mmgradguard.logs.formats.text_clean import clean
from mmgradguard.logs.header import LOGGED
from mmgradguard.logs.sources import (
    is_checkpoint,
    is_regular,
    open_text,
    read_blocks,
)

#: Top-level keys of which a config of the OpenMMLab kind has at least one.
_CONFIG_KEYS = frozenset(
    (
        '_base_',
        'model',
        'optimizer',
        'optim_wrapper',
        'data',
        'train_dataloader',
        'train_cfg',
        'param_scheduler',
        'lr_config',
        'runner',
        'default_hooks',
        'custom_hooks',
        'dataset_type',
        'default_scope',
    )
)
_READ_BASE = re.compile(r'^\s*with read_base\(\):', re.MULTILINE)


def format_of(line: str) -> type[LogParser] | None:
    """Return the format that ``line`` is a row or a header of, None if of none."""
    if not line or line.isspace():
        return None
    text = clean(line)
    for parser in FORMATS:
        if parser.claims_line(text):
            return parser
    row = load_object(line) if '{' in line else None
    if row:
        for parser in FORMATS:
            if parser.claims_row(row):
                return parser
    return None


def sniff(path: str | os.PathLike[str]) -> str | None:
    """Return ``'log'``, ``'config'`` or None, from the first megabyte at most.

    A directory with runs and a checkpoint are logs, too; what cannot be read is None.
    A pipe is taken for a log unseen: what is read from it is gone.
    """
    name = os.fspath(path)
    try:
        if os.path.isdir(name):
            return 'log' if find_runs(name) else None
        if os.path.exists(name) and not is_regular(name):
            return 'log'
        if is_checkpoint(name):
            return 'log'
        with open_text(name) as stream:
            lines = next(read_blocks(stream)).texts
    except (LogParseError, OSError):
        return None
    if any(format_of(line) or LOGGED.search(line) for line in lines):
        return 'log'
    return 'config' if _is_config('\n'.join(lines)) else None


def _is_config(text: str) -> bool:
    config = parse_config(text) or {}
    return bool(_CONFIG_KEYS & set(config)) or _READ_BASE.search(text) is not None
