"""Compare what was planted with what was found."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from demo.outcome import Curve, Json
from demo.plan import Fault

#: The guarded run's loss must fall by this share of what the clean run's fell.
BAR = 0.9


@dataclass
class Finding:
    """A planted fault with the incidents that belong to it."""

    fault: Fault
    incidents: list[Json]
    reason: str  # why it does not count as found; '' if it does

    @property
    def is_found(self) -> bool:
        """Whether the guard found the fault, where it is, and acted on it."""
        return not self.reason


@dataclass
class Summary:
    """Everything the closing table shows of the guarded run."""

    findings: list[Finding]
    unplanned: list[Json]
    clean: Curve
    guarded: Curve
    weights_finite: bool | None
    judges_loss: bool
    skips: Mapping[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Part of the clean run's fall in loss that the guarded run reached."""
        fall = self.clean.first_loss - self.clean.final_loss
        if not fall > 0:
            return math.nan
        return (self.guarded.first_loss - self.guarded.final_loss) / fall

    def failures(self) -> list[str]:
        """Return what is not as it should be, in words."""
        failures = [f'{f.fault.name}: {f.reason}' for f in self.findings if f.reason]
        if self.weights_finite is None:
            failures.append('the guarded run left no checkpoint')
        elif not self.weights_finite:
            failures.append('the guarded run ends with weights that are not finite')
        if self.judges_loss and not self.share >= BAR:
            failures.append(
                f'the loss fell by {self.share:.1%} of what the clean run reached, '
                f'less than {BAR:.0%}'
            )
        return failures


def module_of(incident: Json) -> str | None:
    """Return the module an incident names: first bad value, else worst parameter."""
    module = (incident.get('first_bad') or {}).get('module')
    if module:
        return str(module)
    params = incident.get('params') or []
    return str(params[0]['name']).rpartition('.')[0] if params else None


def culprits_of(incident: Json) -> list[Any]:
    """Return the image ids that an incident blames."""
    samples = incident.get('samples') or []
    return [sample.get('img_id') for sample in samples if sample.get('culprit')]


def find_fault(fault: Fault, incidents: Sequence[Json]) -> Finding:
    """Return the incidents of one fault, and whether they say the right thing."""
    if fault.iteration is not None:
        own = [i for i in incidents if i.get('iteration') == fault.iteration]
        if not own:
            reason = f'no incident at iteration {fault.iteration}'
            return Finding(fault, own, reason)
    else:
        own = [i for i in incidents if _blames(i, fault)]
        if not own:
            return Finding(fault, own, f'no incident names image {fault.image_id}')
    for incident in own:
        reason = _wrong(fault, incident)
        if reason:
            return Finding(fault, own, f'iteration {incident["iteration"]}: {reason}')
    return Finding(fault, own, '')


def _blames(incident: Json, fault: Fault) -> bool:
    # ids are numbers in COCO and text in other data sets
    return str(fault.image_id) in [str(image) for image in culprits_of(incident)]


def _wrong(fault: Fault, incident: Json) -> str:
    if fault.module is not None:
        module = module_of(incident) or ''
        if f'{module}.'.find(f'{fault.module}.') != 0:
            return f'names {module or "no module"}, not {fault.module}'
    if incident.get('action') not in fault.actions:
        wanted = ' or '.join(fault.actions)
        return f'action is {incident.get("action")}, not {wanted}'
    return ''


def judge(
    faults: Sequence[Fault],
    incidents: Sequence[Json],
    *,
    clean: Curve,
    guarded: Curve,
    weights_finite: bool | None,
    judges_loss: bool,
    skips: Mapping[str, int],
) -> Summary:
    """Return the comparison of the guarded run with the plan and the clean run."""
    findings = [find_fault(fault, incidents) for fault in faults]
    known = [id(incident) for finding in findings for incident in finding.incidents]
    return Summary(
        findings=findings,
        unplanned=[incident for incident in incidents if id(incident) not in known],
        clean=clean,
        guarded=guarded,
        weights_finite=weights_finite,
        judges_loss=judges_loss,
        skips=skips,
    )
