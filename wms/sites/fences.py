"""What a queue may ask for around its payloads, and what `auto` came to mean there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from wms.sites.models import Queue


class Fence(models.TextChoices):
    """What keeps a payload from its pilot and from other payloads."""

    AUTO = "auto", "auto: bwrap where it works on the first node, else none"
    BWRAP = "bwrap", "bwrap: a sandbox of bubblewrap"
    APPTAINER = "apptainer", "apptainer: a container"
    SUDO = "sudo", "sudo: another account"
    NONE = "none", "none: nothing"


class Network(models.TextChoices):
    """What a payload behind a fence reaches of the network."""

    AUTO = "auto", "auto: the node's, without link-local addresses where that works"
    NODE = "node", "node: the node's, without link-local addresses"
    PORTAL = "portal", "portal: the portal only"
    NONE = "none", "none: nothing"


def settled_field() -> models.CharField[str, str]:
    """The column that keeps what `auto` came to mean; empty until the first pilot has told."""
    return models.CharField(
        max_length=16,
        choices=[(each.value, each.label) for each in (Fence.BWRAP, Fence.NONE)],
        blank=True,
        default="",
        db_default="",
        editable=False,
    )


def effective(queue: Queue) -> str:
    """The fence of all payloads of this queue; empty where no pilot has settled it yet.

    Software that comes to a node or goes from it changes none: another fence shows payloads other
    files and another network, so a person decides on it.
    """
    if queue.fence != Fence.AUTO:
        return queue.fence
    # Nothing keeps a payload without a fence to a network.
    return queue.settled_fence if queue.network == Network.AUTO else Fence.BWRAP
