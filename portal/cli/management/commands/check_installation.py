"""Self-test of the installation as a command, run on this host as this account.

Exit code 0: no errors; 1: errors.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from portal.cli.self_test import lines_of
from portal.selftest.findings import has_errors
from portal.selftest.registry import run_all


class Command(BaseCommand):
    help = "Look for what keeps this installation from doing its work, or from doing it safely."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="answer in JSON")
        parser.add_argument("--all", action="store_true", help="tell what is well too")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = run_all()
        if options["json"]:
            report = {"findings": [each.as_json() for each in findings]}
            self.stdout.write(json.dumps(report, indent=2))
        else:
            self.stdout.write("\n".join(lines_of(findings, is_whole=options["all"])))
        sys.exit(1 if has_errors(findings) else 0)
