"""What the example that fills a portal refuses to do."""

from __future__ import annotations

import sys

import pytest

from examples.load import __main__ as command
from examples.load.scale import Scale
from tests import factories
from wms.jobs.models import Job


@pytest.mark.slow
def test_a_portal_with_things_of_its_own_is_left_alone(
    db: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    factories.site()
    monkeypatch.setattr(sys, "argv", ["load", "--jobs", "1500"])

    assert command.main() == 1

    assert "there are sites in this portal already" in capsys.readouterr().err
    assert not Job.objects.exists()


def test_a_production_that_cannot_be_is_refused() -> None:
    assert Scale.of_jobs(1_000_000).faults() == []
    assert Scale.of_jobs(50).faults()
    assert Scale(pilots=10).faults()
