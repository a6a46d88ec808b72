"""What a queue may ask for around its payloads."""

from __future__ import annotations

from django.db import models


class Fence(models.TextChoices):
    """What keeps a payload from its pilot and from other payloads."""

    AUTO = "auto", "auto: bwrap where it works, else none"
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
