"""Policy of kept archives: operators import and remove them.

Who sees them is decided in `wms.accounting.walls`, as for the DAGs themselves; those of DAGs that
are none of this installation are seen by operators alone.
"""

from __future__ import annotations

from typing import Any

from wms.core.models import Role, User
from wms.core.policy import has_role


def may_keep(user: User, archive: Any = None) -> bool:
    """Whether the user may import archives, and remove them."""
    return has_role(user, Role.OPERATOR)
