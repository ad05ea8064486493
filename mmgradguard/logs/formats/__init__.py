"""One module per format of training logs; a newcomer adds a file and one line here."""

from __future__ import annotations

from mmgradguard.logs.formats import checkpoint
from mmgradguard.logs.formats.base import OTHER, LogParser
from mmgradguard.logs.formats.detectron2_json import Detectron2Json
from mmgradguard.logs.formats.detectron2_text import Detectron2Text
from mmgradguard.logs.formats.detr_json import DetrJson
from mmgradguard.logs.formats.detr_text import DetrText
from mmgradguard.logs.formats.mmcv_json import MmcvJson
from mmgradguard.logs.formats.mmcv_text import MmcvText
from mmgradguard.logs.formats.mmengine_scalars import MmengineScalars
from mmgradguard.logs.formats.mmengine_text import MmengineText
from mmgradguard.logs.formats.steps_jsonl import StepsJsonl
from mmgradguard.logs.formats.ultralytics_csv import UltralyticsCsv
from mmgradguard.logs.formats.ultralytics_text import UltralyticsText

#: In the order in which a line is offered to them: the particular before the general.
FORMATS: tuple[type[LogParser], ...] = (
    MmengineText,
    MmcvText,
    Detectron2Text,
    DetrText,
    UltralyticsText,
    UltralyticsCsv,
    MmcvJson,
    StepsJsonl,
    DetrJson,
    Detectron2Json,
    MmengineScalars,
)


def values_of(name: str) -> str:
    """Return what the values of a format are, see `formats.base`."""
    if name == checkpoint.NAME:
        return checkpoint.VALUES_ARE
    known = {parser.NAME: parser.VALUES_ARE for parser in FORMATS}
    return known.get(name, OTHER)
