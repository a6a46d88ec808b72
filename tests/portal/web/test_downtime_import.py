"""Import of downtimes by page, API and command: previewed, confirmed, stored."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.portal.web.markup import text_of
from wms.core.models import User
from wms.sites.downtimes.models import Downtime

ADDRESS = "/downtimes/import/"
API = "/api/v1/downtimes/import/"


@pytest.fixture
def sam(people: SimpleNamespace, browser_of: Callable[[User], Client]) -> Client:
    factories.site("Florida")
    return browser_of(people.sam)


@pytest.fixture
def document() -> bytes:
    start = timezone.now() + timedelta(days=2)
    lines = [
        "BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "UID:a", "SUMMARY:new disks",
        "LOCATION:Florida", f"DTSTART:{start:%Y%m%dT%H%M%S}Z", "DURATION:PT2H", "END:VEVENT",
        "END:VCALENDAR", "",
    ]  # fmt: skip
    return "\r\n".join(lines).encode()


def test_a_file_is_previewed_and_imported_as_it_was_shown(sam: Client, document: bytes) -> None:
    options = {"source": "team", "lead_min": "30"}
    sent = {**options, "file": SimpleUploadedFile("team.ics", document)}

    preview = sam.post(ADDRESS, sent).content.decode()

    assert text_of(preview, "plan-counts").startswith("1 added, 0 changed")
    assert not Downtime.objects.exists()
    [token] = re.findall(r'name="token" value="(\w+)"', preview)
    done = sam.post(
        ADDRESS, {**options, "text": document.decode(), "token": token, "reason": "as planned"}
    )
    assert done["Location"] == "/downtimes/"
    downtime = Downtime.objects.get()
    assert (downtime.source, downtime.lead_time_s) == ("team", 1800)
    assert "imported from team" in sam.get(f"/downtimes/{downtime.pk}/").content.decode()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"source": "team"}, 400),
        ({"source": "team", "text": "hello"}, 400),
        ({"source": "a b", "text": "BEGIN:VCALENDAR"}, 400),
        ({"source": "team", "text": "<results/>", "sites": "no equals"}, 400),
        ({"source": "team", "text": "<results/>", "token": "x", "reason": "look"}, 409),
    ],
    ids=["nothing", "no calendar", "no source", "no name", "another plan"],
)
def test_what_cannot_be_imported_is_refused_on_the_page(
    sam: Client, sent: dict[str, str], status: int
) -> None:
    assert sam.post(ADDRESS, sent).status_code == status
    assert not Downtime.objects.exists()


def test_programs_preview_and_import(sam: Client, document: bytes) -> None:
    def post(query: str) -> tuple[int, dict[str, object]]:
        answer = sam.post(f"{API}?source=team&{query}", document, content_type="text/calendar")
        return answer.status_code, answer.json()

    status, plan = post("dry_run=true")
    assert (status, plan["is_stored"], plan["counts"]["added"]) == (200, False, 1)
    assert not Downtime.objects.exists()
    assert post(f"token={plan['token']}")[0] == 400  # without a reason
    assert post("dry_run=true&site=Florida")[0] == 400
    assert post("")[0] == 400
    status, done = post(f"token={plan['token']}&reason=look")
    assert (status, done["is_stored"]) == (200, True)
    assert post(f"token={plan['token']}&reason=look")[0] == 409
    assert Downtime.objects.count() == 1


def test_a_command_shows_and_stores(sam: Client, document: bytes, tmp_path: Path) -> None:
    file, told = tmp_path / "team.ics", StringIO()
    file.write_bytes(document)
    options = ["--user", "sam", "--source", "team"]

    call_command("import_downtimes", str(file), *options, stdout=told)
    assert "added: Florida" in told.getvalue()
    assert not Downtime.objects.exists()
    call_command("import_downtimes", str(file), *options, "--store", "--reason", "x", stdout=told)
    assert Downtime.objects.count() == 1
    file.write_text("hello")
    with pytest.raises(CommandError):
        call_command("import_downtimes", str(file), *options)
