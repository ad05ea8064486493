"""The charts as plain dictionaries for plotly.js; nothing is imported for them."""

from __future__ import annotations

import math
from typing import Any, Iterable

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
from mmgradguard.report.heat_figure import module_figure
from mmgradguard.report.incident_record import Incident
from mmgradguard.report.model import RunReport
from mmgradguard.report.values import format_number, shorten
from mmgradguard.report.words import (
    describe_action,
    describe_kind,
    describe_when,
    describe_where,
)


def build_figures(report: RunReport) -> dict[str, dict[str, Any]]:
    """Return the charts that this run has data for, by the id of their place."""
    figures: dict[str, dict[str, Any]] = {}
    if report.steps.iteration or report.incidents:
        figures['norm'] = norm_figure(report)
    if report.modules.modules:
        figures['modules'] = module_figure(report.modules)
    if report.losses:
        figures['losses'] = loss_figure(report)
    for name, title in (('lr', 'lr'), ('loss_scale', 'loss_scale')):
        values = getattr(report.steps, name)
        if any(value is not None and math.isfinite(value) for value in values):
            figures[name] = _small_figure(report.steps.iteration, values, title)
    _share_range(figures, report)
    return figures


def _share_range(figures: dict[str, dict[str, Any]], report: RunReport) -> None:
    # incidents count too: one that raised has no step
    seen = [i.iteration + 1 for i in report.incidents if i.iteration is not None]
    seen += report.steps.iteration
    if not seen:
        return
    margin = max(0.5, (max(seen) - min(seen)) * 0.01)
    for figure in figures.values():
        figure['layout']['xaxis']['range'] = [min(seen) - margin, max(seen) + margin]


def norm_figure(report: RunReport) -> dict[str, Any]:
    """Return grad_norm over iterations; what is not finite sits at the top edge."""
    data = _norm_lines(report) + _step_markers(report)
    data += _incident_markers(report.incidents)
    layout = layout_of('grad_norm (total_norm), log scale', kind='log', height=420)
    layout['yaxis2'] = top_axis()
    layout['shapes'] = [
        {
            'type': 'line',
            'xref': 'x',
            'yref': 'paper',
            'x0': incident.iteration + 1,
            'x1': incident.iteration + 1,
            'y0': 0,
            'y1': 0.9,
            'line': {'color': RED, 'width': 1, 'dash': 'dot'},
        }
        for incident in report.incidents
        if incident.iteration is not None
    ]
    return {'data': data, 'layout': layout}


def loss_figure(report: RunReport) -> dict[str, Any]:
    """Return the losses; a term that is not finite sits at the top edge."""
    data = []
    for index, curve in enumerate(report.losses):
        data.append(
            {
                'type': 'scatter',
                'mode': 'lines',
                'name': safe(shorten(curve.term, MAX_LABEL)),
                'x': curve.iteration,
                'y': [v if math.isfinite(v) else None for v in curve.value],
                'connectgaps': True,
                'line': {
                    'width': 2 if index == 0 else 1,
                    'color': COLOURS[index % len(COLOURS)],
                },
                'visible': True if index < len(COLOURS) else 'legendonly',
            }
        )
    bad = [
        (x, f'{safe(shorten(curve.term, MAX_LABEL))} {value}')
        for curve in report.losses
        for x, value in zip(curve.iteration, curve.value)
        if not math.isfinite(value)
    ]
    layout = layout_of('loss', kind='log' if _spans_decades(report) else 'linear')
    layout['hovermode'] = 'x unified'
    if bad:
        data.append(top_markers('non-finite loss', bad, 'x', RED, 0.97))
        layout['yaxis2'] = top_axis()
    return {'data': data, 'layout': layout}


