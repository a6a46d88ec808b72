"""Policy of the shift log: who writes an entry of it that is about no DAG, site or failure.

Shifters and above; who writes about these is in `wms.remarks.subjects`. Entries about nothing are
seen by their authors and by who has no walls around (`wms.accounting.walls`): whose matters they
tell of nobody can know.
"""

from __future__ import annotations

from wms.core.models import Role, User
from wms.core.policy import has_role


def may_write_log(user: User) -> bool:
    """True when the user may write entries about the shift as a whole."""
    return has_role(user, Role.SHIFTER)
