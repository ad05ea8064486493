"""Reading the pages of the documentation: blocks, sections, tables."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Iterator, NamedTuple

ROOT = Path(__file__).parents[1]
DOCS = ROOT / 'docs'
README = ROOT / 'README.md'
PAGES = [
    *(README, ROOT / 'README_zh-CN.md', ROOT / 'CHANGELOG.md'),
    *sorted(DOCS.rglob('*.md')),
]
#: Top-level names by which a block is known to be a config.
CONFIG_KEYS = {
    *('_base_', 'custom_imports', 'custom_hooks', 'default_hooks', 'optim_wrapper'),
}


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    code: str

    def __str__(self) -> str:
        return f'{self.page.relative_to(ROOT)}:{self.line}'


def read_blocks(page: Path) -> Iterator[Block]:
    start, language, lines = 0, '', []
    for number, text in enumerate(page.read_text(encoding='utf-8').splitlines(), 1):
        if not text.startswith('```'):
            lines.append(text)
        elif start:
            yield Block(page, start, language, '\n'.join(lines) + '\n')
            start = 0
        else:
            start, language, lines = number, text[3:].strip(), []
    assert not start, f'{page}:{start}: the block does not end'


BLOCKS = [block for page in PAGES for block in read_blocks(page)]


def assigned_names(code: str) -> set[str]:
    return {
        target.id
        for node in ast.parse(code).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def is_config(block: Block) -> bool:
    return bool(assigned_names(block.code) & CONFIG_KEYS)


def commands(page: Path) -> list[str]:
    """Return the lines of the shell blocks, without comments."""
    lines = [
        line.partition('  #')[0].strip()
        for block in read_blocks(page)
        if block.language == 'bash'
        for line in block.code.splitlines()
    ]
    return [line for line in lines if line]


def sections(text: str) -> dict[str, str]:
    parts = re.split(r'^## (.+)$', text, flags=re.MULTILINE)[1:]
    return {
        title.replace('\\', ''): body for title, body in zip(parts[::2], parts[1::2])
    }


def table_rows(text: str, head: str) -> list[list[str]]:
    """Return the rows of the tables whose first column is called ``head``."""
    rows, is_inside = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split('|')[1:-1]]
        if not cells:
            is_inside = False
        elif is_inside and not line.startswith('|---'):
            rows.append(cells)
        elif cells[0] == head:
            is_inside = True
    return rows


def code_of(cell: str) -> list[str]:
    return re.findall(r'`([^`]+)`', cell)
