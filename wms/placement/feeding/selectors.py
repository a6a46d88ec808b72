"""Selectors of the feeder: its settings and its state, for operators and for metrics."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.placement.conf import feeder_conf
from wms.placement.feeding.models import THE_ONE, Feeder


@dataclass(frozen=True, slots=True)
class FeederStatus:
    """Feeder as it is set, and how it stands; the row of one that never ran is empty."""

    program: Path
    below: int
    row: Feeder

    @property
    def is_running(self) -> bool:
        """Whether a worker is at it."""
        return bool(self.row.lease)

    @property
    def next_at(self) -> datetime | None:
        """When it runs next if the queue stays low; None: as soon as it is low, or when it ends."""
        return None if self.row.is_armed or self.row.lease else self.row.not_before


def feeder_status() -> FeederStatus | None:
    """The feeder; None where none is set. One query at most."""
    conf = feeder_conf()
    if conf is None:
        return None
    row = Feeder.objects.filter(pk=THE_ONE).first() or Feeder()
    return FeederStatus(conf.program, conf.below, row)


def seen_feeder(user: User) -> FeederStatus | None:
    """The feeder for who may see it: operators, since nobody knows what it says."""
    return feeder_status() if has_role(user, Role.OPERATOR) else None
