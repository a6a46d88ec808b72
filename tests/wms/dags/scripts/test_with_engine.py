"""Engine and script service together: nodes whose scripts make files that their jobs need."""

from __future__ import annotations

import pytest
from django.utils import timezone

from tests.factories import pilot, run_job, turn
from tests.wms.dags.scripts.conftest import files_of
from wms.dags.models import ScriptRun
from wms.dags.scripts import script_service
from wms.placement import runner as placements

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("works")]

DAG = """\
JOB A a.sub
SCRIPT PRE A make.sh a.sub
SCRIPT POST A check.sh $RETURN $SUCCESS
DATA B b.stork
PARENT A CHILD B
"""
FILES = {
    "make.sh": "#!/bin/sh\nprintf 'executable = /bin/true\\nqueue\\n' >$1\necho made\n",
    "check.sh": "#!/bin/sh\necho $1 $2 >checked\n",
    "b.stork": 'dap_type = "transfer"\nsrc_url = "file:checked"\ndest_url = "file:kept/"\n',
}


def test_a_script_writes_a_description_and_what_follows_is_placed(make_site, submit):
    make_site()
    dag = submit(DAG, files=FILES)
    turn()
    assert script_service.run_granted() == 1
    turn()
    assert run_job(pilot()) is not None
    turn()
    assert script_service.run_granted() == 1
    turn()
    assert placements.run_due() == 1
    turn()

    dag.refresh_from_db()
    assert dag.state == "completed", dag.state_reason
    assert set(ScriptRun.objects.values_list("exit_code", flat=True)) == {0}
    files = files_of(dag)
    assert files["checked"] == files["kept/checked"] == "0 True\n"
    assert ScriptRun.objects.filter(ended_at__lte=timezone.now()).count() == 2
