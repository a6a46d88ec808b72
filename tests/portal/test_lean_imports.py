"""Programs of the portal import no package that only other programs, or nobody here, uses."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

#: By charts, by the client on terminals, by portals that send traces.
_OF_OTHERS = {"plotly", "rich", "opentelemetry"}
_STARTED = """
import django, json, sys
django.setup()
import portal.celery, portal.urls
from wms.core.loops import known_loops
known_loops()
print(json.dumps(list(sys.modules)))
import rich, opentelemetry.sdk.metrics
"""


@pytest.mark.process
def test_a_program_takes_no_package_along_that_it_does_not_use() -> None:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "portal.settings"}

    done = subprocess.run(
        [sys.executable, "-c", _STARTED], env=environment, check=True, stdout=subprocess.PIPE
    )

    assert _OF_OTHERS.isdisjoint(json.loads(done.stdout))
