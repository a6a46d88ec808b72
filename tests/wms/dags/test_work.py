"""What nodes have under way beyond one job, and which nodes need no look at their ends."""

from __future__ import annotations

import pytest

from tests.wms.dags.driving import advance, claim_of, end, end_script, match, run_one, states
from wms.core.actors import Actor
from wms.dags.models import Node, NodeWork
from wms.jobs import lifecycle

pytestmark = pytest.mark.django_db
LIST = {"list.sub": "executable = /bin/true\nqueue 3\n"}


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site()


def _plain(dag) -> set[str]:
    return set(Node.objects.filter(dag=dag, is_plain=True).values_list("name", flat=True))


def test_nodes_with_features_and_provisioners_are_not_plain(submit) -> None:
    dag = submit(
        "JOB A step.sub\nJOB B step.sub\nRETRY A 2\nABORT-DAG-ON B 3\nPROVISIONER P step.sub\n"
        "SERVICE S step.sub\nFINAL F step.sub"
    )

    assert _plain(dag) == {"A", "S", "F"}


def test_a_node_with_a_list_of_jobs_is_looked_at_from_then_on(submit) -> None:
    dag = match(submit("JOB A list.sub\nJOB B step.sub", files=LIST))

    assert _plain(dag) == {"B"}
    work = NodeWork.objects.get()
    assert (work.node.name, work.job_count, work.jobs_left) == ("A", 3, 3)
    end(claim_of("A"), 0)
    advance(dag)
    work.refresh_from_db()
    assert work.jobs_left == 2


def test_a_retry_of_a_plain_node_writes_no_work(submit) -> None:
    dag = match(submit("JOB A step.sub\nRETRY A 1"))

    run_one("A", 1)
    advance(dag)

    assert (_plain(dag), NodeWork.objects.exists()) == ({"A"}, False)


def test_a_new_attempt_forgets_the_work_of_the_one_before(submit) -> None:
    text = "JOB A list.sub\nSCRIPT PRE A pre.sh\nRETRY A 1"
    dag = match(submit(text, files={**LIST, "pre.sh": "#!/bin/sh\n"}))
    end_script(dag, "A", "pre")
    advance(advance(dag))
    assert NodeWork.objects.get().pre_code == 0

    run_one("A", 1)
    advance(advance(dag))

    assert states(dag) == {"A": "pre_running"}
    assert not NodeWork.objects.exists()


def test_a_post_script_is_told_what_pre_gave(submit) -> None:
    text = "JOB A step.sub\nSCRIPT PRE A pre.sh\nSCRIPT POST A post.sh $PRE_SCRIPT_RETURN"
    files = {"pre.sh": "#!/bin/sh\n", "post.sh": "#!/bin/sh\n"}
    dag = match(submit(text, files=files, options={"always_run_post": True}))

    end_script(dag, "A", "pre", 7)
    advance(dag)

    assert end_script(dag, "A", "post").arguments == ["7"]
    assert NodeWork.objects.get().pre_code == 7


def test_holds_of_a_plain_node_are_counted_and_make_it_one_that_is_looked_at(submit) -> None:
    dag = match(submit("JOB A step.sub"))
    job = Node.objects.get(dag=dag).job_id

    lifecycle.apply("hold", [job], actor=Actor.system("test"), reason="wait")
    advance(dag)

    assert NodeWork.objects.get().hold_count == 1
    assert _plain(dag) == set()
