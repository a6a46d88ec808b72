"""Command that migrates the tables and collects the static files; other programs wait for its mark.

From then on the first turn of each control loop is awaited. Its progress is told as steps of the
start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.core.management.commands import migrate
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from portal.cli.state_directory import StateDirectory
from portal.cli.static_collection import collect_static_files
from portal.cli.steps import Steps
from portal.embedded.private import make_private_folder, write_private
from wms.core.loops import await_first_turns

#: Migrations are many and quick: one of so many is told, and the last one.
_MIGRATIONS_A_STEP = 10


class Command(BaseCommand):
    help = "Migrate the tables, collect the static files, and mark both as done."

    def handle(self, *args: Any, **options: Any) -> None:
        place = StateDirectory.from_environment()
        make_private_folder(place.run)
        steps = Steps(place)
        call_command(_Migrate(steps.tell), interactive=False, verbosity=options["verbosity"])
        await_first_turns()
        collect_static_files(steps.tell)
        write_private(place.is_migrated, "")
        steps.tell("tables and static files are up to date")


class _Migrate(migrate.Command):
    """Tells how many migrations were applied."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        self._tell, self._total, self._done = tell, len(plan), 0

    def migration_progress_callback(self, action: str, *args: Any, **options: Any) -> None:
        super().migration_progress_callback(action, *args, **options)
        if action == "apply_success":
            self._done += 1
            if self._done % _MIGRATIONS_A_STEP == 0 or self._done == self._total:
                self._tell(f"migrations applied: {self._done} of {self._total}")
