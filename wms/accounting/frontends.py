"""Services on frontends, the collaborations whose pilots run only the jobs of their groups.

Also which group belongs to which frontend, as a value: `Belongings`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db import transaction

from matching.ads.classads import AdError
from matching.task_queues.start_expressions import check_start_expression
from wms.accounting.models import AccountingGroup, Frontend
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.saving import (
    check_row,
    check_same_name,
    kinds_that_forbid_deletion,
    save_audited,
)
from wms.core.errors import Conflict, Finding, InvalidInput
from wms.core.models import Role
from wms.core.policy import require_role
from wms.core.tokens import end_tokens_of_frontend

#: Name of the frontend that has no row, where people read it.
DEFAULT_FRONTEND = "the default frontend"
#: What stands for it in addresses; no frontend has this name.
DEFAULT_KEY = "-"


def called(key: str) -> str:
    """Name that people read for the frontend of this name, or for the default one's key."""
    return DEFAULT_FRONTEND if key == DEFAULT_KEY else key


@dataclass(frozen=True, slots=True)
class Belongings:
    """Frontends of groups: ids by the groups' names, and back. The default frontend's id is None.

    A group that is not named belongs to the default frontend, and so do jobs of no group.
    """

    frontend_of: Mapping[str, int] = field(default_factory=dict)
    groups_of: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def groups(self, frontend_id: int | None) -> tuple[str, ...]:
        """Groups whose jobs a frontend's pilots take; of the default one, those they do not."""
        if frontend_id is None:
            return tuple(self.frontend_of)
        return self.groups_of.get(frontend_id, ())


def read_belongings() -> Belongings:
    """The frontend of each group that has one. One query."""
    rows = AccountingGroup.objects.filter(frontend__isnull=False).order_by("name")
    frontend_of: dict[str, int] = dict(rows.values_list("name", "frontend_id"))
    groups_of: dict[int, list[str]] = defaultdict(list)
    for name, frontend_id in frontend_of.items():
        groups_of[frontend_id].append(name)
    return Belongings(frontend_of, {pk: tuple(names) for pk, names in groups_of.items()})


def check_frontend(frontend: Frontend) -> None:
    """Raise InvalidInput with the faults of a frontend."""
    check_row(frontend)
    check_same_name(frontend)
    check_start(frontend.start_expression)
    others = Frontend.objects.exclude(pk=frontend.pk)
    if others.filter(name__iexact=frontend.name).exists():
        raise InvalidInput.of("there is a frontend of this name in another case", field="name")


def check_start(text: str) -> None:
    """Raise InvalidInput with the fault of a start expression and its place; empty is none."""
    if not text.strip():
        return
    try:
        check_start_expression(text)
    except AdError as error:
        field, line = "start_expression", error.line_in_text
        finding = Finding(error.message, field=field, line=line, column=error.column)
        raise InvalidInput([finding]) from None


@transaction.atomic
def save_frontend(frontend: Frontend, *, actor: Actor, reason: str = "") -> None:
    """Check and store a frontend. Raises NotPermitted or InvalidInput.

    It has pilots where an entry of a queue names it, for the jobs of the groups that name it.
    """
    require_role(actor, Role.OPERATOR, "configure frontends")
    check_frontend(frontend)
    save_audited(frontend, target=f"frontend {frontend.name}", actor=actor, reason=reason)


def check_frontend_deletion(frontend: Frontend) -> None:
    """Raise Conflict when groups, entries or pilots are the frontend's."""
    if kinds := kinds_that_forbid_deletion(frontend):
        raise Conflict(
            f"There are {kinds} of the frontend {frontend.name}: it cannot be deleted. Switch it "
            "off instead."
        )


@transaction.atomic
def delete_frontend(frontend: Frontend, *, actor: Actor, reason: str = "") -> None:
    """Delete a frontend without groups, entries and pilots; tokens limited to it are revoked.

    Raises NotPermitted or Conflict.
    """
    require_role(actor, Role.OPERATOR, "configure frontends")
    Frontend.objects.select_for_update().filter(pk=frontend.pk).first()
    check_frontend_deletion(frontend)
    end_tokens_of_frontend(
        frontend.pk, actor=actor, reason=f"the frontend {frontend.name} is deleted"
    )
    record_action("delete frontend", target=f"frontend {frontend.name}", actor=actor, reason=reason)
    frontend.delete()
