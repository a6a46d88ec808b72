"""Warnings at submission about `$$(Attr)` and `$$([expression])` that have no value today."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from matching.ads.expressions import references
from matching.descriptions.substitution import referred, uses_macros
from wms.core.errors import Finding
from wms.dags.language.size_limits import MAX_FINDINGS
from wms.dags.language.spec import DagSpec
from wms.jobs.description.job_ad import NAMES as OWN_NAMES
from wms.jobs.description.submit_file import SubmitFile

#: Attributes in the ad of every DAG, besides those of its description.
_OF_DAGS = frozenset(
    {
        "mytype", "targettype", "owner", "accountinggroup", "dagname", "dagid", "nodestotal",
        "nodesunfinished", "rematches", "requirements", "rank",
        *(f"lastmatchname{number}" for number in range(5)),
    }
)  # fmt: skip
_NOWHERE = {
    "": "neither the job nor the DAG nor any site's ad has {} today",
    "my": "neither the job nor the DAG has {}",
    "target": "no site's ad has {} today",
}


def uses_references(submit_files: Iterable[SubmitFile]) -> bool:
    """Whether a description refers to the site's ad."""
    return any("$$(" in text for file in submit_files for _, text in _command_texts(file))


def unknown_references(
    dag: DagSpec,
    submit_files: Mapping[str, SubmitFile],
    *,
    of_dag: Collection[str],
    of_sites: Collection[str],
) -> list[Finding]:
    """Warnings about references that neither jobs nor the DAG nor any site's ad has a value for
    today.

    A DAG with such a job is held: HTCondor holds the job. `of_dag` are the attributes of the DAG's
    description, `of_sites` those that some site's ad has, in lower case.
    """
    variables = (name for node in dag.nodes.values() for name in node.variables or ())
    given = {name[1:].lower() for name in variables if name[0] == "+"}
    given |= {name.lower() for name in of_dag}
    findings = (
        Finding(f"{name}: {message}", file.file, file.lines.get(name))
        for file in submit_files.values()
        # The attributes of a faulty file are not all known.
        if not file.findings
        for name, message in _unknown(file, given, of_sites)
    )
    return list(islice(dict.fromkeys(findings), MAX_FINDINGS))


def _unknown(
    file: SubmitFile, given: Collection[str], of_sites: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Commands with unknown references, each with a sentence about it."""
    names = [*file.attributes, *(name for queue in file.queues for name in queue.attributes)]
    own = {*OWN_NAMES, *_OF_DAGS, *given, *(name.lower() for name in names)}
    for name, text in _command_texts(file):
        for attribute, expression in referred(text):
            if attribute and attribute.lower() not in of_sites:
                yield name, _NOWHERE["target"].format(attribute)
            for each in [] if uses_macros(expression) else references(expression):
                is_own = each.scope != "target" and each.name in own
                is_of_site = each.scope != "my" and each.name in of_sites
                if not is_own and not is_of_site:
                    yield name, _NOWHERE[each.scope].format(each.name)


def _command_texts(file: SubmitFile) -> Iterator[tuple[str, str]]:
    yield from file.commands.items()
    for queue in file.queues:
        yield from queue.commands.items()
