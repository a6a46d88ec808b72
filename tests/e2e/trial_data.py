"""Trials for the walk through the pages: of several states, with reports as the commands write."""

from __future__ import annotations

import io
import json
from datetime import timedelta

from django.urls import reverse
from django.utils import timezone

from portal.cli.dag_reports import check_report
from tests.e2e.production import Production
from wms.core.models import User
from wms.dags.language.origin import TOP
from wms.dags.models import Trial

_FAULTY = "JOB prepare prepare.sub\nJOB scan scan.sub # twice\nPARENT prepare CHILD merge\n"


def trial_pages(made: Production) -> dict[str, str]:
    """Pages of trials by the names of their pictures."""
    faulty = trials(made.people.alice)
    new = reverse("web:new-trial")
    return {
        "trials": reverse("web:trials"),
        "trial": reverse("web:trial", args=[faulty.pk]),
        "trial-new": new,
        "trial-of-dag": f"{new}?of={made.running.pk}&kind=dry_run",
    }


def trials(owner: User) -> Trial:
    """A dozen trials; returned is a check with faults."""
    now = timezone.now()
    for number in range(10):
        state = ("running", "failed", "stopped", "done")[number % 4]
        Trial.objects.create(
            owner=owner, kind="dry_run", request={"dag_files": [f"production_{number}.dag"]},
            archive=f"walk{number}", size_bytes=7, state=state, node_count=5000,
            ended_count=1234, lease_until=now + timedelta(days=1), report="{}", text="well",
            exit_code=number % 3, state_reason="it took too long" if state == "failed" else "",
            ended_at=None if state == "running" else now, started_at=now,
        )  # fmt: skip
    files = {"analysis.dag": io.BytesIO(_FAULTY.encode()), "scan.sub": io.BytesIO(b"queue\n")}
    told = check_report(files, ["analysis.dag"], TOP, allows_missing=True)  # type: ignore[arg-type]
    return Trial.objects.create(
        owner=owner, kind="check", request={"dag_files": ["analysis.dag"]}, archive="walked",
        size_bytes=7, state="done", ended_at=now, started_at=now, exit_code=told.exit_code,
        report=json.dumps(told.report), text=told.text,
    )  # fmt: skip
