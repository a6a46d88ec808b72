"""Actions that write remarks: note, acknowledge, assign and hand back, which several kinds share.

They are not among the forms in the head of a page: the panel of notes has one for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from wms.actions.actions import Action, InApi, InBulk
from wms.actions.arguments import Argument, ArgumentType, Order
from wms.actions.kinds import of_many
from wms.remarks import services
from wms.remarks.models import MAX_TICKET
from wms.remarks.services import MAX_ACKNOWLEDGED_S, Written
from wms.remarks.states import RemarkEvent, SubjectKind
from wms.remarks.subjects import find_subject

_TICKET = Argument(
    "ticket",
    "Ticket",
    ArgumentType.TEXT,
    "",
    most_characters=MAX_TICKET,
    in_api="Address of a ticket: http or https.",
)
_FOR = Argument(
    "for_min",
    "For so many minutes",
    ArgumentType.WHOLE,
    None,
    "Empty: until its state changes, or it is handed back.",
    least=1,
    most=MAX_ACKNOWLEDGED_S // 60,
    parameter="for_s",
    factor=60,
    in_api="So long it holds, in seconds; null: until its state changes, or it is handed back.",
)
_PERSON = Argument(
    "person",
    "To",
    ArgumentType.TEXT,
    "",
    most_characters=150,
    in_api="Name of a user who may see it; empty: you.",
)


def remark_actions(kind: SubjectKind, noun: str, nouns: str) -> tuple[Action, ...]:
    """The actions that write remarks about subjects of this kind."""
    return (
        _action(
            kind, RemarkEvent.NOTE, "Note", services.note,
            f"Write a note about a {noun}", "Nothing else changes.",
            f"The note stands at each of the {nouns}, and in the shift log.",
        ),
        _action(
            kind, RemarkEvent.ACKNOWLEDGE, "Acknowledge", services.acknowledge,
            f"Say that a {noun} is known and looked after",
            "It stays in the lists of what needs attention, quieter, with who has acknowledged it.",
            f"The {nouns} stay in the lists of what needs attention, quieter, with your name.",
            arguments=(_FOR,),
        ),
        _action(
            kind, RemarkEvent.ASSIGN, "Assign", services.assign,
            f"Say who looks after a {noun}", "A person who may see it.",
            f"The {nouns} are assigned to you.",
            needs_reason=False, in_api=(_PERSON,),
        ),
        _action(
            kind, RemarkEvent.HAND_BACK, "Hand back", services.hand_back,
            f"End the acknowledgement and the assignment of a {noun}",
            "What was written stays.",
            f"The {nouns} are neither acknowledged nor assigned any more.",
            needs_reason=False,
        ),
    )  # fmt: skip


def _action(
    kind: SubjectKind,
    event: RemarkEvent,
    label: str,
    service: Callable[..., Written],
    summary: str,
    description: str,
    in_bulk: str,
    *,
    needs_reason: bool = True,
    arguments: Sequence[Argument] = (),
    in_api: Sequence[Argument] = (),
) -> Action:
    name = event.value.replace("_", "-")
    text = "The reason is its text; needs one." if needs_reason else "The reason is its text."
    return Action(
        name,
        label,
        one=_one(kind, service),
        api=InApi(
            summary,
            f"{description} {text} The answer is the remark, as in the shift log.",
            body=f"Text of the remark ({name}), the address of a ticket, and what else it says.",
            body_name=f"{label.title().replace(' ', '')}{kind.title()}",
            arguments=(*in_api, _TICKET),
        ),
        bulk=InBulk(in_bulk, of_many(partial(service, kind))),
        needs_reason=needs_reason,
        arguments=arguments,
    )


def _one(kind: SubjectKind, service: Callable[..., Written]) -> Callable[[object, Order], Written]:
    """Single call of a service, for the subject with this handle."""

    def call(which: object, order: Order) -> Written:
        user = order.actor.user
        assert user is not None
        subject = find_subject(user, kind, str(which))
        # Notes are never stale: whoever writes one decides nothing.
        seen: Mapping[str, str] = {} if service is services.note else {"seen": order.seen}
        return service(
            kind, [subject.pk], actor=order.actor, reason=order.reason, **order.arguments, **seen
        )

    return call


#: Names of the actions, by which faces find them among others.
REMARK_ACTIONS = frozenset(event.value.replace("_", "-") for event in RemarkEvent)
