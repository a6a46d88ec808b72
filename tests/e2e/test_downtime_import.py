"""Import of downtimes in the browser: a file is chosen, its preview read and confirmed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import WIDE, Complaints
from tests.e2e.page_checks import look, look_narrow
from tests.wms.exchange.downtimes.test_reading import calendar
from wms.core.models import User
from wms.sites.downtimes.models import Downtime


def test_a_calendar_is_previewed_with_what_is_left_out_and_imported(
    page: Page,
    live_server: LiveServer,
    login: Callable[[User], None],
    complaints: Complaints,
    pictures: Path | None,
) -> None:
    people = factories.people()
    factories.site("Florida")
    start = timezone.now() + timedelta(days=2)
    events = [
        f"UID:{number}\nSUMMARY:new disks\nLOCATION:{place}\n"
        f"DTSTART:{start:%Y%m%dT%H%M%SZ}\nDURATION:PT2H"
        for number, place in enumerate(("FLORIDA-T2", "Nowhere"))
    ]
    login(people.sam)
    page.goto(live_server.url + reverse("web:downtimes"))
    page.get_by_role("link", name="Import", exact=True).click()

    content = calendar(*events).encode()
    page.get_by_label("File").set_input_files(
        {"name": "team.ics", "mimeType": "text/calendar", "buffer": content}
    )
    page.get_by_role("textbox", name="Source").fill("team")
    page.get_by_label("Names of sites").fill("FLORIDA-T2 = Florida")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#plan-counts")).to_contain_text("1 added")
    expect(page.locator("#plan-box")).to_contain_text("no site is called Nowhere")
    assert look(page, "downtime-import-preview", pictures=pictures) == []
    assert look_narrow(page, "downtime-import-preview", pictures=pictures) == []
    page.set_viewport_size(WIDE)

    page.get_by_label("Reason").fill("as planned")
    page.get_by_role("button", name="Import this").click()
    expect(page.get_by_text("The downtimes are imported: 1 added")).to_be_visible()
    assert Downtime.objects.get().uid == "0"
