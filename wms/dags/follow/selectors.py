"""Selector of the log of a followed DAG."""

from __future__ import annotations

from wms.core.errors import NotFound
from wms.core.models import User
from wms.dags.models import FollowedLog
from wms.dags.reading.selectors import find_dag


def find_followed_log(user: User, dag_id: int) -> FollowedLog:
    """The log that moves a DAG, if the user sees that. Raises NotFound."""
    dag = find_dag(user, dag_id)
    log = FollowedLog.objects.select_related("dag").filter(dag=dag).first()
    if log is None:
        raise NotFound(f"DAG {dag_id} is not followed by a log.")
    return log
