"""A comparison as terminal text, as Markdown, and as JSON."""

from __future__ import annotations

import sys
from typing import IO, Any

from mmgradguard.report import markdown_parts as md
from mmgradguard.report.compare_story import CompareStory
from mmgradguard.report.comparison import Comparison
from mmgradguard.report.console import open_console
from mmgradguard.report.log_json import analysis_json

#: Layout of ``mmgradguard compare --json``.
SCHEMA_VERSION = 1


def render_compare_text(
    story: CompareStory, *, file: IO[str] | None = None, width: int | None = None
) -> str:
    """Return the comparison as text, coloured if ``file`` is a terminal."""
    page = open_console(file or sys.stdout, width)
    for sentence in story.sentences:
        page.item(sentence)
    for heading, rows in _tables(story):
        page.heading(heading)
        names = (story.label('figure'), *story.names)
        page.table(names, [[name, *cells] for name, cells in rows])
    return page.text()


def render_compare_markdown(story: CompareStory) -> str:
    """Return the comparison to paste into an issue."""
    lines = [f'### {md.escape(story.label("compare_title"))}', '']
    lines += [f'- {md.escape(sentence)}' for sentence in story.sentences]
    for heading, rows in _tables(story):
        lines += ['', f'#### {md.escape(heading)}', '']
        names = ('', *(md.code(name) for name in story.names))
        cells = [(md.escape(name), *map(md.escape, row)) for name, row in rows]
        lines += md.table(names, cells)
    return md.limit_length(lines, story.label('cut_here'))


def comparison_json(
    comparison: Comparison, story: CompareStory, lang: str
) -> dict[str, Any]:
    """Return plain data; write it with ``jsonio`` for its infinities."""
    common = {
        'first': comparison.first,
        'last': comparison.last,
        'num_rows': comparison.num_common,
        'unit': 'row' if comparison.by_row else 'iteration',
    }
    return {
        'schema_version': SCHEMA_VERSION,
        'sentences': story.sentences,
        'common': common if comparison.num_common else None,
        'same_terms': comparison.same_terms,
        'runs': [
            {
                'name': run.name,
                'loss_first': run.loss_first,
                'loss_last': run.loss_last,
                'loss_tail': run.loss_tail,
                'seconds': run.seconds,
                'reached': run.reached,
                'terms': {name: run.terms[name] for name in comparison.terms},
                'analysis': analysis_json(run.page.analysis, lang),
            }
            for run in comparison.runs
        ],
    }


def _tables(story: CompareStory) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    tables = [(story.label('figures'), story.rows)]
    if story.terms:
        tables.append((story.label('terms'), story.terms))
    return tables
