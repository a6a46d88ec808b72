"""Kinds of rows of an archive with their fields: names as in the API, and what a value may be.

A reader takes exactly these fields; a further one is a new version of the format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final


class Type(StrEnum):
    """Type of a value; one that may be null has a question mark."""

    TEXT = "text"
    WHOLE = "whole"
    AMOUNT = "amount"
    FLAG = "flag"
    TIME = "time"
    LIST = "list"
    OBJECT = "object"


_TYPES: Final[Mapping[Type, tuple[type, ...]]] = {
    Type.TEXT: (str,),
    Type.WHOLE: (int,),
    Type.AMOUNT: (int, float),
    Type.FLAG: (bool,),
    Type.TIME: (str,),
    Type.LIST: (list,),
    Type.OBJECT: (dict,),
}
_MOST_WHOLE: Final = 2**63


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a row."""

    type: Type
    is_nullable: bool = False

    def fault(self, value: Any) -> str:
        """Fault of a value; empty when nothing is wrong."""
        if value is None:
            return "" if self.is_nullable else "is null"
        # By the exact type: to Python true is a number.
        if type(value) not in _TYPES[self.type]:
            return f"is no {self.type}"
        if self.type is Type.WHOLE and not -_MOST_WHOLE <= value < _MOST_WHOLE:
            return "is too large a number"
        return "is no time in UTC" if self.type is Type.TIME and not _is_time(value) else ""


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return text.endswith("Z")


def fields_of(**types: str) -> Mapping[str, Field]:
    """Fields by their names, of types as texts."""
    return {
        name: Field(Type(text.removesuffix("?")), text.endswith("?"))
        for name, text in types.items()
    }


_STATE = {"state": "text", "state_since": "time", "state_reason": "text"}

#: By the name of the folder in which their chunks are, in the order in which they are written.
KINDS: Final[Mapping[str, Mapping[str, Field]]] = {
    "dags": fields_of(
        id="whole", name="text", owner="text", accounting_group="text?", **_STATE,
        state_cause="text", status="whole", exit_code="whole?", site="text?", binding="text",
        nodes="object", root="whole?", outer="whole?", outer_node="whole?", previous_run="whole?",
        rescue_number="whole", is_followed="flag", created_at="time", matched_at="time?",
        ended_at="time", labels="list", priority="whole?", dag_files="list", directory="text",
        ad_attributes="object", options="object", category_limits="object", success_rule="text",
    ),
    "nodes": fields_of(
        dag="whole", id="whole", name="text", kind="text", **_STATE, state_cause="text",
        submit_description="text?", directory="text", variables="object",
        unfinished_parents="whole", priority="whole", category="text", retry_number="whole",
        max_retries="whole", job="whole?",
    ),
    "arcs": fields_of(dag="whole", parent="whole", child="whole", is_weak="flag"),
    "jobs": fields_of(
        dag="whole", id="whole", name="text", **_STATE, state_cause="text", cluster_id="whole",
        process="whole", priority="whole", attempt_number="whole", max_attempts="whole",
        created_at="time", executable="text", arguments="list", input_files="list",
        output_files="list", stdout_name="text", stderr_name="text", needs="object",
        wall_limit_s="whole",
    ),
    "attempts": fields_of(
        dag="whole", job="whole", number="whole", pilot="text?", site_name="text", host="text",
        fence="text", cores="whole", memory_mb="whole", gpus="whole", matched_at="time",
        started_at="time?", ended_at="time?", outcome="text", reason="text", stopped_by="text",
        exit_code="whole?", signal="whole?", wall_s="amount?", cpu_s="amount?",
        max_rss_mb="amount?", usage="object?",
    ),
    "events": fields_of(
        dag="whole", node="text?", job="whole?", id="whole", event="text", from_state="text",
        to_state="text", actor="text", reason="text", cause="text", facts="object",
        created_at="time",
    ),
    "script_runs": fields_of(
        dag="whole", id="whole", node="whole", node_name="text", kind="text", retry_number="whole",
        run_number="whole", executable="text", arguments="list", directory="text", state="text",
        asked_at="time", due_at="time?", started_at="time?", ended_at="time?", exit_code="whole?",
        failure="text", output_bytes="whole?",
    ),
    "placements": fields_of(
        dag="whole", id="whole", kind="text", owner="text", source_url="text",
        destination_url="text", source_storage="text?", destination_storage="text?", choice="text",
        host="text", allocation_name="text", **_STATE, attempt_number="whole",
        max_attempts="whole", due_at="time?", created_at="time", ended_at="time?",
    ),
    "placement_attempts": fields_of(
        dag="whole", request="whole", number="whole", source_scheme="text",
        destination_scheme="text", source_url="text", destination_url="text", source_end="text",
        destination_end="text", started_at="time", ended_at="time?", exit_code="whole?",
        message="text", note="text", size_bytes="whole?",
    ),
    "files": fields_of(
        path="text", size_bytes="whole", sha256="text", job="whole?", modified_at="time",
        content="text?",
    ),
}  # fmt: skip


def fault_of(kind: str, row: Any) -> str:
    """Fault of a row of a kind, with the field; empty when nothing is wrong."""
    fields = KINDS[kind]
    if type(row) is not dict:
        return "is no object"
    if row.keys() != fields.keys():
        odd = sorted(row.keys() ^ fields.keys())[0]
        return f"{odd[:64]!r} is {'missing' if odd in fields else 'no field of it'}"
    for name, field in fields.items():
        if fault := field.fault(row[name]):
            return f"{name} {fault}"
    return ""
