"""Command for bulk operations: preview of an action on filtered objects, then its confirmation."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.http import QueryDict
from django.utils import timezone

from portal.lists.selection import by_filter
from wms.actions.arguments import ArgumentType
from wms.actions.registry import KINDS, find_kind
from wms.bulk.models import BulkOperation
from wms.bulk.preview import preview_of
from wms.bulk.services import Confirmation, confirm, freeze
from wms.core.actors import Actor
from wms.core.errors import PilotageError
from wms.core.labels import labels_in
from wms.core.models import User

_TRUTH = {"true": True, "false": False}


class Command(BaseCommand):
    help = "Act on all objects that a filter means, as the lists do; recorded with the user's name."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("list", choices=list(KINDS))
        parser.add_argument("action", help="hold, release, remove, ...: what the list offers")
        parser.add_argument("filter", help="as in the address of the list: owner=alice&state=idle")
        parser.add_argument("--user", required=True, help="who does it: a user name")
        parser.add_argument("--reason", default="", help="recorded with each object")
        parser.add_argument(
            "--with", action="append", default=[], metavar="NAME=VALUE", dest="given",
            help="an argument of the action: true, false, a whole number, or words with commas; "
            "may be repeated",
        )  # fmt: skip
        parser.add_argument(
            "--confirm", type=int, metavar="COUNT", help="do it, if it is so many; else only look"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        try:
            operation = _frozen(user, options)
            self.stdout.write("\n".join(_preview_lines(operation, user)))
            if options["confirm"] is None:
                self.stdout.write(f"Nothing was done: --confirm {operation.frozen_count} does it.")
                return
            said = Confirmation(seen=options["confirm"], typed=options["confirm"])
            confirm(operation.pk, said, actor=Actor.person(user))
        except PilotageError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Bulk operation {operation.pk} is confirmed.")


def _frozen(user: User, options: dict[str, Any]) -> BulkOperation:
    asked = dict(QueryDict(options["filter"]).lists())
    chosen = by_filter(options["list"], asked, user, now=timezone.now())
    action = find_kind(options["list"]).find_action(options["action"])
    names = {each.name for each in action.arguments if each.type == ArgumentType.NAMES}
    return freeze(
        chosen,
        action=options["action"],
        actor=Actor.person(user),
        reason=options["reason"],
        arguments=dict(_argument(text, names) for text in options["given"]),
    )


def _argument(text: str, names: Collection[str]) -> tuple[str, Any]:
    """A name and its value, several words for `names`; the action checks whether they fit."""
    name, _, value = text.partition("=")
    if name in names:
        return name, labels_in(value)
    if value in _TRUTH:
        return name, _TRUTH[value]
    return name, int(value) if value.isascii() and value.isdigit() and len(value) < 19 else value


def _preview_lines(operation: BulkOperation, user: User) -> list[str]:
    kind, found = find_kind(operation.list_name), preview_of(operation, user)
    lines = [f"{operation.action}: {kind.counted(found.total)}"]
    lines += [f"  {count:,} {state}" for state, count in found.states.items()]
    lines += [f"  {count:,} of {name}" for name, count in found.groups]
    lines += [f"  {count:,} left as they are: {why}" for why, count in found.skipped]
    return [*lines, *(f"  {effect}" for effect in found.effects)]
