"""Exceptions a caller can react to.

::

    GradGuardError
    +-- RunFilesError    a run's files are missing or unreadable
    +-- LogParseError    a training log cannot be read, or has no training rows
    +-- GuardStop        ends a training run on purpose, with the reason
"""

from __future__ import annotations


class GradGuardError(Exception):
    """Base of every exception that this package raises on purpose."""


class RunFilesError(GradGuardError):
    """A work directory has no guard files, or none that can be read."""


class LogParseError(GradGuardError):
    """There is no training log at a path, or none that can be read."""


class GuardStop(GradGuardError):
    """Training ends here; the message says why and what to do next."""

    def name_incident(self, folder: object) -> None:
        """Add to the message where to read on, if an incident was written."""
        if folder is not None:
            self.args = (f'{self}; see {folder}',)
