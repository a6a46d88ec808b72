"""Command that steers one DAG, job, cluster, schedule, pilot or archive from a shell."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from wms.actions.archives import ARCHIVES
from wms.actions.arguments import Argument, ArgumentType, Order
from wms.actions.clusters import CLUSTERS
from wms.actions.dags import DAGS
from wms.actions.jobs import JOBS
from wms.actions.schedules import SCHEDULES
from wms.actions.sites_and_pilots import PILOTS
from wms.core.actors import Actor
from wms.core.errors import PilotageError
from wms.core.labels import labels_in
from wms.core.models import User

#: What can be done, by the names of the commands.
_STEERINGS = {
    f"{action.name}-{kind.noun.lower()}": (kind, action)
    for kind in (DAGS, JOBS, CLUSTERS, SCHEDULES, PILOTS, ARCHIVES)
    for action in kind.in_shell
}


class Command(BaseCommand):
    help = (
        "Steer one DAG, job, cluster, schedule, pilot or archive, as the pages do; recorded with "
        "the user's name."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="what", required=True)
        for name, (kind, action) in _STEERINGS.items():
            assert action.shell is not None
            command = commands.add_parser(name, help=action.shell.help)
            command.add_argument(kind.noun, type=UUID if kind.handle == "uuid" else int)
            command.add_argument("--user", required=True, help="who does it: a user name")
            if action.takes_reason:
                command.add_argument("--reason", required=True, help="recorded with the change")
            for argument in action.arguments:
                command.add_argument(
                    f"--{argument.name.replace('_', '-')}",
                    dest=argument.name,
                    help=argument.help or argument.label,
                    **_reading(argument),
                )

    def handle(self, *args: Any, what: str, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        try:
            self.stdout.write(_carry_out(what, Actor.person(user), options))
        except PilotageError as error:
            raise CommandError(str(error)) from error


def _reading(argument: Argument) -> dict[str, Any]:
    """Options of the parser for an argument: a flag, names with commas, or a number."""
    if argument.type == ArgumentType.YES_NO:
        return {"action": "store_true"}
    if argument.type == ArgumentType.NAMES:
        return {"type": labels_in, "default": argument.default}
    return {"type": int, "default": argument.default, "required": argument.is_required}


def _carry_out(what: str, actor: Actor, options: dict[str, Any]) -> str:
    """Do it and tell what was done."""
    kind, action = _STEERINGS[what]
    assert action.shell is not None
    given = action.for_service(
        {argument.name: options[argument.name] for argument in action.arguments}
    )
    done = action.act(options[kind.noun], Order(actor, options.get("reason", ""), given))
    return action.shell.message.format(done)
