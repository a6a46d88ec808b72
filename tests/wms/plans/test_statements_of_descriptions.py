from __future__ import annotations

from tests.wms.plans.query_plans import analyze, explain, run, scanned_whole
from wms.core.models import User
from wms.jobs import sql


def test_descriptions_are_found_by_their_keys(alice: User) -> None:
    run(
        "INSERT INTO jobs_jobdescription (key, content)"
        " SELECT sha256(n::text::bytea), '{}' FROM generate_series(1, 100000) AS n"
    )
    analyze("jobs_jobdescription")

    steps = explain(sql.FIND_DESCRIPTIONS, [[b"x" * 32, b"y" * 32]])

    assert not scanned_whole(steps, "jobs_jobdescription")
