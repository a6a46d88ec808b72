"""Command that makes accounts and API tokens on the portal's host, such as the first admin's.

It also makes accounts of services, lists and revokes tokens, and links identities of providers.
"""

from __future__ import annotations

import getpass
import secrets
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from wms.accounting.limited_tokens import issue_limited_token
from wms.accounting.models import AccountingGroup
from wms.accounting.service_accounts import save_service_account
from wms.core.accounts import ensure_account
from wms.core.actors import Actor
from wms.core.errors import PilotageError
from wms.core.identities import link_identity, unlink_identity
from wms.core.identity_models import Identity, NamedSubject
from wms.core.models import ApiToken, Role, Scope, ServiceAccount, TokenKind, User
from wms.core.tokens import revoke_tokens
from wms.core.wallboards import revoke_wallboards

#: Whoever may read the portal's database may do all of this; the audit names the command line.
_ACTOR = Actor.system("command line")
_MAX_DAYS = 3650
_SECRETS = {
    "add": "The account is made. Its password, which is told only now:",
    "token": "The token is made. It is told only now:",
}


class Command(BaseCommand):
    help = "Make an account, of a person or a service, or a token for the API; see, revoke tokens."

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
        token.add_argument(
            "--frontend", default="", metavar="NAME",
            help="limit it, for good, to what is of this frontend; the account has to be in it",
        )  # fmt: skip
        token.add_argument("--days", type=int, default=90, help="so long it is valid")
        service = commands.add_parser("service", help="make an account that has tokens only")
        service.add_argument("username")
        service.add_argument(
            "--role", choices=[role.value for role in Role if role != Role.ADMIN], default=Role.USER
        )
        service.add_argument(
            "--group", action="append", default=[], help="an accounting group that it is in"
        )
        service.add_argument("--email", default="", help="whom to ask about it")
        service.add_argument("--reason", default="", help="why; it stands in the audit trail")
        tokens = commands.add_parser("tokens", help="list tokens, of one account or of all")
        tokens.add_argument("username", nargs="?")
        revoke = commands.add_parser("revoke", help="revoke a token")
        revoke.add_argument("prefix", help="what stands between the first two underscores of it")
        revoke.add_argument("--reason", required=True, help="why; its owner reads it")
        known = commands.add_parser(
            "identities", help="list subjects of providers that have accounts, with their last use"
        )
        known.add_argument("username", nargs="?", help="of this account; without it, of all")
        link = commands.add_parser("link", help="let a provider's subject log in to an account")
        link.add_argument("username")
        unlink = commands.add_parser("unlink", help="take that away; its tokens are revoked")
        for each in (link, unlink):
            each.add_argument("--issuer", required=True, help="the provider, as it calls itself")
            each.add_argument("--subject", required=True, help="`sub` of the person there")
            each.add_argument("--reason", required=True, help="why; it stands in the audit trail")

    def handle(self, *args: Any, what: str, **options: Any) -> None:
        try:
            told = _ACTS[what](options)
        except PilotageError as error:
            raise CommandError(str(error)) from error
        if told and what in _SECRETS:
            # Beside the secret, which scripts read from standard output.
            self.stderr.write(_SECRETS[what], style_func=str)
        if told:
            self.stdout.write(told)


def _add(options: dict[str, Any]) -> str:
    """Make the account; the password, if it was made here."""
    username: str = options["username"]
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


def _token(options: dict[str, Any]) -> str:
    """Make a token; its text."""
    username: str = options["username"]
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise CommandError(f"There is no active account {username}.")
    if not 1 <= options["days"] <= _MAX_DAYS:
        raise CommandError(f"--days is from 1 to {_MAX_DAYS}.")
    until = timezone.now() + timedelta(days=options["days"])
    issued = issue_limited_token(
        user,
        frontend=options["frontend"],
        name=options["name"],
        actor=_ACTOR,
        expires_at=until,
        scopes=options["scopes"],
    )
    return issued.text


def _service(options: dict[str, Any]) -> str:
    names = options["group"]
    groups = list(AccountingGroup.objects.filter(name__in=names))
    if missing := sorted(set(names) - {group.name for group in groups}):
        raise CommandError(f"There is no group {missing[0]}.")
    account = ServiceAccount(
        username=options["username"], role=options["role"], email=options["email"]
    )
    save_service_account(account, groups=groups, actor=_ACTOR, reason=options["reason"])
    return ""


def _tokens(options: dict[str, Any]) -> str:
    """A line for each token that is not revoked, with tabs between its columns."""
    tokens = ApiToken.objects.filter(revoked_at=None).select_related("user").order_by("pk")
    if options["username"]:
        tokens = tokens.filter(user__username=options["username"])
    return "\n".join(map(_line, tokens))


def _line(token: ApiToken) -> str:
    ends = "no end" if token.expires_at is None else f"until {token.expires_at:%Y-%m-%dT%H:%MZ}"
    of = f"of {token.limit}" if token.limit else "of every frontend"
    columns = (token.prefix, token.user.username, token.name, ",".join(token.scopes), ends)
    return "\t".join((*columns, _used(token), of))


def _used(row: ApiToken | Identity | NamedSubject) -> str:
    if row.last_used_at is None:
        return "never used"
    return f"used {row.last_used_at:%Y-%m-%dT%H:%MZ} from {row.last_used_from or '?'}"


def _identities(options: dict[str, Any]) -> str:
    """A line for each subject, linked or named by the settings, with tabs between its columns."""
    whose = {"user__username": options["username"]} if options["username"] else {}
    rows: list[Identity | NamedSubject] = [
        *Identity.objects.filter(**whose).select_related("user").order_by("pk"),
        *NamedSubject.objects.filter(**whose).select_related("user").order_by("pk"),
    ]
    return "\n".join(
        "\t".join((row.user.username, row.subject, row.issuer, _by(row), _used(row)))
        for row in rows
    )


def _by(row: Identity | NamedSubject) -> str:
    if isinstance(row, NamedSubject):
        return "named by the settings"
    return f"linked {row.created_at:%Y-%m-%dT%H:%MZ} by {row.linked_by or '?'}"


def _revoke(options: dict[str, Any]) -> str:
    prefix = options["prefix"].removeprefix("plt_").partition("_")[0]
    ids = list(ApiToken.objects.filter(prefix=prefix).values_list("pk", flat=True))
    boards = list(
        ApiToken.objects.filter(
            kind=TokenKind.WALLBOARD, prefix=prefix, revoked_at=None
        ).values_list("pk", flat=True)
    )
    if boards:
        revoke_wallboards(boards, actor=_ACTOR, reason=options["reason"] or "by the command line")
    elif not revoke_tokens(ids, actor=_ACTOR, reason=options["reason"]).changed:
        raise CommandError(f"There is no token {prefix} that is not revoked.")
    return ""


def _link(options: dict[str, Any]) -> str:
    user = User.objects.filter(username=options["username"]).first()
    if user is None:
        raise CommandError(f"There is no account {options['username']}.")
    link_identity(
        user, options["issuer"], options["subject"], actor=_ACTOR, reason=options["reason"]
    )
    return ""


def _unlink(options: dict[str, Any]) -> str:
    """Take the link away; the name of the account."""
    reason = options["reason"]
    user = unlink_identity(options["issuer"], options["subject"], actor=_ACTOR, reason=reason)
    return user.username


_ACTS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "add": _add, "token": _token, "service": _service, "tokens": _tokens, "revoke": _revoke,
    "identities": _identities, "link": _link, "unlink": _unlink,
}  # fmt: skip
