"""Command that changes the keys of credentials while the portal runs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from wms.core.actors import Actor
from wms.core.errors import PilotageError
from wms.pilots.credentials.rotation import add_key, drop_old_keys, reseal_all

_ACTOR = Actor.system("command line")


class Command(BaseCommand):
    help = "Seal all credentials anew with the first key. Nothing secret is printed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--new", action="store_true", help="before, put a fresh key first in the key file"
        )
        parser.add_argument(
            "--drop-old", action="store_true", help="after, leave only the first in the key file"
        )

    def handle(self, *args: Any, new: bool, drop_old: bool, **options: Any) -> None:
        try:
            if new:
                add_key()
            result = (drop_old_keys if drop_old else reseal_all)(actor=_ACTOR)
        except PilotageError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{result.resealed} credentials are sealed with the first key.")
        if result.unopened:
            raise CommandError(f"No key opens {', '.join(result.unopened)}: set each anew.")
