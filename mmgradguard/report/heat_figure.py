"""The heat map of module norms over iterations."""

from __future__ import annotations

import math
from typing import Any, Iterable

from mmgradguard.report.figure_parts import (
    MAX_LABEL,
    RED,
    layout_of,
    positive,
    safe,
)
from mmgradguard.report.series import HeatMap
from mmgradguard.report.values import format_number, shorten


def module_figure(modules: HeatMap) -> dict[str, Any]:
    """Return the heat map of module norms; what the colours cannot show is marked."""
    labels = [safe(x) for x in _unique(shorten(n, MAX_LABEL) for n in modules.modules)]
    shades = [[_log10(value) for value in row] for row in modules.norm]
    low, high = _colour_range(shades)
    data = [_cells(modules, labels, shades, low, high)]
    bad, above = [], []
    for label, row in zip(labels, modules.norm):
        for x, value in zip(modules.iteration, row):
            point = (x, label, format_number(value))
            if value is not None and not math.isfinite(value):
                bad.append(point)
            elif value and math.log10(value) > high + 1:
                above.append(point)
    if bad:
        data.append(_marks(bad, 'x', RED))
    if above:
        data.append(_marks(above, 'triangle-up', RED))
    layout = layout_of('', height=max(280, 140 + 19 * len(labels)))
    layout['yaxis'] = {
        'type': 'category',  # or a module named `1` would be read as a number
        'categoryarray': labels,
        'autorange': 'reversed',
        'automargin': True,
        'tickmode': 'linear',
        'tickfont': {'size': 11},
        'showgrid': False,
        'zeroline': False,
    }
    return {'data': data, 'layout': layout}


def _cells(
    modules: HeatMap,
    labels: list[str],
    shades: list[list[float | None]],
    low: float,
    high: float,
) -> dict[str, Any]:
    ticks = _ticks(low, high)
    return {
        'type': 'heatmap',
        'x': modules.iteration,
        'y': labels,
        'z': shades,
        'text': [[format_number(value) for value in row] for row in modules.norm],
        'hovertemplate': 'iteration %{x}<br>%{y}<br>norm %{text}<extra></extra>',
        'colorscale': 'Viridis',
        'zmin': low,
        'zmax': high,
        'colorbar': {
            'title': {'text': 'norm'},
            'tickvals': [math.log10(tick) for tick in ticks],
            'ticktext': [format_number(tick) for tick in ticks],
            'thickness': 12,
        },
    }


def _marks(
    points: list[tuple[int, str, str]], symbol: str, colour: str
) -> dict[str, Any]:
    return {
        'type': 'scatter',
        'mode': 'markers',
        'x': [point[0] for point in points],
        'y': [point[1] for point in points],
        'text': [point[2] for point in points],
        'hovertemplate': 'iteration %{x}<br>%{y}<br>norm %{text}<extra></extra>',
        'marker': {
            'symbol': symbol,
            'color': colour,
            'size': 11,
            'line': {'color': '#ffffff', 'width': 1},
        },
        'showlegend': False,
    }


def _ticks(low: float, high: float) -> list[float]:
    # 1, 2, 5 in a narrow range, decades in a wide one; bounds are log10
    decades = range(math.floor(low), math.ceil(high) + 1)
    steps = (1.0, 2.0, 5.0) if high - low <= 2 else (1.0,)
    # 10.0**308 is the last power that a float holds
    ticks = [step * 10.0**power for power in decades if power <= 307 for step in steps]
    stride = max(1, len(ticks) // 8)
    return [tick for tick in ticks if low <= math.log10(tick or 1e-323) <= high][
        ::stride
    ]


def _unique(labels: Iterable[str]) -> list[str]:
    # two long names may be shortened to one
    seen: dict[str, int] = {}
    result = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        result.append(label if seen[label] == 1 else f'{label} ({seen[label]})')
    return result


def _colour_range(shades: list[list[float | None]]) -> tuple[float, float]:
    # one spike of 1e8 must not paint the rest of the run in one colour: it saturates
    values = sorted(value for row in shades for value in row if value is not None)
    if not values:
        return 0.0, 1.0
    low, high = values[len(values) // 50], values[(len(values) * 49) // 50]
    middle = (low + high) / 2
    return min(low, middle - 0.5), max(high, middle + 0.5)


def _log10(value: float | None) -> float | None:
    shown = positive(value)
    return None if shown is None else round(math.log10(shown), 3)
