"""Actor of a change, as events and audit entries name it: a user, a pilot, or a control loop.

It also carries the bulk operation by which a user acts, if any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wms.core.models import User

_SYSTEM, _PILOT = "system:", "pilot:"
#: Names of actors that are no persons begin so; no user's name has a colon.
IMPERSONAL = (_SYSTEM, _PILOT)


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change, as it is written into events and audit entries.

    `name` is a user name, `pilot:<uuid>` or `system:<loop>`; `user` is set for persons only.
    `operation` is the bulk operation by which a person acts: events carry its number, and it is
    audited as a whole.
    """

    name: str
    user: User | None = None
    operation: int | None = None

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts that each event of the actor has beside its own."""
        return {} if self.operation is None else {"operation": self.operation}

    @property
    def is_system(self) -> bool:
        """True for the system's own loops, which need no permission."""
        return self.name.startswith(_SYSTEM)

    @classmethod
    def system(cls, loop: str) -> Actor:
        """The actor for a control loop, for example `system:negotiator`."""
        return cls(name=f"{_SYSTEM}{loop}")

    @classmethod
    def pilot(cls, uuid: str) -> Actor:
        """The actor for a registered pilot."""
        return cls(name=f"{_PILOT}{uuid}")

    @classmethod
    def person(cls, user: User) -> Actor:
        """The actor for a user who is logged in or holds a token."""
        return cls(name=user.get_username(), user=user)
