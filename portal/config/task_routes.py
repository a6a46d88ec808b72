"""Queues of Celery tasks that may be slow; all others share the default one."""

from __future__ import annotations

TASK_ROUTES = {
    # The engine may be busy for half a minute: no other loop waits for it, nor it for them.
    "wms.dags.advance": {"queue": "engine"},
    # Scripts of nodes and placements of data may keep workers of their own busy.
    "wms.dags.scripts.run": {"queue": "scripts"},
    "wms.dags.trials.run": {"queue": "scripts"},
    "wms.placement.run": {"queue": "placement"},
    "wms.placement.feed": {"queue": "placement"},
    "wms.placement.give_back": {"queue": "placement"},
    # So do slow batch systems: no loop waits for one.
    "wms.pilots.serve_queue": {"queue": "elements"},
    "wms.pilots.attend_queue": {"queue": "elements"},
    "wms.pilots.test_connection": {"queue": "elements"},
    "wms.pilots.call_frontend": {"queue": "elements"},
    "wms.pilots.call_factory": {"queue": "elements"},
    # And those who listen outside of the portal.
    "wms.notices.send": {"queue": "elements"},
}
