"""Map of a queue's users and groups to accounts of its nodes (`payload_accounts`), validated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from wms.accounting.models import AccountingGroup
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User
from wms.sites.models import Queue

_FIELD = "payload_accounts"
_KINDS = ("users", "groups")
#: Each of them is tried by every pilot that starts, and locked with every claim.
_MOST_ENTRIES = 100
_MOST_ACCOUNTS = 16
_ACCOUNT = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
#: Accounts of the fence's own pool, which is everybody's.
_OF_POOL = re.compile(r"pilotage[0-9]+")
_NEVER = frozenset({"root", "toor"})


def check_payload_accounts(queue: Queue) -> None:
    """Raise InvalidInput with every fault in the queue's map of accounts."""
    mapped = queue.payload_accounts
    if not mapped and isinstance(mapped, dict):
        return
    faults = list(_shape_faults(mapped)) or list(_account_faults(mapped))
    if queue.fence != Queue.Fence.SUDO:
        faults.append(f"only the fence sudo changes accounts, this queue has {queue.fence}")
    faults = faults or list(_identity_faults(mapped))
    if faults:
        raise InvalidInput([Finding(fault, field=_FIELD) for fault in faults])


def accounts_of(queue: Queue) -> Mapping[str, Any]:
    """Map that pilots of this queue are told: nothing behind another fence."""
    accounts: Mapping[str, Any] = queue.payload_accounts
    return accounts if queue.fence == Queue.Fence.SUDO else {}


def _shape_faults(mapped: Any) -> Iterator[str]:
    if not isinstance(mapped, dict):
        yield 'must be a JSON object, as {"users": {"alice": ["alice"]}, "groups": {}}'
        return
    for kind in mapped.keys() - set(_KINDS):
        yield f"{kind}: is unknown; there are {', '.join(_KINDS)}"
    entries = 0
    for kind in _KINDS:
        by_name = mapped.get(kind, {})
        if not isinstance(by_name, dict):
            yield f"{kind}: must be an object of names, each with a list of accounts"
            continue
        entries += len(by_name)
        for name, accounts in by_name.items():
            is_list = isinstance(accounts, list) and all(isinstance(e, str) for e in accounts)
            if not is_list or not 1 <= len(accounts) <= _MOST_ACCOUNTS:
                yield f"{kind}.{name}: must be a list of 1 to {_MOST_ACCOUNTS} accounts"
    if entries > _MOST_ENTRIES:
        yield f"has {entries} users and groups, allowed are {_MOST_ENTRIES}"


def _account_faults(mapped: Mapping[str, Mapping[str, list[str]]]) -> Iterator[str]:
    used: Counter[str] = Counter()
    for kind in _KINDS:
        for name, accounts in mapped.get(kind, {}).items():
            for account in accounts:
                used[account] += 1
                if fault := _account_fault(account):
                    yield f"{kind}.{name}: {account!r} {fault}"
    for account, times in used.items():
        if times > 1:
            yield f"{account} is named {times} times: each account is for one user or group"


def _account_fault(account: str) -> str:
    if not _ACCOUNT.fullmatch(account):
        return "is no name of an account: small letters, digits, _ and -, at most 32"
    if account in _NEVER:
        return "is root's: payloads have no rights of root"
    if _OF_POOL.fullmatch(account):
        return "is of the pool, which is for everybody"
    return ""


def _identity_faults(mapped: Mapping[str, Mapping[str, list[str]]]) -> Iterator[str]:
    users, groups = set(mapped.get("users", {})), set(mapped.get("groups", {}))
    known_users = User.objects.filter(username__in=users).values_list("username", flat=True)
    known_groups = AccountingGroup.objects.filter(name__in=groups).values_list("name", flat=True)
    for kind, unknown in (
        ("user", users - set(known_users)),
        ("group", groups - set(known_groups)),
    ):
        for name in sorted(unknown):
            yield f"{kind}s.{name}: there is no {kind} of this name"
