"""Bring tables and static files up to date; the programs of the portal wait for this."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from portal.cli.place import Place
from portal.embedded.private import make_private_folder, write_private


class Command(BaseCommand):
    help = "Migrate the tables, collect the static files, and mark both as done."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=options["verbosity"])
        call_command("collectstatic", interactive=False, verbosity=0)
        place = Place.from_environment()
        make_private_folder(place.run)
        write_private(place.is_migrated, "")
