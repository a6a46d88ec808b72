from __future__ import annotations

import pytest

from tests import factories
from wms.bulk import tasks
from wms.bulk.models import BulkOperation
from wms.bulk.services import Confirmation, Selection, confirm, freeze
from wms.core.actors import Actor
from wms.core.loops import known_loops, last_report
from wms.jobs.models import Job


@pytest.mark.django_db(transaction=True)
def test_the_task_goes_on_with_what_was_confirmed_and_reports() -> None:
    alice = Actor.person(factories.person("alice"))
    assert alice.user is not None
    factories.job(alice.user)
    made = freeze(Selection("jobs", Job.objects.all()), action="hold", actor=alice)
    confirm(made.pk, Confirmation(reason="x"), actor=alice)

    tasks.run()

    assert BulkOperation.objects.get().state == "done"
    assert last_report("bulk-operations") == {"operations": 1, "objects": 1, "forgotten": 0}
    assert known_loops()["bulk-operations"].task == tasks.run.name
