"""Which parameters are shown together: 10 to 40 groups for a detector."""

from __future__ import annotations

import re
from typing import Sequence

from mmgradguard.core.checks import check_patterns

#: Enough to tell layers apart, and no more rows than a page shows well.
MIN_GROUPS, MAX_GROUPS = 20, 40


def group_parameters(
    names: Sequence[str], patterns: Sequence[str] | None = None
) -> list[str]:
    r"""Return the group of each parameter name.

    Without patterns the module tree is split where it is largest: the group with
    the most parameters gives way to its children until there are `MIN_GROUPS`, and
    never beyond `MAX_GROUPS`.

    Args:
        names: Dotted parameter names.
        patterns: Regular expressions; a parameter belongs to the first that matches
            (``re.search``), the group is what it matched, and the rest is ``'other'``.

    Raises:
        ValueError: If a pattern is no regular expression.

    >>> group_parameters(['a.x.weight', 'a.y.weight', 'b.weight'])
    ['a.x', 'a.y', 'b']
    >>> group_parameters(['enc.0.w', 'enc.1.w', 'head.w'], [r'enc\.\d+', 'head'])
    ['enc.0', 'enc.1', 'head']
    """
    if patterns is not None:
        checked = check_patterns('module_groups', patterns) or []
        compiled = [re.compile(pattern) for pattern in checked]
        return [_first_match(name, compiled) for name in names]
    owners = [name.rpartition('.')[0] for name in names]
    groups = {'': list(range(len(names)))}
    stuck: set[str] = set()
    while True:
        splittable = [group for group in groups if group not in stuck]
        if not splittable or len(groups) >= MIN_GROUPS:
            break
        largest = max(splittable, key=lambda group: (len(groups[group]), group))
        children = _children(largest, groups[largest], owners)
        if len(groups) - 1 + len(children) > MAX_GROUPS or list(children) == [largest]:
            stuck.add(largest)
            continue
        del groups[largest]
        groups.update(children)
    by_index = {i: group for group, indices in groups.items() for i in indices}
    return [by_index[i] or '(root)' for i in range(len(names))]


def _children(
    group: str, indices: Sequence[int], owners: Sequence[str]
) -> dict[str, list[int]]:
    """Split a group by the next part of the module name, skipping lone steps."""
    children: dict[str, list[int]] = {}
    depth = len(group.split('.')) if group else 0
    for i in indices:
        parts = owners[i].split('.') if owners[i] else []
        children.setdefault('.'.join(parts[: depth + 1]), []).append(i)
    return children


def _first_match(name: str, patterns: Sequence[re.Pattern[str]]) -> str:
    for pattern in patterns:
        match = pattern.search(name)
        if match:
            return match.group(0)
    return 'other'
