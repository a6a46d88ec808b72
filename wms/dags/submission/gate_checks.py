"""Check of the people and groups that the gates of a submitted DAG name."""

from __future__ import annotations

from itertools import islice

from wms.accounting.models import AccountingGroup
from wms.core.errors import Finding
from wms.core.models import User
from wms.dags.language.size_limits import MAX_FINDINGS
from wms.dags.language.spec import DagSpec

_WORDS = {"user": "user", "group": "accounting group"}


def gate_faults(dag: DagSpec) -> list[Finding]:
    """Faults about users and groups that there are not: nobody could open such a gate.

    A query for each of both, and none without gates that name any.
    """
    named: dict[str, set[str]] = {"user": set(), "group": set()}
    for node in dag.gates:
        for each in node.gate.who if node.gate is not None else ():
            kind, name = each.split(":", 1)
            if kind in named:
                named[kind].add(name)
    known: dict[str, set[str]] = {"user": set(), "group": set()}
    if named["user"]:
        users = User.objects.filter(username__in=named["user"], is_active=True)
        known["user"] = set(users.values_list("username", flat=True))
    if named["group"]:
        groups = AccountingGroup.objects.filter(name__in=named["group"])
        known["group"] = set(groups.values_list("name", flat=True))
    unknown = {
        f"{kind}:{name}": f"there is no {_WORDS[kind]} {name[:80]}"
        for kind, names in named.items()
        for name in names - known[kind]
    }
    findings = (
        Finding(unknown[each], node.location.file, node.location.line, command="GATE")
        for node in dag.gates
        for each in (node.gate.who if node.gate is not None else ())
        if each in unknown
    )
    return list(islice(findings, MAX_FINDINGS))
