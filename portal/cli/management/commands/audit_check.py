"""Command that verifies the audit trail: exit code 0 whole, 1 broken, 2 not verified."""

from __future__ import annotations

import json
import re
from argparse import ArgumentTypeError
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from wms.core.audit_chain.checking import Chain, check_chain

BROKEN, NOT_VERIFIED = 1, 2


class Command(BaseCommand):
    help = (
        "Verify that no entry of the audit trail was changed or removed. Exit code 0: it is whole; "
        "1: it is broken, the first fault is told; 2: it could not be verified."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--expect", action="append", type=_noted, default=[], metavar="SEAL:SHA256",
            help="a seal as it was noted elsewhere before; may be given several times",
        )  # fmt: skip
        parser.add_argument("--json", action="store_true", help="tell the outcome as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = check_chain(expected=dict(options["expect"]))
        except DatabaseError as error:
            raise CommandError(f"Not verified: {error}", returncode=NOT_VERIFIED) from error
        if options["json"]:
            self.stdout.write(json.dumps(asdict(found)))
        elif found.fault is None:
            self.stdout.write(_whole(found))
        if found.fault is not None:
            told = f"Broken: {found.fault}; whole are {found.entries} entries before it."
            raise CommandError(told, returncode=BROKEN)


def _whole(found: Chain) -> str:
    waiting = f", {found.waiting} await theirs" if found.waiting else ""
    told = f"Whole: {found.entries} entries in {found.seals} seals{waiting}."
    if not found.seals:
        return told
    return f"{told}\nThe last seal, to be noted elsewhere: {found.last}:{found.sha256}"


def _noted(text: str) -> tuple[int, str]:
    found = re.fullmatch(r"([1-9][0-9]{0,17}):([0-9a-f]{64})", text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not SEAL:SHA256, as this command tells the last one")
    return int(found[1]), found[2]
