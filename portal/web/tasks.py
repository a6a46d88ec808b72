"""Control loop, with its Celery task, that lays out drawings of large new DAGs ahead of visitors.

Without it the first visitor of such a DAG waits for the drawing.
"""

from __future__ import annotations

from celery import shared_task

from portal.shared.drawings import draw_ahead
from wms.core import loops

DRAWER = loops.register(
    loops.Loop("drawer", "portal.web.draw_ahead", period_s=10, run_cycle=draw_ahead)
)


@shared_task(name=DRAWER.task, soft_time_limit=60, time_limit=70)
def draw() -> None:
    """Compute drawings of large new DAGs; without it the first visitor waits for the drawing."""
    loops.run(DRAWER)
