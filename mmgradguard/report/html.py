"""The run as one HTML page that opens from disk without a network."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mmgradguard.core.jsonio import dumps
from mmgradguard.report.figures import build_figures
from mmgradguard.report.incident_record import Incident
from mmgradguard.report.model import RunReport
from mmgradguard.report.packages import require
from mmgradguard.report.run_files import INCIDENT_FILE
from mmgradguard.report.tiles import summary_tiles
from mmgradguard.report.values import format_number, shorten
from mmgradguard.report.words import (
    describe_action,
    describe_cause,
    describe_intervention,
    describe_kind,
    describe_when,
    describe_where,
    format_config,
)

TEMPLATES = Path(__file__).parent / 'templates'
#: Rows of a table in one card; the file has them all.
MAX_CARD_ROWS = 20


def render_html(report: RunReport) -> str:
    """Return the page; every text in it is escaped, plotly.js is inlined once.

    Raises:
        MissingPackageError: If Jinja2 or Plotly is not installed.
    """
    return fill_template(
        'report.html.j2',
        build_figures(report),
        report=report,
        tiles=summary_tiles(report),
        max_rows=MAX_CARD_ROWS,
    )


def fill_template(
    name: str, figures: dict[str, dict[str, Any]], *, lang: str = 'en', **values: Any
) -> str:
    """Return a page with charts; every text in it is escaped.

    Args:
        name: Of the template; it extends ``base.html.j2``.
        figures: Charts by the id of their place.
        lang: Language of the page, as HTML names it.
        **values: What the template shows.

    Raises:
        MissingPackageError: If Jinja2 or Plotly is not installed.
    """
    jinja2 = require('jinja2', 'Jinja2', 'an HTML page')
    offline = require('plotly.offline', 'plotly', 'an HTML page')
    page: str = (
        _environment()
        .get_template(name)
        .render(
            figures=jinja2.utils.htmlsafe_json_dumps(figures, dumps=dumps),
            places=list(figures),
            plotly_js=offline.get_plotlyjs() if figures else '',
            lang=lang,
            **values,
        )
    )
    return page


@lru_cache(maxsize=1)  # compiling the templates takes longer than filling them
def _environment() -> Any:
    jinja2 = require('jinja2', 'Jinja2', 'an HTML page')
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(TEMPLATES)),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        number=format_number,
        config=format_config,
        kind=describe_kind,
        action=describe_action,
        when=describe_when,
        where=describe_where,
        cause=describe_cause,
        tried=describe_intervention,
        short=shorten,
        link=_link,
    )
    return environment


def _link(incident: Incident) -> str:
    return f'{quote(incident.folder)}/{INCIDENT_FILE}'
