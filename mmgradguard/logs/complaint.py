"""Why there is no training row, in one line: what the input looks like instead."""

from __future__ import annotations

from mmgradguard.logs.table import LogTable

_BARE = 'rows, but none prints a loss or grad_norm'


class Complaint:
    """Gathers what was read in vain."""

    def __init__(self) -> None:
        self.num_lines = self.num_bare_rows = 0
        self.paths: list[str] = []
        self.formats: list[str] = []
        self.reasons: list[str] = []

    def add_file(self, path: str, num_lines: int, format_name: str | None) -> None:
        """Add a file that was read to its end."""
        self.paths.append(path)
        self.num_lines += num_lines
        if format_name:
            self.formats.append(format_name)

    def add_reason(self, reason: str) -> None:
        """Add why a file could not be read."""
        self.reasons.append(reason)

    def about(self, table: LogTable, num_bare_rows: int = 0) -> str:
        """Return the sentence for a table that stayed empty.

        Args:
            table: The table.
            num_bare_rows: Rows that print neither a loss nor a norm.
        """
        paths = ', '.join(self.paths)
        if num_bare_rows:
            return f'{paths}: {num_bare_rows} {_BARE}'
        header = table.sections[0].header
        if table.validations:
            looks = 'only validation rows'
        elif header.config_text or header.versions:
            is_old = 'MMCV' in header.versions and 'MMEngine' not in header.versions
            whose = 'an mmcv 1.x' if is_old else 'an mmengine'
            looks = f'{whose} header and no iteration'
        elif self.formats:
            looks = f'it looks like {self.formats[0]}, but no row prints a number'
        else:
            looks = 'nothing in it looks like the log of a training'
        return f'{paths}: no training rows in {self.num_lines} lines: {looks}'

    def __str__(self) -> str:
        read = f'{len(self.paths)} logs ({self.num_lines} lines)'
        bare = [f'{self.num_bare_rows} {_BARE}'] if self.num_bare_rows else []
        return '; '.join([read, *bare, *self.reasons])
