"""A log as one HTML page that opens from disk without a network."""

from __future__ import annotations

from mmgradguard.report.html import fill_template
from mmgradguard.report.log_figures import build_log_figures
from mmgradguard.report.log_page import LogPage
from mmgradguard.report.log_story import LogStory

#: What a browser calls the languages.
HTML_LANG = {'en': 'en', 'zh': 'zh-Hans'}


def render_log_html(page: LogPage, story: LogStory) -> str:
    """Return the page; every text in it is escaped, plotly.js is inlined once.

    Raises:
        MissingPackageError: If Jinja2 or Plotly is not installed.
    """
    return fill_template(
        'log.html.j2',
        build_log_figures(page, story.events, story.lang),
        lang=HTML_LANG.get(story.lang, story.lang),
        story=story,
    )
