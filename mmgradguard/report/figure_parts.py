"""What all charts share: colours, axes, markers, and the escaping of texts.

plotly.js reads ``<b>``, ``<a href>`` and ``%{...}`` in some texts. So a text from a
file is escaped, and never becomes part of a `hovertemplate`.
"""

from __future__ import annotations

import html
import math
from typing import Any

BLUE, GREY, RED, ORANGE = '#2563a8', '#8a8f98', '#c62828', '#b26a00'
COLOURS = (BLUE, ORANGE, '#2e7d32', '#8e44ad', '#00838f', '#ad1457')
#: Longest label beside an axis or in a legend.
MAX_LABEL = 34

_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'


def safe(text: str) -> str:
    """Return ``text`` so that plotly.js shows it as it is."""
    return html.escape(text, quote=False)


def positive(value: float | None) -> float | None:
    """Return ``value`` if a log axis has a place for it."""
    return value if value is not None and math.isfinite(value) and value > 0 else None


def layout_of(title: str, *, kind: str = 'linear', height: int = 340) -> dict[str, Any]:
    """Return the layout of a chart over iterations."""
    axis = {'gridcolor': '#e6e8eb', 'zeroline': False, 'automargin': True}
    return {
        'height': height,
        'margin': {'l': 56, 'r': 16, 't': 44, 'b': 44},
        'font': {'family': _FONT, 'size': 12, 'color': '#1f2328'},
        'paper_bgcolor': '#ffffff',
        'plot_bgcolor': '#ffffff',
        'hovermode': 'closest',
        'hoverlabel': {'align': 'left'},
        'legend': {'orientation': 'h', 'y': 1.02, 'yanchor': 'bottom', 'x': 0},
        'xaxis': {**axis, 'title': {'text': 'iteration'}, 'tickformat': 'd'},
        'yaxis': {
            **axis,
            'title': {'text': title},
            'type': kind,
            'exponentformat': 'power' if kind == 'log' else 'e',
        },
    }


def top_axis() -> dict[str, Any]:
    """Return an axis from 0 to 1 of the chart's height, whatever the zoom."""
    return {
        'overlaying': 'y',
        'range': [0, 1],
        'fixedrange': True,
        'visible': False,
    }


def top_markers(
    name: str, points: list[tuple[int, str]], symbol: str, colour: str, height: float
) -> dict[str, Any]:
    """Return markers at ``height`` of the chart: their values fit on no axis."""
    return {
        'type': 'scatter',
        'mode': 'markers',
        'name': name,
        'x': [point[0] for point in points],
        'y': [height] * len(points),
        'yaxis': 'y2',
        'text': [point[1] for point in points],
        'hovertemplate': 'iteration %{x}<br>%{text}<extra></extra>',
        'marker': {'symbol': symbol, 'color': colour, 'size': 10},
    }
