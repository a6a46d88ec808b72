"""Fences and networks of payloads that a queue can choose, and its fence in force under `auto`.

Also the column of the fence that `auto` was settled on (`wms.sites.fence_settling`).
"""

from __future__ import annotations

from typing import Protocol

from django.db import models


class Fence(models.TextChoices):
    """Kinds of fences between a payload, its pilot and other payloads."""

    AUTO = "auto", "auto: bwrap where it works on the first node, else none"
    BWRAP = "bwrap", "bwrap: a sandbox of bubblewrap"
    APPTAINER = "apptainer", "apptainer: a container"
    SUDO = "sudo", "sudo: another account"
    NONE = "none", "none: nothing"


class Network(models.TextChoices):
    """Networks that a payload behind a fence may reach."""

    AUTO = "auto", "auto: the node's, without link-local addresses where that works"
    NODE = "node", "node: the node's, without link-local addresses"
    PORTAL = "portal", "portal: the portal only"
    NONE = "none", "none: nothing"


def settled_field() -> models.CharField[str, str]:
    """Column of the fence that `auto` stands for; empty until the first pilot has reported it."""
    return models.CharField(
        max_length=16,
        choices=[(each.value, each.label) for each in (Fence.BWRAP, Fence.NONE)],
        blank=True,
        default="",
        db_default="",
        editable=False,
    )


class FenceColumns(Protocol):
    """The columns of a queue that decide about its fence."""

    fence: str
    network: str
    settled_fence: str


def effective_fence(queue: FenceColumns) -> str:
    """The fence of all payloads of a queue; empty until its first pilot has settled it.

    Software that comes to a node or goes from it changes none: another fence shows payloads other
    files and another network, so a person decides on it.
    """
    if queue.fence != Fence.AUTO:
        return queue.fence
    # Nothing keeps a payload without a fence to a network.
    return queue.settled_fence if queue.network == Network.AUTO else Fence.BWRAP
