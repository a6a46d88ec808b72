from __future__ import annotations

from importlib import import_module

from django.apps import apps

from tests.wms.dags.driving import NOW, match
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import MatchRecord
from wms.dags.services.dags import hold_dags, remove_dags


def test_dags_bound_before_matches_were_recorded_get_an_open_record(
    submit, make_site, alice: User
) -> None:
    make_site("site-a", max_matches=10)
    dags = [submit("JOB A step.sub") for _ in range(4)]
    match(dags[0])
    hold_dags([dags[1].pk], actor=Actor.person(alice), reason="wait")
    remove_dags([dags[2].pk], actor=Actor.person(alice), reason="no use")
    MatchRecord.objects.all().delete()
    migration = import_module("wms.dags.migrations.0004_records_of_open_matches")

    for _ in range(2):
        migration.open_records(apps, None)

    records = MatchRecord.objects.order_by("dag")
    assert [record.dag_id for record in records] == [dags[0].pk, dags[1].pk, dags[3].pk]
    assert {(record.matched_at, record.site.name) for record in records} == {(NOW, "site-a")}
    assert not records.exclude(ended_at=None).exists()
