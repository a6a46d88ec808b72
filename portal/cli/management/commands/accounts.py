"""Command that makes accounts and API tokens on the portal's host, such as the first admin's."""

from __future__ import annotations

import getpass
import secrets
import sys
from datetime import timedelta
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from wms.core.accounts import ensure_account
from wms.core.actors import Actor
from wms.core.errors import PilotageError
from wms.core.models import Role, Scope, User
from wms.core.tokens import create_token

#: Whoever may read the portal's database may do all of this; the audit names the command line.
_ACTOR = Actor.system("command line")
_MAX_DAYS = 3650


class Command(BaseCommand):
    help = "Make an account, or a token for the API; only the new secret goes to standard output."

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="what", required=True)
        add = commands.add_parser("add", help="make an account; prints its password if it made one")
        add.add_argument("username")
        add.add_argument("--role", choices=Role.values, default=Role.USER)
        add.add_argument(
            "--password", choices=("ask", "stdin", "random"), default="random",
            help="ask for it, read it from standard input, or make one",
        )  # fmt: skip
        token = commands.add_parser("token", help="make a token of an account and print it")
        token.add_argument("username")
        token.add_argument("--name", required=True, help="what it is for, as its owner sees it")
        token.add_argument(
            "--scopes", nargs="+", choices=Scope.values, metavar="SCOPE",
            help=f"what it may be used for, of {', '.join(Scope.values)}; by default all",
        )  # fmt: skip
        token.add_argument("--days", type=int, default=90, help="so long it is valid")

    def handle(self, *args: Any, what: str, username: str, **options: Any) -> None:
        try:
            secret = (_add if what == "add" else _token)(username, options)
        except PilotageError as error:
            raise CommandError(str(error)) from error
        if secret:
            self.stdout.write(secret)


def _add(username: str, options: dict[str, Any]) -> str:
    """Make the account; the password, if it was made here."""
    if User.objects.filter(username=username).exists():
        raise CommandError(f"There is an account {username} already.")
    user = User(username=username)
    password = _password(options["password"])
    try:
        user.clean_fields(exclude=["password"])
        validate_password(password, user)
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error
    ensure_account(username, password=password, role=Role(options["role"]), actor=_ACTOR)
    return password if options["password"] == "random" else ""


def _password(source: str) -> str:
    if source == "random":
        return secrets.token_urlsafe(15)
    if source == "stdin":
        return sys.stdin.readline().rstrip("\n")
    first = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != first:
        raise CommandError("The two are not the same.")
    return first


def _token(username: str, options: dict[str, Any]) -> str:
    """Make a token; its text."""
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise CommandError(f"There is no active account {username}.")
    if not 1 <= options["days"] <= _MAX_DAYS:
        raise CommandError(f"--days is from 1 to {_MAX_DAYS}.")
    until = timezone.now() + timedelta(days=options["days"])
    return create_token(
        user, name=options["name"], actor=_ACTOR, expires_at=until, scopes=options["scopes"]
    )
