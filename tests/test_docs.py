"""The examples of the pages run, and their commands are known."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.config import Config, DictAction
from mmengine.registry import HOOKS, OPTIM_WRAPPERS
from mmengine.runner import Runner
from pages import (
    BLOCKS,
    PAGES,
    README,
    ROOT,
    Block,
    assigned_names,
    commands,
    is_config,
)
from test_cli.log_lines import mmengine_text

import mmgradguard
from mmgradguard.cli.main import VERBS, build_parser, main
from mmgradguard.core.incident import new_incident
from mmgradguard.core.types import StepSample

YOUR_CONFIG = "_base_ = 'mmdet::detr/detr_r18_8xb2-500e_coco.py'\n"
PYTHON = [block for block in BLOCKS if block.language == 'python']
CONFIGS = [block for block in PYTHON if is_config(block)]
SCRIPTS = [block for block in PYTHON if not is_config(block)]


def test_blocks_are_of_known_kinds() -> None:
    assert {block.language for block in BLOCKS} == {'python', 'bash', 'json', ''}
    assert len(CONFIGS) >= 10
    assert len(SCRIPTS) >= 4


# ---------------------------------------------------------------- examples


def load_config(folder: Path, code: str, your_config: str = YOUR_CONFIG) -> Config:
    (folder / 'your_config.py').write_text(your_config)
    if '_base_' not in assigned_names(code):
        code = f"_base_ = './your_config.py'\n{code}"
    path = folder / 'config.py'
    path.write_text(code)
    return Config.fromfile(str(path))


def build_guards(cfg: Config) -> list[Any]:
    """Build everything of ours that a config names, as a runner would."""
    hooks = [*cfg.get('default_hooks', {}).values(), *cfg.get('custom_hooks', [])]
    ours = [
        HOOKS.build(hook)
        for hook in hooks
        if hook['type'].rpartition('.')[2] in mmgradguard.__all__
    ]
    wrapper = dict(cfg.optim_wrapper)
    if wrapper['type'].rpartition('.')[2] in mmgradguard.__all__:
        wrapper['optimizer'] = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1)
        wrapper.pop('paramwise_cfg', None)
        ours.append(OPTIM_WRAPPERS.build(wrapper))
    return ours


@pytest.fixture
def _train_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    # building a hook arms the next training
    monkeypatch.setattr(Runner, 'train', Runner.train)


@pytest.mark.mmdet
@pytest.mark.usefixtures('_train_is_put_back')
@pytest.mark.parametrize('block', CONFIGS, ids=str)
def test_config_examples_load_and_build(block: Block, tmp_path: Path) -> None:
    cfg = load_config(tmp_path, block.code)
    guards = build_guards(cfg)
    assert guards
    assert cfg.optim_wrapper.optimizer.type == 'AdamW'  # of the base
    assert cfg.default_hooks.logger.type == 'LoggerHook'


@pytest.mark.parametrize('block', SCRIPTS, ids=str)
def test_python_examples_run(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng():
        exec(compile(block.code, str(block), 'exec'), {'__name__': 'example'})
    for folder in re.findall(r"out_dir='([^']+)'", block.code):
        assert (tmp_path / folder / 'report.html').is_file()


@pytest.mark.parametrize('block', [b for b in BLOCKS if b.language == 'json'], ids=str)
def test_json_examples_are_json_with_known_fields(block: Block) -> None:
    row = json.loads(block.code)
    incident = new_incident(
        kind='exception', iteration=0, step=0, epoch=0, rank=0, action='raised'
    )
    known = incident.keys() if 'kind' in row else {f.name for f in fields(StepSample)}
    assert row.keys() <= known | {'exception'}


@pytest.mark.mmdet
def test_a_second_base_with_the_same_keys_is_refused_as_the_readme_says(
    tmp_path: Path,
) -> None:
    (first, *_) = [b for b in CONFIGS if b.page == README]
    with pytest.raises(KeyError, match='Duplicate key is not allowed among bases'):
        load_config(tmp_path, first.code, YOUR_CONFIG + 'custom_hooks = []\n')
    assert 'Duplicate key is not allowed among bases' in README.read_text()


@pytest.mark.mmdet
def test_a_list_in_a_child_replaces_the_preset_as_the_docs_say(tmp_path: Path) -> None:
    (first, *_) = [b for b in CONFIGS if b.page == README]
    cfg = load_config(tmp_path, first.code + 'custom_hooks = []\n')
    assert build_guards(cfg) == []


def test_the_page_of_a_log_is_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (block,) = [b for b in BLOCKS if b.page.name == 'read_a_log.md' and not b.language]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('COLUMNS', '80')
    (tmp_path / 'run.log').write_text(mmengine_text(60, spikes=(12,), nan_from=30))
    assert main(['analyze', 'run.log']) == 1
    assert capsys.readouterr().out.startswith(block.code)


# ---------------------------------------------------------------- commands


@pytest.mark.mmdet
@pytest.mark.usefixtures('_train_is_put_back')
@pytest.mark.parametrize('page', PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_are_known(page: Path, tmp_path: Path) -> None:
    for line in commands(page):
        check_command(shlex.split(line), tmp_path)
    for line in re.findall(r'`(mmgradguard [^`]+)`', page.read_text(encoding='utf-8')):
        words = line.split()
        # a verb alone is its name, and no call
        check_command(words if len(words) > 2 else [*words, 'DIR'], tmp_path)


def check_command(words: list[str], folder: Path) -> None:
    program, arguments = words[0], words[1:]
    if program == 'mmgradguard':
        if '/' not in arguments[0]:  # else a path, recognised by what it holds
            assert arguments[0] in [verb.NAME for verb in VERBS]
            build_parser().parse_args(arguments)
    elif program == 'make':
        targets = re.findall(r'^(\w+):', (ROOT / 'Makefile').read_text(), re.MULTILINE)
        assert set(arguments) <= set(targets)
    elif program == 'pip':
        assert arguments[0] == 'install'
        assert arguments[1] in ('.', '.[mmengine]')
        assert "'mmengine': [" in (ROOT / 'setup.py').read_text()
    elif (program, arguments[0]) == ('python', 'tools/analyze_log.py'):
        assert (ROOT / arguments[0]).is_file()
        build_parser().parse_args(['analyze', *arguments[1:]])
    else:
        assert (program, *arguments[:2]) == ('python', 'tools/train.py', 'CONFIG')
        check_train_options(arguments[2:], folder)


def check_train_options(words: list[str], folder: Path) -> None:
    (option, *values) = words
    assert option == '--cfg-options'
    package = Path(importlib.util.find_spec('mmdet').origin).parent
    assert f"'{option}'" in (package / '.mim' / 'tools' / 'train.py').read_text()
    cfg = load_config(folder, '')
    pairs = dict(value.split('=', 1) for value in values)
    parse = DictAction._parse_int_float_bool
    cfg.merge_from_dict({key: parse(value) for key, value in pairs.items()})
    assert build_guards(cfg)


def test_an_unknown_verb_or_target_would_be_seen(tmp_path: Path) -> None:
    for words in (['mmgradguard', 'analyse'], ['make', 'coffee'], ['rm', '-r']):
        with pytest.raises(AssertionError, match=words[1]):
            check_command(words, tmp_path)


def test_the_test_command_is_the_one_of_ci() -> None:
    lines = (ROOT / '.ci' / 'run').read_text().splitlines()
    (command,) = [x for x in lines if x and not x.startswith(('#', 'set ', 'cd '))]
    assert command in commands(README)
    assert f'`{command}` is what `.ci/run` runs' in README.read_text()


def test_the_chinese_readme_shows_the_same_code() -> None:
    chinese = ROOT / 'README_zh-CN.md'
    assert set(commands(chinese)) <= set(commands(README))
    english = [ast.dump(ast.parse(b.code)) for b in PYTHON if b.page == README]
    for block in PYTHON:
        if block.page == chinese:
            assert ast.dump(ast.parse(block.code)) in english
