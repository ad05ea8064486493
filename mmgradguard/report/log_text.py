"""A log's story as text for a terminal; plain when it is piped."""

from __future__ import annotations

import sys
from typing import IO, Sequence

from mmgradguard.report.console import Console, open_console
from mmgradguard.report.log_story import LogStory
from mmgradguard.report.terminal_styles import STYLES


def render_log_text(
    story: LogStory, *, file: IO[str] | None = None, width: int | None = None
) -> str:
    """Return the story as text, coloured if ``file`` is a terminal and rich is there.

    Args:
        story: What to show.
        file: Where the text will go; defaults to ``sys.stdout``.
        width: Columns; defaults to those of the terminal.
    """
    page = open_console(file or sys.stdout, width)
    style = STYLES[story.verdict]
    page.line(f'{story.source}  ', (story.verdict_word, style))
    page.line((story.headline, 'bold'))
    for reason in story.reasons:
        page.item(reason)
    _add_events(page, story)
    _add_list(page, story.label('normal'), story.normality)
    _add_advice(page, story)
    _add_list(page, story.label('decide'), story.would_decide)
    _add_list(page, story.label('unknown'), story.unknowns)
    page.heading(story.label('facts'))
    page.table(None, [list(row) for row in story.facts])
    for remark in story.remarks:
        page.note(remark)
    return page.text()


def _add_events(page: Console, story: LogStory) -> None:
    page.heading(story.label('happened'))
    if not story.events:
        page.item(story.label('nothing'))
    for event in story.events:
        page.item((event.title, 'bold'), event.text)
    if story.num_hidden:
        page.note(story.label('more_events', num=story.num_hidden))


def _add_list(page: Console, heading: str, items: Sequence[str]) -> None:
    if not items:
        return
    page.heading(heading)
    for item in items:
        page.item(item)


def _add_advice(page: Console, story: LogStory) -> None:
    if not story.advice:
        return
    page.heading(story.label('change'))
    for advice in story.advice:
        page.item(advice.text)
        if advice.config:
            page.code('\n'.join(f'    {line}' for line in advice.config.split('\n')))
