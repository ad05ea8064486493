"""The charts of a log as plain dictionaries for plotly.js."""

from __future__ import annotations

import math
import re
from typing import Any, Sequence

from mmgradguard.core.log_analysis import LogEvent, Series
from mmgradguard.core.phrases import label
from mmgradguard.report.figure_parts import (
    BLUE,
    COLOURS,
    GREY,
    MAX_LABEL,
    ORANGE,
    RED,
    layout_of,
    positive,
    safe,
    top_axis,
    top_markers,
)
from mmgradguard.report.log_curves import (
    MAIN_BINS,
    TERM_BINS,
    LogCurves,
    finite,
    without_x,
)
from mmgradguard.report.log_page import LogPage
from mmgradguard.report.log_story import EventText
from mmgradguard.report.values import shorten
from mmgradguard.report.wrap import wrap

#: Loss terms that are drawn, and events that are marked.
MAX_TERMS, MAX_MARKS = 60, 300
#: Which part of the height the curves have above the learning rate.
_MAIN, _BELOW = [0.3, 1.0], [0.0, 0.2]
_HEIGHT = 460
_MAX_LINES, _LINE_WIDTH = 8, 60

_LAYER = re.compile(r'(?:[A-Za-z]+_\d+_)?(?:d|s|layer_)-?\d+(?=[._])')


def build_log_figures(
    page: LogPage, told: Sequence[EventText], lang: str
) -> dict[str, dict[str, Any]]:
    """Return the charts by the id of their place.

    Args:
        page: The curves.
        told: The events that the page tells; a click on a marker jumps there.
        lang: Language of the texts.
    """
    curves = LogCurves(page, lang)
    figures: dict[str, dict[str, Any]] = {}
    norm = page.column('grad_norm')
    if norm is not None:
        figures['norm'] = _norm_figure(curves, norm)
    losses = page.losses()
    if losses:
        figures['losses'] = _loss_figure(curves, losses)
    for index, figure in enumerate(figures.values()):
        _mark_events(figure, curves, told)
        figure['layout']['xaxis']['title'] = {'text': curves.x_title}
        figure['layout']['yaxis2'] = top_axis()
        lr = page.column('lr')
        if lr is not None and index == 0:
            _add_lr(figure, curves, lr)
    return figures


def _norm_figure(curves: LogCurves, norm: Sequence[float | None]) -> dict[str, Any]:
    curve = curves.curve('grad_norm', norm, MAIN_BINS, positive)
    curve['line'] = {'color': BLUE, 'width': 1.3}
    column = Series('grad_norm', norm)  # type: ignore[arg-type]
    data = [curve, *curves.nonfinite([column], MAIN_BINS)]
    max_norm = positive(curves.page.analysis.facts.max_norm)
    if max_norm is not None and curves.x:
        data.append(
            {
                'type': 'scatter',
                'mode': 'lines',
                'name': 'max_norm',
                'x': [curves.x[0], curves.x[-1]],
                'y': [max_norm, max_norm],
                'line': {'color': GREY, 'width': 1.5, 'dash': 'dash'},
                'hovertemplate': 'max_norm %{y:.4g}<extra></extra>',
                'visible': 'legendonly',  # of a DETR it is far below the norms
            }
        )
    return {'data': data, 'layout': layout_of('grad_norm', kind='log', height=_HEIGHT)}


def _loss_figure(curves: LogCurves, losses: Sequence[Series]) -> dict[str, Any]:
    drawn = losses[:MAX_TERMS]
    is_log = _spans_decades(drawn)
    data = []
    groups: dict[str, list[dict[str, Any]]] = {}
    for index, series in enumerate(drawn):
        bins = MAIN_BINS if index == 0 else TERM_BINS
        shown = positive if is_log else finite
        curve = curves.curve(series.name, series.values, bins, shown)
        colour = COLOURS[index % len(COLOURS)]
        curve['line'] = {'color': colour, 'width': 2 if index == 0 else 1}
        layer = _LAYER.match(series.name)
        if layer:
            groups.setdefault(safe(shorten(layer.group(), MAX_LABEL)), []).append(curve)
        data.append(curve)
    for name, members in groups.items():
        _fold(name, members)
    data += curves.nonfinite(drawn, TERM_BINS)
    kind = 'log' if is_log else 'linear'
    layout = layout_of('loss', kind=kind, height=_HEIGHT)
    layout['legend'] = {'groupclick': 'togglegroup', 'font': {'size': 11}}
    return {'data': data, 'layout': layout}


def _fold(name: str, members: Sequence[dict[str, Any]]) -> None:
    # one entry of the legend shows or hides all terms of a decoder layer
    for index, curve in enumerate(members):
        curve.update(legendgroup=name, showlegend=index == 0, visible='legendonly')
    members[0]['name'] = f'{name} ({len(members)})'


def _mark_events(
    figure: dict[str, Any], curves: LogCurves, told: Sequence[EventText]
) -> None:
    events = curves.page.analysis.events[:MAX_MARKS]
    if not events:
        return
    numbers = {id(text.event): n for n, text in enumerate(told, start=1)}
    texts = {id(text.event): text.text for text in told}
    points = []
    for event in events:
        text = texts.get(id(event), event.kind)
        folded = [safe(line) for line in wrap(text, _LINE_WIDTH)[:_MAX_LINES]]
        lines = [curves.where(event.first_row), *folded]
        points.append((curves.x[event.first_row], '<br>'.join(lines)))
    name = label('event', curves.lang)
    trace = without_x(top_markers(name, points, 'diamond', RED, 0.9))
    trace['marker']['color'] = [_colour(event) for event in events]
    # the page's script jumps from a diamond to the text of that number
    targets = [numbers.get(id(event), 1) for event in events]
    trace.update(meta='events', customdata=targets)
    figure['data'].append(trace)
    figure['layout']['shapes'] = [_shape(event, curves.x) for event in events]


def _shape(event: LogEvent, x: Sequence[int]) -> dict[str, Any]:
    colour = _colour(event)
    return {
        'type': 'rect',
        'layer': 'below',
        'xref': 'x',
        'yref': 'y domain',
        'x0': x[event.first_row],
        'x1': x[event.last_row],
        'y0': 0,
        'y1': 1,
        'fillcolor': colour,
        'opacity': 0.12,
        'line': {'color': colour, 'width': 1.5},
    }


def _colour(event: LogEvent) -> str:
    return ORANGE if event.recovered else RED


def _add_lr(
    figure: dict[str, Any], curves: LogCurves, lr: Sequence[float | None]
) -> None:
    curve = curves.curve('lr', lr, TERM_BINS, finite)
    curve.update(yaxis='y3', mode='lines', showlegend=False)
    curve['line'] = {'color': GREY, 'width': 1.5, 'shape': 'hv'}
    figure['data'].append(curve)
    layout = figure['layout']
    layout['yaxis']['domain'] = _MAIN
    layout['yaxis3'] = {
        **layout['yaxis'],
        'type': 'linear',
        'domain': _BELOW,
        'title': {'text': 'lr'},
        'tickformat': '.2~e',
        'rangemode': 'tozero',
        'nticks': 4,
    }
    layout['xaxis']['anchor'] = 'y3'


def _spans_decades(columns: Sequence[Series]) -> bool:
    low, high = math.inf, -math.inf
    for series in columns:
        values = [v for v in series.values if v is not None and math.isfinite(v)]
        low, high = min(low, *values, math.inf), max(high, *values, -math.inf)
    return low > 0 and 100 * low < high < math.inf
