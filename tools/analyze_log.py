#!/usr/bin/env python3
"""``mmgradguard analyze`` from a source tree in which nothing is installed.

Needs nothing but Python 3.8 or later: ``python tools/analyze_log.py LOG``.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmgradguard.cli.main import main

if __name__ == '__main__':
    sys.exit(main(['analyze', *sys.argv[1:]]))
