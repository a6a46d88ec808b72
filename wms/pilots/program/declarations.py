"""Declarations of what node checks may publish: of built-in checks, of added ones, of queues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Q, QuerySet

from matching.task_queues.published import attribute_name
from wms.core.errors import Finding, InvalidInput
from wms.pilots.agent.checks import BUILT_IN_ATTRIBUTES, NEEDED_SETTINGS
from wms.pilots.agent.checks.publication import (
    MOST_NAMES,
    PLAIN_NAME,
    TYPES,
    Declaration,
    variable_fault,
)
from wms.pilots.models import NodeCheck
from wms.sites.models import Queue


def checks_meant_for(queue: Queue) -> QuerySet[NodeCheck]:
    """Added checks for pilots of this queue in their order, those switched off included."""
    return NodeCheck.objects.filter(
        Q(site=None) | Q(site=queue.site_id),
        Q(group=None) | Q(group=queue.owner_group_id) & ~Q(group=None),
    )


def declared_by_built_in(name: str) -> Declaration:
    """Declaration of a built-in check; an empty one of another."""
    return Declaration(BUILT_IN_ATTRIBUTES.get(name, {}))


def declared_by(check: NodeCheck) -> Declaration:
    """Declaration of an added check."""
    return Declaration(check.attributes, tuple(check.variables))


def check_declaration(check: NodeCheck) -> None:
    """Raise InvalidInput with every fault in what an added check declares."""
    findings = [
        *(Finding(message, field="attributes") for message in _attribute_faults(check.attributes)),
        *(Finding(message, field="variables") for message in _variable_faults(check.variables)),
    ]
    if check.attributes and not findings:
        findings = [Finding(message, field="name") for message in _name_faults(check)]
    if findings:
        raise InvalidInput(findings)


def _attribute_faults(attributes: Any) -> list[str]:
    if not isinstance(attributes, dict):
        return ['must be a JSON object, as {"Available": "boolean"}']
    faults = [
        f"{name}: must begin with a letter, and have letters and digits only, at most 32"
        for name in attributes
        if not PLAIN_NAME.fullmatch(name)
    ]
    faults += [
        f"{name}: the type must be one of {', '.join(TYPES)}"
        for name, kind in attributes.items()
        if not isinstance(kind, str) or kind not in TYPES
    ]
    if len({name.lower() for name in attributes}) < len(attributes):
        faults.append("two names are the same: requirements do not tell a from A")
    return [*faults, *_too_many(attributes)]


def _variable_faults(variables: Any) -> list[str]:
    if not isinstance(variables, list) or not all(isinstance(name, str) for name in variables):
        return ['must be a JSON list of names, as ["SOFTWARE_DIR"]']
    told = ((name, variable_fault(name)) for name in variables)
    return [*(f"{name} {fault}" for name, fault in told if fault), *_too_many(variables)]


def _too_many(names: Iterable[str]) -> list[str]:
    count = len(list(names))
    return [f"has {count} names, allowed are {MOST_NAMES}"] if count > MOST_NAMES else []


def _name_faults(check: NodeCheck) -> list[str]:
    """Faults of the name of a check that publishes attributes, which begin with it."""
    if not PLAIN_NAME.fullmatch(check.name) or check.name.lower().startswith("node"):
        return [
            "must have letters and digits only, begin with a letter and not with 'node': the "
            "attributes that the check publishes begin with its name"
        ]
    same = NodeCheck.objects.filter(name__iexact=check.name).exclude(pk=check.pk).exists()
    is_built_in = check.name.lower() in BUILT_IN_ATTRIBUTES and check.pk is None
    if same or is_built_in:
        return [f"another check publishes attributes that begin with {check.name}"]
    return []


def declared_names(queues: Iterable[Queue]) -> Mapping[int, frozenset[str]]:
    """Names, in lower case, that checks of each queue may publish. A query."""
    columns = NodeCheck.objects.only("name", "attributes", "site", "group")
    added = list(columns.filter(is_enabled=True))
    return {queue.pk: _names_at(queue, added) for queue in queues}


def _names_at(queue: Queue, added: Iterable[NodeCheck]) -> frozenset[str]:
    declared = {
        name: attributes
        for name, attributes in BUILT_IN_ATTRIBUTES.items()
        if name not in NEEDED_SETTINGS or _has_setting(queue, name)
    }
    declared |= {each.name: each.attributes for each in added if _is_meant(each, queue)}
    return frozenset(
        attribute_name(check, name).lower()
        for check, attributes in declared.items()
        for name in attributes
    )


def _has_setting(queue: Queue, name: str) -> bool:
    entries = (entry for entry in queue.checks if entry.get("name") == name)
    return any(NEEDED_SETTINGS[name] in (entry.get("settings") or {}) for entry in entries)


def _is_meant(check: NodeCheck, queue: Queue) -> bool:
    at_site = check.site_id in {None, queue.site_id}
    return at_site and check.group_id in {None, queue.owner_group_id}
