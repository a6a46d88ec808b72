"""Fence of the pilot's queue on this node: the one found at the start, or the one it asks for."""

from __future__ import annotations

from ..fence.base import Fence, FenceUnusable
from ..fence.host_view import is_below
from ..fence.network import Network
from .fence_selection import AUTO, fence_named
from .pilot_config import PilotConfig
from .queue_settings import QueueSettings


def fence_of(settings: QueueSettings, found: Fence, config: PilotConfig) -> Fence:
    """Fence that the queue asks for; raises FenceUnusable where that does not work."""
    for shared in settings.shared_folders:
        if is_below(str(config.work_dir.resolve()), shared.path):
            raise FenceUnusable(f"the shared folder {shared.path} holds the pilot's own files")
    is_found = settings.fence in (AUTO, found.name)
    if is_found and settings.network in (AUTO, found.network.name):
        return found
    name = found.name if settings.fence == AUTO else settings.fence
    wanted = Network(settings.network, config.server_url)
    return fence_named(name, config.work_dir, wanted, settings.accounts)
