"""What can be done with a DAG as a whole: the words, the states in which it can be, the service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from portal.web.shared.forms import ReasonForm, RematchForm
from wms.core.models import User
from wms.core.transitions import Applied
from wms.dags.models import Dag
from wms.dags.policy import may_steer
from wms.dags.services.dags import halt_dags, hold_dags, release_dags, rematch_dags, remove_dags
from wms.dags.states import DAG_TRANSITIONS


@dataclass(frozen=True, slots=True)
class Steering:
    """Something that a person can do with a DAG."""

    event: str
    label: str
    explanation: str
    done: str
    service: Callable[..., Applied]
    form_class: type[ReasonForm] = ReasonForm

    @property
    def needs_reason(self) -> bool:
        """True when it is refused without a reason."""
        return DAG_TRANSITIONS[self.event].needs_reason

    def is_possible(self, dag: Dag) -> bool:
        """True when the DAG is in a state in which it can be done."""
        if self.event == "rematch" and (dag.site_id is None or dag.parent_node_id is not None):
            return False
        return dag.state in DAG_TRANSITIONS[self.event].sources


STEERINGS = {
    "hold": Steering(
        event="hold",
        label="Hold",
        explanation="What runs may finish; nothing more starts until the DAG is released. Waiting "
        "jobs leave the queues. The DAGs inside of it are held too.",
        done="is held",
        service=hold_dags,
    ),
    "halt": Steering(
        event="halt",
        label="Halt",
        explanation="Nothing more is submitted; queued and running jobs end, and their POST "
        "scripts run. Then the DAG ends with a rescue, unless it is released before.",
        done="is halted",
        service=halt_dags,
    ),
    "release": Steering(
        event="release",
        label="Release",
        explanation="The DAG goes on where it was held or halted.",
        done="is released",
        service=release_dags,
    ),
    "rematch": Steering(
        event="rematch",
        label="Rematch",
        explanation="Takes the DAG from its site. Its queued jobs leave the queues at once, what "
        "is done stays done, and it looks for another site.",
        done="is taken from its site",
        service=rematch_dags,
        form_class=RematchForm,
    ),
    "remove": Steering(
        event="remove",
        label="Remove",
        explanation="Ends the DAG: its jobs are killed, a rescue is written, a FINAL node runs "
        "once more. Removed again, it ends without that. It can be rescued later.",
        done="is removed",
        service=remove_dags,
    ),
}


def steerings_of(user: User, dag: Dag) -> list[Steering]:
    """What the user can do with the DAG now."""
    if not may_steer(user, dag):
        return []
    return [steering for steering in STEERINGS.values() if steering.is_possible(dag)]
