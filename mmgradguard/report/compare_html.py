"""A comparison as one HTML page with overlaid curves."""

from __future__ import annotations

import math
from typing import Any, Sequence

from mmgradguard.core.phrases import label
from mmgradguard.report.compare_story import CompareStory
from mmgradguard.report.comparison import Comparison, RunFigures
from mmgradguard.report.figure_parts import COLOURS, MAX_LABEL, layout_of, safe
from mmgradguard.report.html import fill_template
from mmgradguard.report.log_html import HTML_LANG
from mmgradguard.report.thinning import thin_range
from mmgradguard.report.values import shorten

_BINS = 800


def render_compare_html(comparison: Comparison, story: CompareStory) -> str:
    """Return the page; every text in it is escaped, plotly.js is inlined once.

    Raises:
        MissingPackageError: If Jinja2 or Plotly is not installed.
    """
    return fill_template(
        'compare.html.j2',
        build_compare_figures(comparison, story.lang),
        lang=HTML_LANG.get(story.lang, story.lang),
        story=story,
    )


def build_compare_figures(
    comparison: Comparison, lang: str
) -> dict[str, dict[str, Any]]:
    """Return a chart of each quantity that a run has, one curve for each run."""
    figures = {}
    columns: dict[str, list[Sequence[float | None] | None]] = {
        'grad_norm': [run.page.column('grad_norm') for run in comparison.runs],
        'loss': [run.page.total_values() for run in comparison.runs],
        'lr': [run.page.column('lr') for run in comparison.runs],
    }
    for name in comparison.terms:
        columns[name] = [run.page.column(name) for run in comparison.runs]
    for number, (name, values) in enumerate(columns.items()):
        if any(column is not None for column in values):
            figure = _figure(comparison, name, values, lang)
            figures[f'curve-{number}'] = figure
    return figures


def _figure(
    comparison: Comparison,
    name: str,
    columns: Sequence[Sequence[float | None] | None],
    lang: str,
) -> dict[str, Any]:
    data, finite = [], []
    for index, (run, column) in enumerate(zip(comparison.runs, columns)):
        if column is None:
            continue
        curve = _curve(run, column, lang, by_row=comparison.by_row)
        curve['line'] = {'color': COLOURS[index % len(COLOURS)], 'width': 1.5}
        data.append(curve)
        finite += [y for y in curve['y'] if y is not None]
    is_log = name == 'grad_norm' or (bool(finite) and max(finite) > 100 * min(finite))
    is_log = is_log and bool(finite) and min(finite) > 0
    title = safe(shorten(name, MAX_LABEL))
    layout = layout_of(title, kind='log' if is_log else 'linear', height=340)
    layout['yaxis']['rangemode'] = 'tozero'  # of a constant 1e-4 it draws -1 to 1
    layout['xaxis']['title'] = {'text': 'row' if comparison.by_row else 'iteration'}
    return {'data': data, 'layout': layout}


def _curve(
    run: RunFigures, column: Sequence[float | None], lang: str, *, by_row: bool
) -> dict[str, Any]:
    page = run.page
    x = list(range(1, len(page.lines) + 1)) if by_row else page.positions()
    rows = thin_range(column, _BINS)
    values = [column[row] for row in rows]
    return {
        'type': 'scatter',
        'mode': 'lines',
        'name': safe(run.name),
        'x': [x[row] for row in rows],
        'y': [v if v is not None and math.isfinite(v) else None for v in values],
        'customdata': [label('at_line', lang, line=page.lines[row]) for row in rows],
        'text': safe(run.name),
        'hovertemplate': '%{text}: %{y:.4g}<br>iteration %{x}, %{customdata}'
        '<extra></extra>',
    }
