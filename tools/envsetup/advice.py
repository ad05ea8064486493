"""From the log of a step that failed to one line that says what to do."""

from __future__ import annotations

import re

#: Looked for in this order: what comes first causes what comes later.
_CAUSES = (
    (
        r'No space left on device|Disk quota exceeded',
        'the disk is full: free 4 GB where the environment and '
        'TMPDIR lie (12 if torch comes with CUDA)',
    ),
    (
        r'ensurepip is not available|No module named .?ensurepip',
        'this Python has no `venv`: install its venv package '
        '(Debian, Ubuntu: python3.11-venv)',
    ),
    (
        r'Python\.h: No such file',
        'Python.h is missing: install the dev package of this Python '
        '(Debian, Ubuntu: python3.11-dev; Fedora: python3.11-devel)',
    ),
    (
        r'Killed signal terminated program|virtual memory exhausted|out of memory'
        r'|Cannot allocate memory',
        'the compiler ran out of memory: try `MAX_JOBS=1 make setup`',
    ),
    (
        r"command '?[^' ]*(?:g\+\+|c\+\+|gcc|cc|clang)[^' ]*'? failed: No such file"
        r'|(?:g\+\+|c\+\+|gcc|cc)(?:: command)?(?:: | )not found',
        'there is no C++ compiler: install one (Debian, Ubuntu: g++; Fedora: gcc-c++)',
    ),
    (
        r"No module named '?pkg_resources",
        'setuptools is too new for mmcv: `pip install "setuptools<81"` in the '
        'environment',
    ),
    (
        r'CERTIFICATE_VERIFY_FAILED',
        "the package index's certificate is not trusted: set PIP_CERT to your "
        'authority file',
    ),
    (
        r'NewConnectionError|NameResolutionError|name resolution|ProxyError'
        r'|Network is unreachable|Max retries exceeded|ReadTimeout|ConnectTimeout'
        r'|Connection (?:refused|reset)|RemoteDisconnected|IncompleteRead',
        'the package index cannot be reached: check the network or the proxy '
        '(pip reads PIP_INDEX_URL and PIP_PROXY)',
    ),
    (
        r'No matching distribution found for (?P<name>[^\s]+)',
        'your package index has no {name} for this Python and platform',
    ),
    (
        r'ResolutionImpossible',
        'pip cannot get the pinned releases: the index is unreachable or lacks one, or '
        'a constraint in your pip configuration excludes it (`pip config list`)',
    ),
    (
        r'THESE PACKAGES DO NOT MATCH THE HASHES',
        'a download is damaged: `pip cache purge`, then again',
    ),
    (
        r'Permission denied',
        'a file cannot be written: check the owner of the environment folder',
    ),
)


def advise(log: str) -> str:
    """Return what to do about the failure that ``log`` shows."""
    for pattern, advice in _CAUSES:
        found = re.search(pattern, log)
        if found:
            return advice.format(**found.groupdict())
    return 'read the end of the log'


class SetupError(Exception):
    """A step failed; the message is one line: which, and what to do."""

    def __init__(self, step: str, advice: str) -> None:
        super().__init__(f'setup failed at: {step}. {advice[:1].upper()}{advice[1:]}')
