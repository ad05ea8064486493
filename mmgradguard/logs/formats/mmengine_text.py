"""mmengine 1.x text: ``Epoch(train)  [1][   50/29572]  lr: ...  loss: ...``."""

from __future__ import annotations

import re

from mmgradguard.logs.formats.base import WINDOW_MEAN
from mmgradguard.logs.formats.text_parser import TextParser

_PLACE = (
    r'(?:Epoch\(train\)\s*\[\s*(\d{1,12})\s*\]|Iter\(train\)\s*)'
    r'\[\s*(\d{1,12})\s*/\s*(\d{1,12})\s*\]'
)


class MmengineText(TextParser):
    """Items are set apart by two spaces, or by one where that was lost."""

    NAME = 'mmengine_text'
    VALUES_ARE = WINDOW_MEAN
    ROW = re.compile('()' + _PLACE)
    PLAIN_ROW = re.compile(r'(\d[\d/]+ [\d:]+) - \S+ - \S+ - ' + _PLACE)
    BROKEN_ROW = re.compile(r'(?:Epoch|Iter)\(train\)[\s\[\]\d/]*$')
    MARKS = ('Epoch(train)', 'Iter(train)')
