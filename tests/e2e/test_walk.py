"""Every page at both widths, light and dark: looked at by axe, and kept as a picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.urls import reverse
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from portal.web.dag_page import TABS
from tests.e2e.conftest import NARROW, WIDE, Complaints
from tests.e2e.production import Production, bulk_operations
from wms.core.models import User

SHOTS = Path(settings.BASE_DIR, "var", "screenshots")
_WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_AXE = {"runOnly": {"type": "tag", "values": _WCAG}, "resultTypes": ["violations"]}

#: Fonts are there, charts are drawn, parts that are loaded later have come.
_IS_SETTLED = """() => document.fonts.status === "loaded"
    && document.querySelectorAll(".htmx-request, .asking").length === 0
    && [...document.querySelectorAll("[data-chart-plot]")].every((plot) => plot.firstChild)"""


def pages_of(made: Production) -> dict[str, str]:
    """Every page that a person can open, by the name of its picture."""
    explain = reverse("web:explain")
    operations = bulk_operations(made.people)
    return {
        "dashboard": reverse("web:dashboard"),
        "dags": reverse("web:dags"),
        "dags-filtered": reverse("web:dags") + "?state=held",
        "dags-none": reverse("web:dags") + "?name=nowhere",
        "dags-fault": reverse("web:dags") + "?state=lost",
        "dag-running": reverse("web:dag", args=[made.running.pk]),
        "dag-failed": reverse("web:dag", args=[made.failed.pk]),
        "dag-held": reverse("web:dag", args=[made.held.pk]),
        "dag-idle": reverse("web:dag", args=[made.idle.pk]),
        "dag-rich": reverse("web:dag", args=[made.rich.pk]),
        **{
            f"dag-rich-{tab}": reverse("web:dag", args=[made.rich.pk]) + f"?tab={tab}"
            for tab in TABS
            if tab != "overview"
        },
        "dag-running-graph": reverse("web:dag", args=[made.running.pk]) + "?tab=graph",
        "dag-running-around": reverse("web:dag", args=[made.running.pk]) + "?tab=graph&q=merge",
        "dag-running-blocking": reverse("web:dag", args=[made.running.pk])
        + "?tab=nodes&show=blocking",
        "dag-failed-rescue": reverse("web:dag", args=[made.failed.pk]) + "?tab=rescue",
        "dag-inner": reverse("web:dag", args=[made.inner.pk]),
        "dag-limits": reverse("web:dag-limits", args=[made.rich.pk]),
        "rescue": reverse("web:rescue", args=[made.failed.pk]),
        "rescue-too-early": reverse("web:rescue", args=[made.rich.pk]),
        "node-done": reverse("web:node", args=[made.rich.pk, made.node("prepare").pk]),
        "node-ready": reverse("web:node", args=[made.rich.pk, made.node("scan2").pk]),
        "node-waiting": reverse("web:node", args=[made.rich.pk, made.node("merge").pk]),
        "node-data": reverse("web:node", args=[made.rich.pk, made.node("fetch").pk]),
        "node-inner": reverse("web:node", args=[made.rich.pk, made.node("calibrate").pk]),
        "nodes-rerun": _steered(made, "rerun", "prepare", "scan1"),
        "nodes-change": _steered(made, "change", "merge"),
        "nodes-none": reverse("web:steer-nodes", args=[made.rich.pk, "retry"]),
        "placements": reverse("web:placements"),
        "placement": reverse("web:placement", args=[made.placement.pk]),
        "bulk": reverse("web:bulk"),
        "bulk-preview": reverse("web:bulk-operation", args=[operations["preview"].pk]),
        "bulk-destructive": reverse("web:bulk-operation", args=[operations["destructive"].pk]),
        "bulk-operation": reverse("web:bulk-operation", args=[operations["done"].pk]),
        "submit": reverse("web:submit"),
        "jobs": reverse("web:jobs"),
        "job": reverse("web:job", args=[made.job.pk]),
        "task-queues": reverse("web:task-queues"),
        "task-queues-filtered": reverse("web:task-queues") + "?owner=alice&sort=priority",
        "task-queues-none": reverse("web:task-queues") + "?tag=nothing",
        "task-queues-fault": reverse("web:task-queues") + "?sort=size",
        "task-queue": reverse("web:task-queue", args=[made.task_queue.pk]),
        "sites": reverse("web:sites"),
        "site": reverse("web:site", args=[made.site.name]),
        "pilots": reverse("web:pilots"),
        "pilot": reverse("web:pilot", args=[made.pilot.pk]),
        "pilot-log": reverse("web:pilot-log", args=[made.pilot.pk]),
        "explain": reverse("web:explain"),
        "explain-dag": f"{explain}?dag={made.idle.pk}",
        "explain-what-if": f"{explain}?dag={made.idle.pk}&change=Requirements+%3D+false",
        "explain-running": f"{explain}?dag={made.running.pk}",
        "explain-job": f"{explain}?job={made.job.pk}",
        "explain-task-queue": f"{explain}?task_queue={made.task_queue.pk}",
        "explain-site": f"{explain}?site={made.site.name}&site_change=MaxMatches+%3D+9",
        "negotiation": reverse("web:negotiation"),
        "shares": reverse("web:shares"),
        "history": reverse("web:history"),
        "refusal": reverse("web:dag", args=[0]),
        "not-found": "/nowhere/",
    }


def _steered(made: Production, event: str, *names: str) -> str:
    """The page on which nodes of the rich DAG are steered."""
    chosen = "&".join(f"node={made.node(name).pk}" for name in names)
    return f"{reverse('web:steer-nodes', args=[made.rich.pk, event])}?{chosen}"


@pytest.mark.slow
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_page_is_accessible_and_quiet(
    page: Page,
    live_server: LiveServer,
    made: Production,
    login: Callable[[User], None],
    complaints: Complaints,
    viewport: dict[str, int],
) -> None:
    complaints.expected = {404}
    page.set_viewport_size(viewport)

    page.goto(live_server.url + reverse("web:login"))
    faults = _look(page, f"login-{viewport['width']}")
    login(made.people.olga)
    for name, address in pages_of(made).items():
        page.goto(live_server.url + address)
        faults += _look(page, f"{name}-{viewport['width']}")

    assert not faults, "\n".join(faults[:20])


def _look(page: Page, name: str) -> list[str]:
    """Wait until all is there, keep pictures, and return what is wrong with the page."""
    page.wait_for_function(_IS_SETTLED)
    SHOTS.mkdir(parents=True, exist_ok=True)
    faults = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=SHOTS / f"{name}-{scheme}.png", full_page=True)
        found = Axe().run(page, options=_AXE).response["violations"]
        faults += [
            f"{name}-{scheme}: {violation['id']}: {node['html'][:200]}: {node['failureSummary']}"
            for violation in found
            for node in violation["nodes"]
        ]
    spare = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return faults + ([f"{name}: {spare} px too wide"] if spare > 0 else [])
