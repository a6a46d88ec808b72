"""Text of the description that a DAG has as a whole, written from its row.

DAGs without a description, and those that were submitted before its file was noted, have no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wms.core.labels import labels_in
from wms.dags.models import Dag
from wms.dags.states import Binding
from wms.jobs.description.submit_file import parse_submit_file

_ENVIRONMENT = "$$(SiteEnvironment:)"
_COMMANDS = {"requirements": "requirements", "rank": "rank"}


@dataclass(frozen=True, slots=True)
class Beside:
    """Options of a DAG beside its description: binding (empty: none), labels and priority."""

    binding: str
    labels: tuple[str, ...]
    priority: int | None


def beside(dag: Dag, text: str) -> Beside:
    """What a DAG has and its description does not give, so that an edit of that has its effect."""
    given = parse_submit_file(text, file="").commands
    labels = labels_in(given.get("labels", ""))
    binding = given.get("binding", "").strip().lower() or Binding.SITE.value
    has_priority = given.get("priority", "").strip() == str(dag.priority)
    return Beside(
        "" if binding == dag.binding else dag.binding,
        tuple(each for each in dag.labels if each not in labels),
        None if has_priority else dag.priority,
    )


def description_text(dag: Dag) -> str:
    """Description by which a DAG gets the ad, group, limits and environment that it has.

    Labels, priority and binding are asked for beside it.
    """
    return "".join(f"{line}\n" for line in _lines(dag))


def _lines(dag: Dag) -> Iterator[str]:
    # Requirements and Rank first: the database keeps no order.
    for name, expression in sorted(dag.ad_attributes.items(), key=_place):
        yield f"{_COMMANDS.get(name.lower(), f'+{name}')} = {_one_line(expression)}"
    if dag.accounting_group is not None:
        yield f"accounting_group = {dag.accounting_group.name}"
    if dag.concurrency_limits:
        limits = (f"{name}:{amount:g}" for name, amount in dag.concurrency_limits.items())
        yield f"concurrency_limits = {', '.join(limits)}"
    if dag.rematch_expression:
        yield f"periodic_rematch = {_one_line(dag.rematch_expression)}"
    if dag.environment_template != _ENVIRONMENT:
        yield f"environment = {_one_line(dag.environment_template)}"


def _place(attribute: tuple[str, str]) -> tuple[bool, bool, str]:
    name = attribute[0].lower()
    return name != "requirements", name != "rank", name


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())
