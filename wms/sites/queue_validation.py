"""Validation of a queue before it is saved, with a register for checks of higher apps.

The first check that fails raises InvalidInput; its findings name field and reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from matching.task_queues.needs import MOST
from wms.core.database.saving import check_row
from wms.core.errors import InvalidInput
from wms.elements.protocol import BadSettings
from wms.sites.factories import check_factory_queue
from wms.sites.models import Queue
from wms.sites.payload_accounts import check_payload_accounts
from wms.sites.selectors import element_of

#: Lengths of words in the needs of a job.
_LONGEST_WORD = 64
_SHARED_PATH = re.compile(r"(/[A-Za-z0-9_+@][A-Za-z0-9._+@-]*)+")
#: Of the system, or what a fence makes anew.
_NEVER_SHARED = frozenset({"dev", "etc", "job", "proc", "run", "sys"})
#: What a queue may limit of its payloads; 0 is no limit. Pilots know what each means.
PAYLOAD_LIMITS = (
    "wall_s", "cpu_s", "memory_mb", "disk_mb", "files", "output_mb", "output_sandbox_mb",
    "processes", "load", "progress_ratio", "progress_s", "grace_s",
)  # fmt: skip

_QUEUE_CHECKS: list[Callable[[Queue], None]] = []


def register_queue_check(check: Callable[[Queue], None]) -> None:
    """Have queues checked by a higher app, which raises InvalidInput; called when it is set up."""
    _QUEUE_CHECKS.append(check)


def check_queue(queue: Queue) -> None:
    """Raise InvalidInput with the faults of a queue, those of its element's settings included."""
    _check_identity(queue)
    check_row(queue)
    if not isinstance(queue.settings, dict):
        raise InvalidInput.of("must be a JSON object", field="settings")
    _check_node_checks(queue)
    _check_payload_limits(queue)
    _check_network(queue)
    _check_shared_folders(queue)
    check_payload_accounts(queue)
    _check_offer(queue)
    try:
        element_of(queue)
    except BadSettings as error:
        raise InvalidInput.of(str(error), field="settings") from error
    check_factory_queue(queue)
    for check in _QUEUE_CHECKS:
        check(queue)


def _check_identity(queue: Queue) -> None:
    """Refuse private pilots that nobody's jobs could be for."""
    owner, group = queue.owner, queue.owner_group
    if group is None:
        return
    if owner is None:
        raise InvalidInput.of("a private queue needs an owner", field="owner")
    if not group.members.filter(pk=owner.pk).exists():
        message = f"{owner} is not a member of {group} and submits nothing in its name"
        raise InvalidInput.of(message, field="owner_group")


def _check_shared_folders(queue: Queue) -> None:
    """Refuse shared folders that are not plain paths, or belong to the system."""
    if not isinstance(queue.shared_folders, list):
        raise InvalidInput.of("must be a JSON list", field="shared_folders")
    for folder in queue.shared_folders:
        if not isinstance(folder, dict) or not {"path"} <= folder.keys() <= {"path", "is_writable"}:
            message = 'each must be an object: {"path": "/data", "is_writable": true}'
            raise InvalidInput.of(message, field="shared_folders")
        path = folder["path"]
        if not isinstance(path, str) or not _SHARED_PATH.fullmatch(path):
            raise InvalidInput.of(f"{path!r} is no plain absolute path", field="shared_folders")
        if PurePosixPath(path).parts[1] in _NEVER_SHARED or path == "/tmp":
            raise InvalidInput.of(f"{path} belongs to the system", field="shared_folders")
        if not isinstance(folder.get("is_writable", False), bool):
            raise InvalidInput.of("is_writable must be true or false", field="shared_folders")


def _check_network(queue: Queue) -> None:
    """Refuse a network that the queue's fence cannot provide."""
    is_own = queue.network in (Queue.Network.PORTAL, Queue.Network.NONE)
    if queue.fence == Queue.Fence.NONE and queue.network != Queue.Network.AUTO:
        message = f"without a fence payloads have the node's network: {queue.network} needs a fence"
        raise InvalidInput.of(message, field="network")
    if queue.fence == Queue.Fence.SUDO and is_own:
        message = f"sudo leaves payloads in the node's network: {queue.network} needs another fence"
        raise InvalidInput.of(message, field="network")


def _check_payload_limits(queue: Queue) -> None:
    """Refuse limits of payloads that pilots would ignore."""
    limits = queue.payload_limits
    if not isinstance(limits, dict):
        raise InvalidInput.of("must be a JSON object", field="payload_limits")
    for name, value in limits.items():
        if name not in PAYLOAD_LIMITS:
            message = f"{name!r} is no limit; known are {', '.join(PAYLOAD_LIMITS)}"
            raise InvalidInput.of(message, field="payload_limits")
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (is_number and value >= 0):
            raise InvalidInput.of(f"{name} must be a number from 0 on", field="payload_limits")


def _check_node_checks(queue: Queue) -> None:
    """Refuse checks of a node that have no name of their own."""
    checks = queue.checks
    if not isinstance(checks, list) or not all(isinstance(check, dict) for check in checks):
        raise InvalidInput.of("must be a JSON list of objects", field="checks")
    names = [check.get("name") for check in checks]
    if not all(map(_is_word, names)) or len(set(names)) < len(names):
        raise InvalidInput.of("each needs a name of its own", field="checks")


def _check_offer(queue: Queue) -> None:
    """Refuse words that no job could carry or name, and tags that no job could carry together."""
    for name in ("tags", "required_tags"):
        words = getattr(queue, name)
        if not isinstance(words, list) or not all(map(_is_word, words)):
            message = f"must be a JSON list of words without commas, up to {_LONGEST_WORD} letters"
            raise InvalidInput.of(message, field=name)
        twice = sorted({word for word in words if words.count(word) > 1})
        if twice:
            raise InvalidInput.of(f"named more than once: {', '.join(twice)}", field=name)
    for name in ("platform", "setup", "submit_pool"):
        if getattr(queue, name) and not _is_word(getattr(queue, name)):
            raise InvalidInput.of("must be a word without commas and outer spaces", field=name)
    if queue.gpus > MOST["gpus"]:
        raise InvalidInput.of(f"must be from 0 to {MOST['gpus']}", field="gpus")
    missing = sorted(set(queue.required_tags) - set(queue.tags))
    if missing:
        message = f"{', '.join(missing)} must be among the tags too, or no job could be taken"
        raise InvalidInput.of(message, field="required_tags")


def _is_word(value: object) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value) <= _LONGEST_WORD
        and value == value.strip()
        and "," not in value
    )
