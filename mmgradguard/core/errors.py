"""Exceptions a caller can react to.

::

    GradGuardError
    +-- RunFilesError    a run's files are missing or unreadable
    +-- GuardStop        ends a training run on purpose, with the reason
"""

from __future__ import annotations


class GradGuardError(Exception):
    """Base of every exception that this package raises on purpose."""


class RunFilesError(GradGuardError):
    """A work directory has no guard files, or none that can be read."""


class GuardStop(GradGuardError):
    """Training ends here; the message says why and what to do next."""
