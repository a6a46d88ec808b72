"""Control loops of the audit trail and their Celery tasks: its seals, and their verification."""

from __future__ import annotations

from celery import shared_task

from wms.core import loops
from wms.core.audit_chain import checking, sealing

SEALER = loops.register(
    loops.Loop("audit-seals", "wms.core.seal_audit", period_s=5, run_cycle=sealing.run_cycle)
)
CHECKER = loops.register(
    loops.Loop(
        checking.LOOP,
        "wms.core.check_audit",
        period_s=3600,
        run_cycle=checking.run_cycle,
        # What it finds does not depend on what happens.
        keeps_period=True,
        watches=True,
    )
)


@shared_task(name=SEALER.task, soft_time_limit=50, time_limit=60)
def seal() -> None:
    """Seal audit entries; a missed run seals them later."""
    loops.run(SEALER)


@shared_task(name=CHECKER.task, soft_time_limit=290, time_limit=300)
def check() -> None:
    """Verify a part of the trail, once an hour."""
    loops.run(CHECKER)
