"""Accounts of a node that jobs of certain users and groups run under, as a queue maps them.

Each is tried once. Before a claim one free account is locked for each of these users and groups, as
nobody knows yet whose job comes; the claim tells those for whom there is none.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .base import Reservation
from .unix_accounts import AccountPool, PayloadAccount


@dataclass(frozen=True)
class AccountMap:
    """Names of accounts by user, and by group for those of its users who have none."""

    users: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AccountMap:
        """Read the queue's; call it within `parsing`."""
        return cls(*(_read(data.get(kind) or {}) for kind in ("users", "groups")))

    def names(self) -> tuple[str, ...]:
        """All accounts of the map, each once."""
        lists = [*self.users.values(), *self.groups.values()]
        return tuple(dict.fromkeys(name for names in lists for name in names))

    def only(self, names: set[str]) -> AccountMap:
        """The same users and groups with those accounts alone."""
        return AccountMap(*(_only(mapped, names) for mapped in (self.users, self.groups)))


NO_MAP = AccountMap()


def _read(data: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {str(key): tuple(str(name) for name in names) for key, names in data.items()}


def _only(mapped: Mapping[str, tuple[str, ...]], names: set[str]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(each for each in all_ if each in names) for key, all_ in mapped.items()}


def account_fault(name: str, is_usable: Callable[[str], str]) -> str:
    """Reason why payloads cannot run under an account; empty when they can.

    `is_usable` tells what keeps a program from running under it.
    """
    try:
        number = pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError):
        return f"this node has no account {name}"
    if number == 0:
        return f"{name} is an account of root"
    if number == os.geteuid():
        return f"{name} is the pilot's own account"
    return is_usable(name)


class Unaccounted(Reservation):
    """No account: the job's user has one on this node, and it is not free."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class AccountChoice(Reservation):
    """Accounts that are locked for whosever job comes: one of the pool, one for each of the map."""

    def __init__(
        self,
        others: PayloadAccount,
        users: Mapping[str, PayloadAccount | None],
        groups: Mapping[str, PayloadAccount | None],
    ) -> None:
        self._others = others
        self._users = users
        self._groups = groups

    def refused(self) -> dict[str, list[str]]:
        return {
            "refused_owners": [name for name, account in self._users.items() if account is None],
            "refused_groups": [name for name, account in self._groups.items() if account is None],
        }

    def choose(self, owner: str, group: str) -> Reservation:
        """Reservation for a job of this owner, in this group; all others are released."""
        if owner in self._users:
            chosen = self._users[owner]
        elif group and group in self._groups:
            chosen = self._groups[group]
        else:
            chosen = self._others
        self._close_all_but(chosen)
        whose = owner if owner in self._users else group
        return chosen or Unaccounted(f"no account of {whose} is free on this node")

    def close(self) -> None:
        self._close_all_but(None)

    def _close_all_but(self, kept: PayloadAccount | None) -> None:
        for account in (self._others, *self._users.values(), *self._groups.values()):
            if account is not None and account is not kept:
                account.close()


def reserve_for_all(mapped: AccountMap, others: AccountPool) -> AccountChoice:
    """Lock one free account for each user and group, and one for all others.

    Raises NoFreeAccount where the others have none.
    """
    pool_account = others.acquire()
    return AccountChoice(
        pool_account,
        {user: others.acquire_of(names) for user, names in mapped.users.items()},
        {group: others.acquire_of(names) for group, names in mapped.groups.items()},
    )


def usable_map(
    mapped: AccountMap, is_usable: Callable[[str], str]
) -> tuple[AccountMap, Sequence[str]]:
    """Part of a map with accounts that work here, and why the others do not."""
    faults = {name: account_fault(name, is_usable) for name in mapped.names()}
    working = {name for name, fault in faults.items() if not fault}
    return mapped.only(working), [fault for fault in faults.values() if fault]
