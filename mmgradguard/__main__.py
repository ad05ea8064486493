"""``python -m mmgradguard``."""

from __future__ import annotations

import sys

from mmgradguard.cli.main import main

if __name__ == '__main__':
    sys.exit(main())
