"""A command that must fail, in one line."""

from __future__ import annotations

from mmgradguard.cli.main import main


def failure_of(capsys, *argv):
    """Run a command that must fail and return its one line."""
    assert main(list(argv)) == 2
    streams = capsys.readouterr()
    assert streams.out == ''
    assert streams.err.startswith('mmgradguard: ')
    assert streams.err.count('\n') == 1
    assert 'Traceback' not in streams.err
    return streams.err
