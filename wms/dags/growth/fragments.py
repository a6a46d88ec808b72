"""Fragments by which a DAG grows: read from its workspace and checked as at a submission.

A copy is kept beside the file, under a name of its own: what a node returned may be overwritten,
and a further run of the DAG reads it again. The caller of everything here holds the lock of the
DAG's row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.db import transaction

from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User
from wms.dags.growth.records import room_fault
from wms.dags.language.commands.growth import COPY_MARK, copy_path
from wms.dags.language.origin import Origin
from wms.dags.language.size_limits import MAX_FINDINGS, MAX_FRAGMENTS
from wms.dags.language.spec import DagSpec
from wms.dags.models import Dag, Growth, Node
from wms.dags.states import Binding, GrowthKind
from wms.dags.submission.checking import CheckedDag, check_dag
from wms.dags.submission.quota_usage import jobs_to_come
from wms.dags.submission.workspaces import WorkspaceFiles, put_file, read_file
from wms.jobs.models import Workspace, WorkspaceFile
from wms.jobs.quotas import check_quota

#: The engine reads fragments in its rounds.
_LIMIT_S = 10.0
_BATCH = 5000
_NUMBER = re.compile(r"[0-9]{3,5}\Z")


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment without faults: its path, that of its copy, and what was read."""

    path: str
    copy: str
    checked: CheckedDag

    @property
    def spec(self) -> DagSpec:
        """Its nodes and arcs."""
        return self.checked.dag


def read_fragment(dag: Dag, path: str, directory: str, *, arcs_around: int = 0) -> Fragment:
    """Read and check the fragment in a file of the DAG's workspace, and keep a copy.

    Names in it are looked up from the directory. `arcs_around` is the number of nodes to which each
    of its last nodes will have an arc. Raises InvalidInput with every fault, and QuotaExceeded;
    then nothing was changed.
    """
    content = read_file(dag.workspace_id, path)
    if content is None:
        raise InvalidInput.of("there is no such file", file=path)
    return fragment_of(dag, content, path, directory, arcs_around=arcs_around)


@transaction.atomic
def fragment_of(
    dag: Dag, content: bytes, path: str, directory: str, *, arcs_around: int = 0
) -> Fragment:
    """The same for a fragment that is given, and not in the workspace."""
    copy = copy_path(path, _free_number(dag, path))
    put_file(dag.workspace, copy, content)
    checked = check_fragment(
        copy,
        workspace=dag.workspace,
        owner=dag.owner.within(dag.workspace.limited_to),
        origin=replace(dag.origin, directory=directory),
        binding=Binding(dag.binding),
    )
    faults = checked.findings or list(_faults_in(dag, checked.dag, path, arcs_around))
    if faults:
        raise InvalidInput([_of_original(each, copy, path) for each in faults[:MAX_FINDINGS]])
    check_quota(owner=dag.owner, group=dag.accounting_group, jobs=jobs_to_come(checked.dag))
    return Fragment(path, copy, checked)


def check_fragment(
    path: str, *, workspace: Workspace, owner: User, origin: Origin, binding: Binding
) -> CheckedDag:
    """Check a fragment by itself, with the files of the workspace; faults are in `findings`."""
    with WorkspaceFiles(workspace.pk) as files:
        return check_dag(
            [path],
            files=files,
            owner=owner,
            origin=origin,
            binding=binding,
            limit_s=_LIMIT_S,
            is_fragment=True,
        )


def roots_of(spec: DagSpec) -> list[int]:
    """Positions of the nodes without parents in a fragment."""
    return sorted(set(range(len(spec.nodes))).difference(spec.arcs.children))


def leaves_of(spec: DagSpec) -> list[int]:
    """Positions of the nodes without children in a fragment."""
    return sorted(set(range(len(spec.nodes))).difference(spec.arcs.parents))


def _free_number(dag: Dag, path: str) -> int:
    """Number of the next copy of a file: no other run in the workspace has it."""
    start = f"{path}{COPY_MARK}"
    files = WorkspaceFile.objects.filter(workspace_id=dag.workspace_id, path__startswith=start)
    ends = (each.removeprefix(start) for each in files.values_list("path", flat=True))
    return 1 + max((int(end) for end in ends if _NUMBER.match(end)), default=0)


def _of_original(finding: Finding, copy: str, path: str) -> Finding:
    message = finding.message.replace(copy, path)
    return replace(finding, message=message, file=path if finding.file == copy else finding.file)


def _faults_in(dag: Dag, spec: DagSpec, path: str, arcs_around: int) -> Iterator[Finding]:
    """Faults of a fragment as a part of this DAG: names that are taken, and limits."""
    if fault := room_fault(dag, len(spec.nodes)):
        yield Finding(fault, file=path)
    most = conf().max_dag_arcs
    if len(spec.arcs) + len(leaves_of(spec)) * arcs_around > most:
        yield Finding(f"a fragment has at most {most} arcs, those around it included", file=path)
    grown = Growth.objects.filter(dag=dag).exclude(kind=GrowthKind.PASS)
    if grown.count() >= MAX_FRAGMENTS:
        yield Finding(f"a DAG grows by at most {MAX_FRAGMENTS} fragments", file=path)
    yield from _names_taken(dag, spec)


def _names_taken(dag: Dag, spec: DagSpec) -> Iterator[Finding]:
    all_names = list(spec.nodes)
    for at in range(0, len(all_names), _BATCH):
        names = all_names[at : at + _BATCH]
        taken = Node.objects.filter(dag=dag, name__in=names).values_list("name", flat=True)
        for name in sorted(taken):
            node = spec.nodes[name]
            message = f"the DAG has a node {name} already"
            yield Finding(message, *node.location, command=node.kind.upper())
