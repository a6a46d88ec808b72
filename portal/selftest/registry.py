"""Registry of all checks of the self-test, and the run of them all.

Includes the check of Python's release and Django's deployment checks.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from subprocess import SubprocessError

import structlog
from django.conf import settings
from django.core.checks import Tags, run_checks
from django.db import DatabaseError
from django.utils import timezone
from redis import RedisError

from portal.selftest import accounts, address, contents, facts, fences, keys, pythons, servers
from portal.selftest.findings import Code, Finding, error, ok, warning
from wms.core.conf import conf
from wms.core.errors import PilotageError
from wms.core.models import Role
from wms.core.selectors import count_accounts
from wms.core.storage.current import writable_store
from wms.placement.conf import feeder_conf
from wms.placement.feeding.running import fault_of_files

log = structlog.get_logger(__name__)


def python() -> Iterable[Finding]:
    """Known faults of the Python that runs this."""
    release = sys.version_info
    return pythons.faults_of((release[0], release[1], release[2]), timezone.now().date())


def scripts_fence() -> Iterable[Finding]:
    """Finding on the fence around scripts of nodes."""
    name, trouble = facts.scripts_fence()
    allows_none = "none" in settings.PILOTAGE["SCRIPTS"]["FENCES"]
    return fences.scripts(name, trouble, is_unfenced_allowed=allows_none)


def payloads_fence() -> Iterable[Finding]:
    """Finding on the fence around payloads."""
    return fences.payloads(facts.fenced_queues(), facts.bwrap_trouble())


def public_address() -> Iterable[Finding]:
    """Whether pilots find the portal."""
    return address.reachable(settings.PUBLIC_URL, facts.far_queues(), address.resolves)


def served_address() -> Iterable[Finding]:
    """Whether the web server takes what comes."""
    return address.served(
        settings.PUBLIC_URL,
        os.environ.get("PILOTAGE_LISTEN", ""),
        settings.ALLOWED_HOSTS,
        behind_proxy=settings.BEHIND_PROXY,
    )


def administrator() -> Iterable[Finding]:
    """Whether somebody can configure the portal."""
    return accounts.administrators(count_accounts(Role.ADMIN), count_accounts(Role.OPERATOR))


def insecure_settings() -> Iterator[Finding]:
    """Findings of Django's deployment checks that no other check here covers."""
    messages = run_checks(tags=[Tags.security], include_deployment_checks=True)
    known = {each.id: _OF_DJANGO[each.id] for each in messages if each.id in _OF_DJANGO}
    yield from known.values()
    if not known:
        yield ok(Code.SETTINGS, "The secret key is long, and reasons of faults are not shown.")


def stored_keys() -> Iterable[Finding]:
    """Whether the keys are there that what is stored was encrypted with."""
    return keys.keys(facts.credential_keys_trouble(), facts.lost_secrets())


def database() -> Iterable[Finding]:
    """Whether the database can do what is asked of it, and keeps it."""
    return servers.database(*facts.database_settings())


def clock() -> Iterable[Finding]:
    """Whether this host's clock is right."""
    return servers.clock(*facts.clock_difference())


def broker() -> Iterator[Finding]:
    """Finding on the broker and its version."""
    try:
        state = facts.broker()
    except RedisError as fault:
        yield error(
            Code.BROKER_UNREACHABLE,
            f"The broker does not answer: {fault}",
            "No control loop is started: nothing is matched, submitted or sent.",
            "Look at var/log/redis.log, or at REDIS_URL.",
        )
        return
    yield from servers.broker(state)


def store_of_contents() -> Iterable[Finding]:
    """Finding on the store of contents of files."""
    return contents.usable(writable_store, conf())


def feeder() -> Iterator[Finding]:
    """Finding on the files of the feeder of placements, if one is set."""
    conf = feeder_conf()
    if conf is None:
        return
    if fault := fault_of_files(conf):
        yield warning(
            Code.FEEDER_NOT_RUN,
            f"The feeder of placements cannot be run here: {fault}",
            "Its runs fail: nothing new is placed when the queue is empty.",
            "Put the file there, readable by the account of the workers of the queue placement.",
        )
        return
    yield ok(Code.FEEDER, f"The feeder of placements, {conf.program}, and its token are there.")


def disk() -> Iterable[Finding]:
    """Finding on free disk space."""
    folder = settings.VAR_DIR
    return servers.disk(str(folder), shutil.disk_usage(folder).free)


#: What is told of settings by Django, by its identifiers; all else there follows from the public
#: address, or is the proxy's.
_OF_DJANGO = {
    "security.W009": error(
        Code.WEAK_SECRET_KEY,
        "PILOTAGE_SECRET_KEY is shorter than 50 characters, or made of few different ones.",
        "Who guesses it can make sessions and tokens of everybody.",
        "Set 50 random characters, or leave it out: `manage.py up` makes one.",
    ),
    "security.W018": warning(
        Code.DEBUG,
        "PILOTAGE_DEBUG is on.",
        "Faults show everybody the portal's inside, settings among it, and memory grows.",
        "Unset PILOTAGE_DEBUG.",
    ),
}

#: What keeps a check from being made.
_FAULTS = (OSError, ValueError, DatabaseError, RedisError, SubprocessError, PilotageError)

CHECKS: tuple[Callable[[], Iterable[Finding]], ...] = (
    python,
    scripts_fence,
    payloads_fence,
    public_address,
    served_address,
    administrator,
    insecure_settings,
    stored_keys,
    database,
    clock,
    broker,
    store_of_contents,
    feeder,
    disk,
)


def run_all() -> list[Finding]:
    """Findings of all checks. A check that fails is a finding itself, and stops no other."""
    return [finding for check in CHECKS for finding in _findings(check)]


def _findings(check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    try:
        return list(check())
    except _FAULTS as fault:
        log.warning("self_test_failed", check=check.__name__, error=str(fault))
        return [
            warning(
                Code.CHECK_FAILED,
                f"The check {check.__name__} could not be made: {type(fault).__name__}: {fault}",
                "What it looks at is not known.",
                "Look at the log of the program that made it.",
            )
        ]
