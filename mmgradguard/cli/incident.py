"""``mmgradguard incident DIR``: one incident, as `report` prints it."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from mmgradguard.cli.exit_codes import CLEAN, FINDINGS
from mmgradguard.cli.pages import check_path
from mmgradguard.core.errors import RunFilesError
from mmgradguard.core.types import Verdict

NAME = 'incident'
HELP = 'Print one incident.'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb."""
    parser.add_argument(
        'incident', metavar='DIR', help='a folder with incident.json, or that file'
    )
    parser.add_argument('--json', action='store_true', help='print JSON')


def run(args: argparse.Namespace) -> int:
    """Print the incident; 1 if it is suspicious or fatal.

    Raises:
        RunFilesError: If there is no incident, or nothing of it can be read.
    """
    from mmgradguard.cli.output import print_json, print_text
    from mmgradguard.report.run_files import INCIDENT_FILE, read_incident
    from mmgradguard.report.terminal import render_incident

    folder = Path(check_path(args.incident))
    if folder.name == INCIDENT_FILE:
        folder = folder.parent
    incident = read_incident(folder, name=str(folder))
    if incident.kind is None and incident.schema_version is None:
        problem = incident.problems[0] if incident.problems else 'it is empty'
        raise RunFilesError(f'{folder}: not an incident: {problem}')
    if args.json:
        print_json(asdict(incident))
    else:
        print_text(render_incident(incident))
    return CLEAN if incident.verdict == Verdict.BENIGN.value else FINDINGS
