"""Collects what stands before the rows of a text log: environment and config."""

from __future__ import annotations

import re
from typing import Callable

from mmgradguard.logs.builder import TableBuilder
from mmgradguard.logs.config_text import parse_config
from mmgradguard.logs.environment import read_environment
from mmgradguard.logs.table import Header

#: Characters kept of an environment, and of a config: the rest is no part of them.
_MAX_CHARS = 2**20
_ENVIRONMENT = re.compile(r'(?:Environment info|System environment)\s*:\s*$')
_CONFIG = re.compile(r'(?:^|[\s-])Config\s*:\s*(\S.*)?$')
_RESUMES = re.compile(
    r'resumed (?:from )?(?:the )?(?:latest )?(?:epoch|checkpoint|iter)'
    r'|resum(?:e|ed|ing) from|auto[- _]resum',
    re.IGNORECASE,
)
#: What a logger puts before a message; a config ends where the next one begins. No
#: repeat without a limit: a line may be a megabyte.
LOGGED = re.compile(
    r'\d\d[/:-]?\d\d[ T]\d\d:\d\d:\d\d\S{0,40} - \S{1,100} - '
    r'(?:\x1b\[[\d;]*m)*(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)'
)
#: A rule, or a message that is empty: mmengine logs both around its header.
_NOTHING = re.compile(r'[-=*#\s]+|.* - (?:INFO|WARNING) -\s*')


class HeaderReader:
    """Takes the lines that are neither rows nor metrics.

    Args:
        builder: Told of each header, and of each line that says that it resumes.
        flush: Called before, to hand it the rows up to there.
    """

    def __init__(self, builder: TableBuilder, flush: Callable[[], None]) -> None:
        self.builder, self._flush = builder, flush
        self._header: Header | None = None
        self._environment: list[str] = []
        self._config: list[str] | None = None
        self._prefix, self._room = '', _MAX_CHARS

    def take(self, line: str) -> bool:
        """Read a line; return whether it is part of a header."""
        is_blank = not line
        if self._prefix and line.startswith(self._prefix):
            line = line[len(self._prefix) :]
        logged = LOGGED.search(line) if line else None
        is_logged = logged is not None
        if logged is not None:
            # the year belongs to the stamp, not to what a cluster put before it
            prefix = re.sub(r'\d{2,4}[/-]?$', '', line[: logged.start()])
            self._prefix = prefix or self._prefix
        if self._config is not None and not is_logged:
            self._keep(self._config, line)
            return True
        if not line:
            return not is_blank
        if self._config is not None:
            self._end_config()
        if is_logged and _RESUMES.search(line):
            self._flush()
            self.builder.note_resume()
        if _ENVIRONMENT.search(line) and (is_logged or self._header is None):
            self._begin()
        config = _CONFIG.search(line)
        if config and (is_logged or line.lstrip().startswith('Config')):
            self._begin_config(config.group(1))
        if self._header is None:
            return _NOTHING.fullmatch(line) is not None
        self._keep(self._environment, line)
        return True

    def end(self) -> None:
        """End the header: a row follows, or the file ends."""
        if self._header is None:
            return
        if self._config is not None:
            self._end_config()
        read_environment('\n'.join(self._environment), self._header)
        self._header = None

    def _begin(self) -> None:
        # mmengine says 'System environment' after a logged line of dashes: one header
        if self._header is not None and self._header.config_text is None:
            return
        self.end()
        self._header, self._environment, self._room = Header(), [], _MAX_CHARS
        self._flush()
        self.builder.note_header(self._header)

    def _begin_config(self, rest: str | None) -> None:
        if self._header is None or self._header.config_text is not None:
            self._begin()
        self._config, self._room = [rest] if rest else [], _MAX_CHARS

    def _end_config(self) -> None:
        text = '\n'.join(self._config or [])
        self._config = None
        if self._header is not None and self._header.config_text is None:
            self._header.config_text = text
            self._header.config = parse_config(text)

    def _keep(self, lines: list[str], line: str) -> None:
        self._room -= len(line) + 1
        if self._room >= 0:
            lines.append(line)
