"""Command that changes keys while the portal runs, and puts all that is stored under the new ones.

It may be killed and repeated: what was done stays done, and every step is safe at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from portal.config.live_keys import add_secret_key, drop_former_keys, follow_files
from wms.core.actors import Actor
from wms.core.database.locks import wait_for_locks
from wms.core.errors import Conflict, PilotageError
from wms.core.key_rotation import KeyKind, Need, Renewed, former_keys_needed, renew_all
from wms.pilots.credentials.rotation import add_key, drop_old_keys

_ACTOR = Actor.system("command line")
_NAMES = {"secret-key": KeyKind.SECRET, "credential-keys": KeyKind.CREDENTIALS}


class Command(BaseCommand):
    help = (
        "Put all that is stored under keys under the first ones, and tell when former keys can go. "
        "Nothing secret is printed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--only", choices=list(_NAMES), help="keys of this kind alone, in place of both"
        )
        parser.add_argument(
            "--new", action="store_true", help="before, put a fresh key first in each file of keys"
        )
        parser.add_argument(
            "--drop-old", action="store_true",
            help="after, leave only the first key in each file, if nothing needs another one",
        )  # fmt: skip

    def handle(
        self, *args: Any, only: str | None, new: bool, drop_old: bool, **options: Any
    ) -> None:
        kinds = {_NAMES[only]} if only else set(KeyKind)
        try:
            if new:
                self._add(kinds)
            results = renew_all(kinds, actor=_ACTOR, tell=self._tell)
            if drop_old:
                self._drop(kinds)
        except PilotageError as error:
            raise CommandError(str(error)) from None
        self._report(results)
        if KeyKind.SECRET in kinds and settings.SECRET_KEY_FALLBACKS:
            self._say_when(timezone.now())

    def _add(self, kinds: set[KeyKind]) -> None:
        if KeyKind.CREDENTIALS in kinds:
            add_key()
        if KeyKind.SECRET in kinds:
            with _alone():
                add_secret_key()

    def _drop(self, kinds: set[KeyKind]) -> None:
        if KeyKind.CREDENTIALS in kinds:
            drop_old_keys(actor=_ACTOR)
        if KeyKind.SECRET in kinds:
            with _alone():
                follow_files()
                if needs := former_keys_needed(timezone.now()):
                    raise Conflict(f"Former secret keys are still needed: {_told(needs)}.")
                drop_former_keys()

    def _tell(self, what: str, done: int, total: int) -> None:
        self.stdout.write(f"{what}: {done} of {total}")

    def _report(self, results: Sequence[Renewed]) -> None:
        for each in results:
            self.stdout.write(
                f"{each.kept.what}: {each.renewed} of {each.seen} put under the first key."
            )
        lost = [name for each in results for name in each.lost]
        if lost:
            raise CommandError(f"No key opens {', '.join(lost)}: set each anew.")

    def _say_when(self, now: datetime) -> None:
        needs = former_keys_needed(now)
        if needs:
            self.stdout.write(f"Former secret keys are still needed: {_told(needs)}.")
        else:
            self.stdout.write("Nothing needs former secret keys any more: --drop-old removes them.")


@contextmanager
def _alone() -> Iterator[None]:
    """Keep others who would write the files of the secret key waiting."""
    with transaction.atomic():
        wait_for_locks(["files of the secret key"])
        yield


def _told(needs: Sequence[Need]) -> str:
    return ", ".join(
        f"{each.what} until {each.until:%Y-%m-%d %H:%M} UTC"
        if each.until is not None
        else f"{each.what} ({each.count})"
        for each in needs
    )
