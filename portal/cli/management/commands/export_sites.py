"""Command that writes sites with their queues and limits as YAML to the standard output."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from wms.core.actors import Actor
from wms.exchange.yaml_writer import export_sites


class Command(BaseCommand):
    help = "Write sites, or those of these names, as YAML. It holds no credentials."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("names", nargs="*", metavar="NAME", help="a site; none: all")

    def handle(self, *args: Any, names: list[str], **options: Any) -> None:
        self.stdout.write(export_sites(Actor.system("export"), names), ending="")
