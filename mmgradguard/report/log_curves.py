"""The curves of a log as traces for plotly.js, with the place of each point."""

from __future__ import annotations

import math
import os
from typing import Any, Callable, Iterable, Sequence

from mmgradguard.core.log_analysis import LogEvent, Series
from mmgradguard.core.phrases import label
from mmgradguard.report.figure_parts import MAX_LABEL, RED, safe, top_markers
from mmgradguard.report.log_page import LogPage
from mmgradguard.report.thinning import thin_range
from mmgradguard.report.values import clean_text, format_number, shorten

#: Bins of a main curve and of one loss term; each gives at most three points.
MAIN_BINS, TERM_BINS = 1500, 300
#: Rows of one event that are always kept; of a longer one the two ends.
_MAX_EVENT_ROWS, _MAX_KEPT = 50, 5000
#: Names of columns that one marker lists.
_MAX_NAMES = 8


class LogCurves:
    """Makes curves over the iterations of a page.

    Attributes:
        x: Where each row stands: its iteration, or its number where iterations are
            not printed or begin anew.
        x_title: What `x` counts.
    """

    def __init__(self, page: LogPage, lang: str) -> None:
        self.page, self.lang = page, lang
        in_order = page.is_printed() and page.analysis.facts.num_experiments == 1
        num_rows = len(page.lines)
        self.x = page.positions() if in_order else list(range(1, num_rows + 1))
        self.x_title = 'iteration' if in_order else 'row'
        self._keep = _event_rows(page.analysis.events)

    def curve(
        self,
        name: str,
        values: Sequence[float | None],
        num_bins: int,
        shown: Callable[[float | None], float | None],
    ) -> dict[str, Any]:
        """Return the trace of a column; ``shown`` drops what the axis cannot show."""
        rows = thin_range(values, num_bins, self._keep)
        x, y, where = self._points(rows, [shown(values[row]) for row in rows])
        return {
            'type': 'scatter',
            'mode': 'lines+markers' if len(rows) <= 300 else 'lines',
            'name': safe(shorten(clean_text(name), MAX_LABEL)),
            'x': x,
            'y': y,
            'customdata': where,
            'text': safe(clean_text(name, 120)),
            'hovertemplate': '%{text} %{y:.4g}<br>%{customdata}<extra></extra>',
            'connectgaps': False,
            'marker': {'size': 3.5},
        }

    def nonfinite(self, columns: Iterable[Series], num_bins: int) -> list[Any]:
        """Return a trace of what no axis shows, at the top; none if all is finite."""
        points: dict[int, list[str]] = {}
        for series in columns:
            name = safe(shorten(clean_text(series.name), MAX_LABEL))
            for row in thin_range(series.values, num_bins, self._keep):
                value = series.values[row]
                if value is not None and not math.isfinite(value):
                    points.setdefault(row, []).append(f'{name} {format_number(value)}')
        if not points:
            return []
        texts = [
            (self.x[row], '<br>'.join([*names[:_MAX_NAMES], self.where(row)]))
            for row, names in sorted(points.items())
        ]
        trace = top_markers(label('nonfinite', self.lang), texts, 'x', RED, 0.97)
        return [without_x(trace)]

    def where(self, row: int) -> str:
        """Return line, epoch and iteration of a row as printed."""
        page = self.page
        text = label('at_line', self.lang, line=page.lines[row])
        for name, number in (
            ('epoch', page.epochs[row]),
            ('iteration', page.iterations[row]),
        ):
            if number >= 0:
                text += f', {name} {number}'
        if len(page.paths()) > 1:
            files = [path for first, path in page.files if first <= row]
            name = clean_text(os.path.basename(files[-1]), 60) if files else ''
            text = f'{safe(name)}, {text}'
        return text

    def _points(
        self, rows: Sequence[int], values: Sequence[float | None]
    ) -> tuple[list[int | None], list[float | None], list[str]]:
        # a resume goes back: the pen is lifted there
        x: list[int | None] = []
        y: list[float | None] = []
        where: list[str] = []
        last = -1
        for row, value in zip(rows, values):
            position = self.x[row]
            if position < last:
                x.append(None)
                y.append(None)
                where.append('')
            x.append(position)
            y.append(value)
            where.append(self.where(row))
            last = position
        return x, y, where


def without_x(trace: dict[str, Any]) -> dict[str, Any]:
    """Return ``trace`` hovering its text alone, which names the place as printed."""
    trace['hovertemplate'] = '%{text}<extra></extra>'
    return trace


def finite(value: float | None) -> float | None:
    """Return ``value`` if a linear axis has a place for it."""
    return value if value is not None and math.isfinite(value) else None


def _event_rows(events: Sequence[LogEvent]) -> list[int]:
    rows: list[int] = []
    for event in events:
        if event.last_row - event.first_row < _MAX_EVENT_ROWS:
            rows += range(event.first_row, event.last_row + 1)
        else:
            rows += [event.first_row, event.last_row]
        if len(rows) > _MAX_KEPT:
            break
    return rows
