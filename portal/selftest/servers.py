"""Self-test of servers and host: PostgreSQL's version and settings, clock, broker, disk space."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from portal.selftest.findings import Code, Finding, error, ok, warning

#: As in docs/reference/settings.md.
OLDEST_DATABASE = 15
OLDEST_BROKER = (6, 2)
#: More differs only where a clock is wrong.
CLOCK_LIMIT_S = 2.0
_GIB = 2**30
#: Below these uploads are refused soon, and then nothing can be stored at all.
DISK_SMALL_BYTES = 5 * _GIB
DISK_FULL_BYTES = _GIB
_SETTINGS_THAT_KEEP = ("fsync", "full_page_writes", "synchronous_commit")


@dataclass(frozen=True, slots=True)
class Broker:
    """Facts about a broker; `writes` and `policy` are empty where the account may not ask."""

    name: str
    version: str
    may_ask: bool = False
    writes: bool = False
    policy: str = ""


def database(version: int, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Version of a PostgreSQL server, as 150004, and its settings that could lose data."""
    major = version // 10_000
    if major < OLDEST_DATABASE:
        yield error(
            Code.DATABASE_TOO_OLD,
            f"PostgreSQL {major} is older than {OLDEST_DATABASE}.",
            "Statements of the portal fail there.",
            f"Use PostgreSQL {OLDEST_DATABASE} or newer.",
        )
    off = [name for name in _SETTINGS_THAT_KEEP if settings.get(name) == "off"]
    if off:
        yield error(
            Code.DATABASE_MAY_LOSE,
            f"PostgreSQL runs with {', '.join(off)} off.",
            "After a crash it may lack what it had confirmed, or not start. All that the portal "
            "knows is there: jobs would run twice, or never.",
            f"Set {', '.join(off)} to on.",
        )
    if major >= OLDEST_DATABASE and not off:
        yield ok(Code.DATABASE, f"PostgreSQL {major}.{version % 10_000} keeps what it confirms.")


def clock(difference_s: float, round_trip_s: float) -> Iterator[Finding]:
    """Offset of this host's clock from the database's, measured within a round trip."""
    if abs(difference_s) - round_trip_s <= CLOCK_LIMIT_S:
        yield ok(Code.CLOCK, "The clock of this host agrees with that of the database.")
        return
    way = "ahead of" if difference_s > 0 else "behind"
    yield warning(
        Code.CLOCK_DIFFERS,
        f"The clock of this host is {abs(difference_s):.1f} s {way} that of the database.",
        "Times in events and logs are out of order; pilots that are heard look silent, and their "
        "jobs go to others.",
        "Run a client of NTP on both hosts.",
    )


def broker(answer: Broker) -> Iterator[Finding]:
    """Version of Valkey or Redis, and its settings that matter, where they may be read."""
    name = f"{answer.name} {answer.version}"
    if _numbers(answer.version) < OLDEST_BROKER:
        yield error(
            Code.BROKER_TOO_OLD,
            f"The broker is {name}, older than {_dotted(OLDEST_BROKER)}.",
            "Commands that the portal sends do not exist there.",
            "See docs/how-to/run-the-broker.md for which one to run.",
        )
        return
    yield ok(Code.BROKER, f"The broker is {name}; nothing is lost with what it holds.")
    if answer.may_ask:
        yield warning(
            Code.BROKER_ACCOUNT,
            "The portal's account at the broker may do more than the portal needs.",
            "Who gets at its password may read and stop everything there.",
            "Give it the commands of docs/how-to/run-the-broker.md, and no others.",
        )
    if answer.policy not in {"", "volatile-lru"}:
        yield warning(
            Code.BROKER_POLICY,
            f"The broker's maxmemory-policy is {answer.policy}.",
            "Where all keys may go, messages get lost when memory is full; with noeviction a full "
            "cache stops them. Work then waits for the next period.",
            "Set maxmemory-policy to volatile-lru, and a maxmemory.",
        )
    if answer.writes:
        yield warning(
            Code.BROKER_WRITES,
            "The broker writes what it holds to disk.",
            "Nothing there is worth keeping, and old messages come back when it starts: they do no "
            "harm, but writing them delays others.",
            'Set save to "" and appendonly to no.',
        )


def disk(folder: str, free_bytes: int) -> Iterator[Finding]:
    """Finding on free space of the folder where everything is written."""
    free = f"{free_bytes / _GIB:.1f} GiB"
    why = "Database, uploads, outputs of jobs and logs are there; without room nothing is stored."
    todo = f"Make room, or move {folder} to a larger disk (PILOTAGE_VAR)."
    if free_bytes < DISK_FULL_BYTES:
        yield error(Code.DISK_FULL, f"{free} are free for {folder}.", why, todo)
    elif free_bytes < DISK_SMALL_BYTES:
        yield warning(Code.DISK_SMALL, f"{free} are free for {folder}.", why, todo)
    else:
        yield ok(Code.DISK, f"{free} are free for {folder}.")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
