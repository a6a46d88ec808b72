"""Times of pages in the zone of the reader: all of them, and none beside."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.urls import reverse

from portal.personal.models import Preferences
from tests.portal.world import small_world

_MAIN = re.compile(r"<main\b.*?</main>", re.S)
_SCRIPT = re.compile(r"<script\b.*?</script>", re.S)
_TIME = re.compile(r"<time\b[^>]*>.*?</time>", re.S)
_AT = re.compile(r'<time class="at"[^>]* datetime="([^"]+)">(.*?)</time>', re.S)
_LOOKS_LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\d.\d\d:\d\d")
_KOLKATA = ZoneInfo("Asia/Kolkata")


def _plain(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", markup).split())


@pytest.mark.slow
def test_another_zone_changes_every_time_of_a_page(db: None) -> None:
    world, client = small_world(), Client()
    client.force_login(world.people.olga)
    Preferences.objects.update_or_create(
        user=world.people.olga, defaults={"time_zone": _KOLKATA.key}
    )

    for address in (
        reverse("web:dag", args=[world.dag.pk]),
        reverse("web:dag", args=[world.dag.pk]) + "?tab=events",
        reverse("web:job", args=[world.job.pk]),
        reverse("web:site", args=[world.site.name]),
        reverse("web:pilot", args=[world.pilot.pk]),
    ):
        [main] = _MAIN.findall(client.get(address).content.decode())
        times = _AT.findall(main)
        assert times, address
        for moment, told in times:
            local = datetime.fromisoformat(moment).astimezone(_KOLKATA)
            assert _plain(told) == f"{local:%Y-%m-%d %H:%M:%S} IST", address
        rest = _plain(_TIME.sub(" ", _SCRIPT.sub(" ", main)))
        assert not _LOOKS_LIKE_A_TIME.search(rest), address
