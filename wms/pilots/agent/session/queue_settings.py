"""Settings of the pilot's queue, from the server's answer to the registration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..fence.mapped_accounts import NO_MAP, AccountMap
from ..files.job_directories import SharedFolder
from .fence_selection import AUTO


@dataclass(frozen=True)
class QueueSettings:
    """Settings of the pilot's queue: periods, lifetime, fence, network, limits, shared folders."""

    heartbeat_s: float
    poll_s: float
    idle_limit_s: float
    lifetime_s: float
    hold_after_failure_s: float
    fence: str
    network: str
    limits: Mapping[str, Any]
    shared_folders: tuple[SharedFolder, ...]
    #: Jobs with an image may come where this node can start containers.
    has_containers: bool = False
    #: Accounts of the node for the jobs of certain users and groups.
    accounts: AccountMap = NO_MAP

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> QueueSettings:
        """Read the answer; call it within `parsing`."""
        return cls(
            heartbeat_s=float(data["heartbeat_s"]),
            poll_s=float(data["poll_s"]),
            idle_limit_s=float(data["idle_limit_s"]),
            lifetime_s=float(data["lifetime_s"]),
            hold_after_failure_s=float(data.get("hold_after_failure_s") or 0),
            fence=str(data.get("fence") or AUTO),
            network=str(data.get("network") or AUTO),
            limits=dict(data.get("limits") or {}),
            shared_folders=tuple(
                SharedFolder(str(each["path"]), bool(each.get("is_writable")))
                for each in data.get("shared_folders") or ()
            ),
            has_containers=bool(data.get("has_containers")),
            accounts=AccountMap.from_json(data.get("accounts") or {}),
        )
