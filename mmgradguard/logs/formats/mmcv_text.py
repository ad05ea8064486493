"""mmcv 1.x text: ``Epoch [1][50/3517]<tab>lr: 2.000e-04, eta: ..., loss: ...``."""

from __future__ import annotations

import re

from mmgradguard.logs.formats.base import INTERVAL_MEAN
from mmgradguard.logs.formats.text_parser import TextParser

_PLACE = (
    r'(?:Epoch\s*\[\s*(\d{1,12})\s*\]\s*|Iter\s*)'
    r'\[\s*(\d{1,12})\s*/\s*(\d{1,12})\s*\]'
)


class MmcvText(TextParser):
    """Of the epoch and of the iteration runner, whatever the logger is called."""

    NAME = 'mmcv_text'
    VALUES_ARE = INTERVAL_MEAN
    HAS_COMMAS = True
    ROW = re.compile('()' + _PLACE)
    PLAIN_ROW = re.compile(r'(\d[\d-]+ [\d:,]+) - \S+ - \S+ - ' + _PLACE)
    BROKEN_ROW = re.compile(r'(?:Epoch|Iter)\s*\[[\s\[\]\d/]*$')
    MARKS = ('Epoch [', 'Iter [')
