"""Marks of a store: whose it is, and that its installation has left it for another one.

An installation is known by its database: the identifier of the server's files and the number of the
database there. So one that was restored from a dump is another one, and writes to nobody's store
until it is told to. A copy of the server's files has the same identity: nothing in it tells the
copy from the original, nor does the address, which hosts and commands may set differently. The
first to write to a store marks it, once. What a process has read counts for `TRUSTED_S`: whoever
marks a store as left waits so long, and nothing is begun there any more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from typing import Final

import structlog
from django.db import connection

from wms.core.conf import conf
from wms.core.database.sql import READ_INSTALLATION
from wms.core.storage.protocol import ObjectLost, ObjectStore, ReadableStore, StoreFailed

log = structlog.get_logger(__name__)
#: Objects of a store that no folder holds; they are not moved with its contents.
OWNER: Final = "installation"
LEFT: Final = "left"
#: So long a process goes by what it has read of the marks.
TRUSTED_S: float = 30.0
_MOST_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Owner:
    """An installation, as a store names it; the address is for people."""

    id: str
    address: str


class StoreOfOthers(StoreFailed):
    """The store belongs to another installation."""

    def __init__(self, owner: Owner) -> None:
        super().__init__(
            f"The store of contents belongs to another installation, the one at {owner.address}: "
            "nothing is written there."
        )
        self.owner = owner


class StoreLeft(StoreFailed):
    """The contents were moved from the store to another one."""

    def __init__(self, target: str) -> None:
        super().__init__(
            f"The contents were moved from here to {target}: nothing is written here any more."
        )
        self.target = target


def this_installation() -> Owner:
    """The installation of this process."""
    at = connection.settings_dict
    return Owner(_id_of_database(str(at["HOST"]), str(at["PORT"]), str(at["NAME"])), _address())


@cache
def _id_of_database(_host: str, _port: str, _name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(READ_INSTALLATION)
        return str(cursor.fetchone()[0])


def _address() -> str:
    return conf().public_url


#: Stores of which the marks were read, and when.
_trusted: dict[Hashable, float] = {}


def require_own(store: ObjectStore, name: Hashable) -> None:
    """Make sure that this installation may write to the store, and mark one that nobody has.

    `name` is what the settings call it. Raises StoreFailed: StoreOfOthers or StoreLeft.
    """
    now_s = time.monotonic()
    read_at = _trusted.get(name)
    if read_at is not None and now_s - read_at < TRUSTED_S:
        return
    try:
        claim(store)
        if target := _content(store, LEFT):
            raise StoreLeft(target)
    except (StoreOfOthers, StoreLeft) as refused:
        log.error("store_refused", store=store.name, reason=str(refused))
        raise
    _trusted[name] = now_s


def forget_marks() -> None:
    """Have the marks of all stores read again."""
    _trusted.clear()


def claim(store: ObjectStore) -> None:
    """Mark a store that has no mark as this installation's. Raises StoreOfOthers."""
    own, found = this_installation(), owner_of(store)
    if found is None:
        store.put_new(OWNER, json.dumps({"id": own.id, "address": own.address}).encode())
        # Somebody else may have been faster.
        found = owner_of(store)
    if found is None:
        raise StoreFailed("The store of contents does not keep what is written to it.")
    if found.id != own.id:
        raise StoreOfOthers(found)


def take_over(store: ObjectStore) -> Owner | None:
    """Make a store this installation's, whoever had it; the former owner, None where it had none.

    Of two who do so at once one has it. Raises StoreOfOthers for the other one, and StoreLeft
    where this installation itself has left it: what was moved since then is not there, so only a
    move back opens it again. The caller sees to it that nobody moves contents meanwhile.
    """
    found = owner_of(store)
    if found is not None and found.id == this_installation().id:
        if target := _content(store, LEFT):
            raise StoreLeft(target)
    else:
        store.delete([OWNER])
        # Of the former owner, which moved what was its own.
        store.delete([LEFT])
    claim(store)
    forget_marks()
    return found


def leave(store: ObjectStore, target: str) -> None:
    """Mark a store as left, and wait until no process writes there that has not seen it."""
    store.put_new(LEFT, target.encode())
    forget_marks()
    time.sleep(TRUSTED_S)


def use_again(store: ObjectStore) -> None:
    """Take the mark away that a store was left."""
    store.delete([LEFT])


def owner_of(store: ReadableStore) -> Owner | None:
    """The installation that a store names; None where it names none."""
    content = _content(store, OWNER)
    if not content:
        return None
    try:
        told = json.loads(content)
        return Owner(str(told["id"]), str(told["address"]))
    except (ValueError, TypeError, KeyError):
        # Nobody's own, so that somebody looks.
        return Owner("", f"[{OWNER} cannot be read]")


def _content(store: ReadableStore, key: str) -> str:
    try:
        return store.read(key, 0, _MOST_BYTES).decode(errors="replace")
    except ObjectLost:
        return ""
