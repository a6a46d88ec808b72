"""Settings of the feeder: those of the wrong form stop the start, missing files its runs alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

from portal.selftest.findings import Code
from portal.selftest.registry import feeder
from wms.placement.conf import feeder_conf

WORKS = {"FEED_BELOW": 3.0, "FEED_PROGRAM": "/bin/true"}


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"FEED_PROGRAM": ""}, "FEED_PROGRAM"),
        ({"FEED_BELOW": 0}, "FEED_BELOW"),
        ({"FEED_BELOW": 2.5}, "FEED_BELOW"),
        ({"FEED_BELOW": float("inf")}, "FEED_BELOW"),
        ({"FEED_BELOW": float("nan")}, "FEED_BELOW"),
        ({"FEED_PROGRAM": "feed"}, "FEED_PROGRAM"),
        ({"FEED_TOKEN_FILE": "token"}, "FEED_TOKEN_FILE"),
        ({"FEED_PAUSE_S": float("inf")}, "FEED_PAUSE_S"),
        ({"FEED_LIMIT_S": 86401}, "FEED_LIMIT_S"),
    ],
)
def test_a_setting_of_the_wrong_form_stops_the_start_and_is_named(configure, values, named):
    configure(**WORKS | values)

    with pytest.raises(ImproperlyConfigured, match=f"PILOTAGE_PLACEMENT_{named}"):
        feeder_conf()


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("FEED_PROGRAM", "/no/such/program"),
        ("FEED_PROGRAM", "/etc/passwd"),
        ("FEED_PROGRAM", "/etc"),
        ("FEED_TOKEN_FILE", "/no/such/token"),
        ("FEED_TOKEN_FILE", "/dev/null"),
    ],
)
def test_a_file_that_is_missing_is_told_by_the_self_test_alone(configure, name, path):
    configure(**WORKS | {name: path})

    apps.get_app_config("placement").ready()
    [finding] = feeder()
    assert finding.code == Code.FEEDER_NOT_RUN
    assert f"PILOTAGE_PLACEMENT_{name}: {path}" in finding.what


def test_settings_that_work_are_taken_and_none_is_needed(configure):
    assert feeder_conf() is None

    configure(**WORKS)

    conf = feeder_conf()
    assert [each.code for each in feeder()] == [Code.FEEDER]
    assert (conf.below, conf.program, conf.token_file) == (3, Path("/bin/true"), None)


def test_the_portal_does_not_start_with_a_setting_that_is_wrong(configure):
    configure(**WORKS | {"FEED_PROGRAM": "feed"})

    with pytest.raises(ImproperlyConfigured, match="FEED_PROGRAM"):
        apps.get_app_config("placement").ready()
