"""Names, defaults, fields and links in the pages are those of the code."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from pages import DOCS, PAGES, ROOT, code_of, sections, table_rows

import mmgradguard
from mmgradguard.core.incident import ACTIONS, KINDS, new_incident
from mmgradguard.core.log_analysis import (
    COINCIDENCES,
    EVENT_KINDS,
    LogAnalysis,
    LogEvent,
)
from mmgradguard.core.types import StepSample, Verdict
from mmgradguard.engine.guarded_wrapper import ACTING_DEFAULTS
from mmgradguard.logs.formats import FORMATS
from mmgradguard.report.log_json import analysis_json
from mmgradguard.testing import _KINDS as FAULT_KINDS

CLASSES = [
    'GradAnomalyHook',
    'AdaptiveClipHook',
    'AdaptiveClipOptimWrapper',
    'AdaptiveClipAmpOptimWrapper',
    'GradGuard',
    'FaultInjectionHook',
]
#: A default that stands for what the docstring says.
MEANT_BY_NONE = {('AdaptiveClipAmpOptimWrapper', 'dtype'): "'float16'"}


def signature_of(name: str) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(getattr(mmgradguard, name).__init__).parameters
    return {
        key: p
        for key, p in parameters.items()
        if key != 'self' and p.kind is not p.VAR_KEYWORD
    }


def defaults_of(name: str) -> dict[str, Any]:
    """Return every argument with its default, also those taken by ``**kwargs``."""
    own = {key: p.default for key, p in signature_of(name).items()}
    takes_more = name.startswith('AdaptiveClip')
    return {**own, **(ACTING_DEFAULTS if takes_more else {})}


API = sections((DOCS / 'api.md').read_text())


def test_every_public_name_has_a_section() -> None:
    assert set(API) == set(mmgradguard.__all__)


@pytest.mark.parametrize('name', CLASSES)
def test_arguments_and_defaults_in_the_api_page(name: str) -> None:
    known = defaults_of(name)
    documented = {}
    for names, default, *_ in table_rows(API[name], 'argument'):
        for argument in code_of(names):
            documented[argument] = code_of(default)
    for argument, text in documented.items():
        if text:
            value = eval(text[0], {'__builtins__': {}, 'dict': dict})
            assert value == known[argument], argument
        elif argument not in ACTING_DEFAULTS:
            assert known[argument] is inspect.Parameter.empty, argument
    if name == 'AdaptiveClipAmpOptimWrapper':  # has a table of what it adds
        known = known.keys() - defaults_of('AdaptiveClipOptimWrapper').keys()
    assert set(documented) == set(known)


def documented_args(name: str) -> dict[str, str]:
    """Return the entries of a class's ``Args:``, the names with their text."""
    doc = inspect.getdoc(getattr(mmgradguard, name))
    body = re.search(r'^Args:\n((?:    .*\n|\n)*)', doc + '\n', re.MULTILINE).group(1)
    entries = re.split(r'^    (\*{0,2}\w+):', body, flags=re.MULTILINE)[1:]
    return dict(zip(entries[::2], entries[1::2]))


@pytest.mark.parametrize('name', CLASSES)
def test_arguments_in_docstrings_are_those_of_the_signature(name: str) -> None:
    documented = {key for key in documented_args(name) if not key.startswith('*')}
    known = defaults_of(name)
    if any(key.startswith('*') for key in documented_args(name)):
        # the rest is documented elsewhere, and named here
        known = {k: v for k, v in known.items() if k in documented}
        rest = defaults_of('AdaptiveClipOptimWrapper').keys() | ACTING_DEFAULTS.keys()
        assert defaults_of(name).keys() - documented <= rest
    assert documented == set(known)


STATED = [
    (name, argument, next(filter(None, match)))
    for name in CLASSES
    for argument, text in documented_args(name).items()
    for match in re.findall(
        r'`{1,2}([^`]+)`{1,2}\s+\(default\)|\(default\s+([^)]+)\)', text
    )
]


def test_stated_defaults_are_found() -> None:
    assert ('AdaptiveClipHook', 'on_fatal', "'stop'") in STATED
    assert len(STATED) >= 5


