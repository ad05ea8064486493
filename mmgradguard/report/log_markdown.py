"""A log's story as Markdown to paste into an issue: paths shortened, all escaped."""

from __future__ import annotations

from typing import Sequence

from mmgradguard.report import markdown_parts as md
from mmgradguard.report.log_story import LogStory

_MAX_ITEMS = 30


def render_log_markdown(story: LogStory) -> str:
    """Return verdict, events, advice and facts as Markdown."""
    title = story.label('title', verdict=story.verdict_word)
    lines = [f'### {md.escape(title)}', '', f'**{md.escape(story.headline)}**', '']
    lines += _items(story.reasons)
    lines += ['', f'#### {md.escape(story.label("happened"))}', '']
    lines += _events(story)
    lines += _section(story.label('normal'), story.normality)
    lines += _advice(story)
    lines += _section(story.label('decide'), story.would_decide)
    lines += _section(story.label('unknown'), story.unknowns)
    lines += ['', f'#### {md.escape(story.label("facts"))}', '']
    rows = [(story.label('log'), md.code(md.shorten_path(story.source)))]
    rows += [(md.escape(name), md.escape(value)) for name, value in story.facts]
    lines += md.table(('', ''), rows)
    lines += ['', *(md.escape(remark) for remark in story.remarks)]
    while lines and not lines[-1]:
        lines.pop()
    return md.limit_length(lines, story.label('cut_here'))


def _events(story: LogStory) -> list[str]:
    if not story.events:
        return [md.escape(story.label('nothing'))]
    lines = [
        f'- **{md.escape(event.title)}** {md.escape(event.text)}'
        for event in story.events
    ]
    if story.num_hidden:
        lines += ['', md.escape(story.label('more_events', num=story.num_hidden))]
    return lines


def _advice(story: LogStory) -> list[str]:
    if not story.advice:
        return []
    lines = ['', f'#### {md.escape(story.label("change"))}', '']
    for number, advice in enumerate(story.advice[:_MAX_ITEMS], start=1):
        lines.append(f'{number}. {md.escape(advice.text)}')
        if advice.config:
            # indented, so that the block belongs to its item
            block = md.fence(advice.config)
            lines += ['', *(f'   {line}'.rstrip() for line in block), '']
    return lines


def _section(heading: str, items: Sequence[str]) -> list[str]:
    if not items:
        return []
    return ['', f'#### {md.escape(heading)}', '', *_items(items)]


def _items(items: Sequence[str]) -> list[str]:
    return [f'- {md.escape(item)}' for item in items[:_MAX_ITEMS]]