def _norm_lines(report: RunReport) -> list[dict[str, Any]]:
    steps = report.steps
    hover = 'iteration %{x}<br>grad_norm %{y:.4g}<br>%{customdata}<extra></extra>'
    norm = {
        'type': 'scatter',
        'mode': 'lines+markers' if len(steps.iteration) <= 500 else 'lines',
        'name': 'grad_norm (total_norm)',
        'x': steps.iteration,
        'y': [positive(value) for value in steps.total_norm],
        'customdata': [_step_text(report, i) for i in range(len(steps.step))],
        'hovertemplate': hover,
        'connectgaps': True,  # a finite step between two NaN stays visible
        'line': {'color': BLUE, 'width': 1.3},
        'marker': {'size': 3.5},
    }
    limits = [positive(value) for value in steps.max_norm]
    if limits == [None] * len(limits):
        return [norm]
    limit = {
        'type': 'scatter',
        'mode': 'lines',
        'name': 'max_norm',
        'x': steps.iteration,
        'y': limits,
        'line': {'color': GREY, 'width': 1.5, 'dash': 'dash', 'shape': 'hv'},
        'hovertemplate': 'max_norm %{y:.4g}<extra></extra>',
    }
    return [norm, limit]


def _small_figure(
    x: list[int], values: list[float | None], title: str
) -> dict[str, Any]:
    line = {
        'type': 'scatter',
        'mode': 'lines',
        'name': title,
        'x': x,
        'y': [v if v is not None and math.isfinite(v) else None for v in values],
        'line': {'color': BLUE, 'width': 1.5, 'shape': 'hv'},
        'hovertemplate': f'iteration %{{x}}<br>{title} %{{y:.4g}}<extra></extra>',
    }
    layout = layout_of('', kind='log' if title == 'loss_scale' else 'linear')
    layout.update(height=220, showlegend=False)
    layout['yaxis']['tickformat'] = '.2~e'
    finite = [v for v in values if v is not None and math.isfinite(v)]
    if title == 'lr' and max(finite) > 0:
        # of a constant 1e-4 plotly.js draws the range -1 to 1
        layout['yaxis']['range'] = [0, 1.1 * max(finite)]
    return {'data': [line], 'layout': layout}


def _step_text(report: RunReport, index: int) -> str:
    steps = report.steps
    text = f'epoch {steps.epoch[index]}, step {steps.step[index]} (0-based)'
    if steps.max_norm[index] is not None:
        text += f'<br>clip_coef {format_number(steps.clip_coef[index])}'
    if steps.skipped[index]:
        text += f'<br>skipped: {safe(str(steps.skipped[index]))}'
    return text


def _step_markers(report: RunReport) -> list[dict[str, Any]]:
    steps = report.steps
    bad, skipped = [], []
    for index, (x, norm) in enumerate(zip(steps.iteration, steps.total_norm)):
        text = f'grad_norm {format_number(norm)}<br>{_step_text(report, index)}'
        if not math.isfinite(norm):
            bad.append((x, text))
        elif steps.skipped[index]:
            skipped.append((x, text))
    markers = []
    if bad:
        markers.append(top_markers('non-finite step', bad, 'x', RED, 0.97))
    if skipped:
        markers.append(
            top_markers('skipped step', skipped, 'triangle-down', ORANGE, 0.97)
        )
    return markers


def _incident_markers(incidents: Iterable[Incident]) -> list[dict[str, Any]]:
    points = [
        (
            incident.iteration + 1,
            '<br>'.join(
                safe(shorten(text, 90))
                for text in (
                    describe_kind(incident),
                    describe_when(incident),
                    describe_where(incident),
                    describe_action(incident),
                )
            ),
            number,
        )
        for number, incident in enumerate(incidents, start=1)
        if incident.iteration is not None
    ]
    if not points:
        return []
    trace = top_markers('incident', [p[:2] for p in points], 'diamond', RED, 0.9)
    # the page's script jumps from a diamond to the card of that number
    trace.update(meta='incidents', customdata=[point[2] for point in points])
    return [trace]


def _spans_decades(report: RunReport) -> bool:
    values = [v for c in report.losses for v in c.value if math.isfinite(v)]
    return bool(values) and min(values) > 0 and max(values) > 100 * min(values)
