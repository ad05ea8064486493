"""detectron2's text: ``[... d2.utils.events]:  eta: ...  iter: 19  loss_cls: ...``."""

from __future__ import annotations

import re
from types import MappingProxyType

from mmgradguard.logs.formats.text_parser import TextParser


class Detectron2Text(TextParser):
    """Iterations only; the norm is there if the trainer was taught to print it."""

    NAME = 'detectron2_text'
    RENAMED = MappingProxyType({'total_loss': 'loss', 'max_mem': 'memory'})
    ROW = re.compile(
        r'()()\biter: (\d{1,12})()(?=\s+(?:\S{1,64}: \S{1,64}\s{1,9}){0,3}'
        r'\S{0,64}loss\S{0,64}:)'
    )
    PLAIN_ROW = ROW
    BROKEN_ROW = re.compile(r'd2\.utils\.events\]:\s.*\biter:?[\s\d]*$')
