"""Where the stability fragments lie, for a config's ``_base_``."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).resolve().parent / 'configs' / '_base_'


def config_path(name: str) -> str:
    """Return the absolute path of a preset, for use inside ``_base_``.

    Args:
        name: File name of a preset without ``.py``, such as ``'detr'``.

    Raises:
        ValueError: If there is no such preset; the message lists those there are.
    """
    path = _FOLDER / f'{name}.py'
    known = sorted(file.stem for file in _FOLDER.glob('*.py'))
    if name not in known:
        raise ValueError(f'no preset {name!r}; there are: {", ".join(known)}')
    return str(path)