@pytest.mark.parametrize(('name', 'argument', 'stated'), STATED)
def test_defaults_in_docstrings_are_those_of_the_signature(
    name: str, argument: str, stated: str
) -> None:
    default = defaults_of(name)[argument]
    if argument == 'clip_policy':
        assert default == {'type': stated}
    elif argument == 'faults':  # of a key inside
        fault = dict(kind='grad_spike', iteration=0, target='')
        (checked,) = mmgradguard.FaultInjectionHook(faults=[fault]).faults
        assert checked['factor'] == ast.literal_eval(stated)
    elif default is None:
        assert MEANT_BY_NONE[name, argument] == stated
    else:
        assert default == ast.literal_eval(stated)


def names_in(page: str, head: str) -> list[str]:
    rows = table_rows((DOCS / page).read_text(), head)
    return [name for row in rows for name in code_of(row[0])]


def test_kinds_actions_and_fields_are_the_codes() -> None:
    assert names_in('reading_an_incident.md', 'kind') == list(KINDS)
    assert names_in('reading_an_incident.md', 'action') == list(ACTIONS)
    faults = table_rows(API['FaultInjectionHook'], 'kind')
    assert {row[0].strip('`'): row[1] for row in faults} == FAULT_KINDS
    incident = new_incident(
        kind='exception', iteration=0, step=0, epoch=0, rank=0, action='raised'
    )
    sometimes = {'exception', 'weights_lost', 'started'}
    keys = {*(f.name for f in fields(StepSample)), *incident, *sometimes}
    assert set(names_in('formats.md', 'key')) == keys


def test_fields_events_and_verdicts_of_a_log_are_the_codes() -> None:
    event = LogEvent('spike', 'x', 1, 1, 1, 1, 'loss', 1.0, 1.0, True)
    data = analysis_json(LogAnalysis('x', 'y', 0, Verdict.FATAL, [event]))
    assert names_in('formats.md', 'field') == list(data)
    assert set(names_in('formats.md', 'field of an event')) - set(COINCIDENCES) == set(
        data['events'][0]
    )
    assert names_in('read_a_log.md', 'event') == list(EVENT_KINDS)
    assert names_in('read_a_log.md', 'verdict') == [v.value for v in Verdict]


def test_every_format_of_a_log_is_described() -> None:
    names = [name for parser in FORMATS for name in (parser.NAME, 'checkpoint')]
    assert set(names_in('formats.md', 'format')) == set(names)


def test_logged_keys_are_those_of_the_docstring() -> None:
    doc = mmgradguard.GradAnomalyHook.__doc__
    keys = re.findall(r'^ +(train/grad_guard/\w+)', doc, re.MULTILINE)
    rows = table_rows(API['GradAnomalyHook'], 'key')
    assert [row[0].strip('`') for row in rows] == keys
    assert len(keys) == 7


def test_every_preset_is_described() -> None:
    presets = [path.stem for path in (ROOT / 'configs' / '_base_').glob('*.py')]
    assert sorted(names_in('presets.md', 'preset')) == sorted(presets)


# ---------------------------------------------------------------- files and links


def test_the_architecture_names_what_exists() -> None:
    tokens = re.findall(r'`([\w.\-]+/[\w.\-/]*|[\w\-]+\.py)`', architecture())
    assert len(tokens) >= 30
    assert [token for token in tokens if not (ROOT / token).exists()] == []


def test_every_layer_is_in_the_architecture() -> None:
    for path in (ROOT / 'mmgradguard').iterdir():
        if path.name.startswith('_') or path.name in ('version.py', 'py.typed'):
            continue
        assert f'`mmgradguard/{path.name}' in architecture(), path.name


def architecture() -> str:
    return (DOCS / 'architecture.md').read_text()


def anchors(page: Path) -> set[str]:
    heads = re.findall(r'^#+ (.+)$', page.read_text(encoding='utf-8'), re.MULTILINE)
    return {re.sub(r'[^\w\- ]', '', head.lower()).replace(' ', '-') for head in heads}


@pytest.mark.parametrize('page', PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r'\]\(([^)]+)\)', page.read_text(encoding='utf-8')):
        name, _, anchor = link.partition('#')
        target = (page.parent / name) if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_picture_is_small_enough_for_a_page() -> None:
    data = (DOCS / 'images' / 'report.png').read_bytes()
    assert data.startswith(b'\x89PNG')
    assert len(data) < 300_000
