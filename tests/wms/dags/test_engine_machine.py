"""Random DAGs with random outcomes and crashes: engine, log and a plain model agree."""

from __future__ import annotations

import secrets
from collections import Counter

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests import factories
from tests.wms.dags.reference_model import ModelNode, dags, outcome
from wms.core.actors import Actor
from wms.core.models import InboxEntry
from wms.core.statemachine import Increment
from wms.dags.engine import cycle as engine
from wms.dags.engine.rebuild import rebuild_dag
from wms.dags.models import Node, ScriptRun
from wms.dags.scripts.run_leases import end_run
from wms.dags.services.dags import change_limits, hold_dags, release_dags
from wms.dags.states import DAG_TERMINAL
from wms.dags.submission.submit import DagSubmission, submit_dag
from wms.jobs import lifecycle
from wms.jobs.models import Job
from wms.jobs.states import TERMINAL
from wms.taskqueues import operations as taskqueues

SYSTEM = Actor.system("test")
WHY = {"actor": SYSTEM, "reason": "test"}


class _Killed(Exception):
    """The engine is killed before it commits."""


class Engine(RuleBasedStateMachine):
    """One DAG at a site, whose jobs and scripts end as they are told, in any order."""

    @initialize(nodes=dags())
    def submit(self, nodes: list[ModelNode]) -> None:
        self.nodes = {node.name: node for node in nodes}
        text = "\n".join(line for node in nodes for line in node.lines())
        files = {f"{n}.sub": _stream(f"executable = /bin/true\nqueue {n}\n") for n in (1, 3)}
        owner = factories.person("alice")
        self.dag = submit_dag(
            DagSubmission("case.dag", text, files), owner=owner, actor=Actor.person(owner)
        )
        self.runs: Counter[tuple[str, str]] = Counter()
        factories.turn()

    @rule()
    def advance(self) -> None:
        engine.run_cycle(timezone.now())

    @rule()
    def crash(self) -> None:
        try:
            with transaction.atomic():
                engine.run_cycle(timezone.now())
                raise _Killed
        except _Killed:
            pass

    @rule(choice=st.integers(0, 100))
    def end_a_job(self, choice: int) -> None:
        waiting = Job.objects.filter(topic_key=self.dag.pk, state="waiting").order_by("pk")
        jobs = list(waiting.values_list("pk", "name", "cluster_id", "process"))
        if jobs:
            self._end_job(*jobs[choice % len(jobs)])

    @rule(choice=st.integers(0, 100))
    def end_a_script(self, choice: int) -> None:
        granted = list(ScriptRun.objects.filter(dag=self.dag, state="granted").order_by("pk"))
        if granted:
            self._end_script(granted[choice % len(granted)])

    @rule(most=st.integers(0, 3))
    def change_limits(self, most: int) -> None:
        if self._is_alive():
            change_limits(self.dag.pk, options={"max_jobs": most, "max_pre": most}, **WHY)

    @rule()
    def hold(self) -> None:
        hold_dags([self.dag.pk], **WHY)

    @rule()
    def release(self) -> None:
        release_dags([self.dag.pk], actor=SYSTEM)

    def teardown(self) -> None:
        if not hasattr(self, "dag"):
            return
        for _ in range(400):
            release_dags([self.dag.pk], actor=SYSTEM)
            engine.run_cycle(timezone.now())
            if not self._is_alive():
                break
            self.end_a_job(0)
            self.end_a_script(0)
        self._compare()

    def _end_job(self, job_id: int, name: str, cluster_id: int, process: int) -> None:
        node = self.nodes[name]
        run = self._run_of(name, cluster_id or job_id)
        # The last process of a list has the node's code, the others succeed.
        code = node.code("job", run) if process == node.processes - 1 else 0
        taskqueues.withdraw([job_id])
        lifecycle.apply("match", [job_id], actor=SYSTEM, attempt_number=Increment())
        if code:
            facts = {job_id: {"exit_code": code}}
            lifecycle.apply("fail", [job_id], actor=SYSTEM, reason=f"code {code}", facts=facts)
        else:
            lifecycle.apply("complete", [job_id], actor=SYSTEM)

    def _run_of(self, name: str, cluster_id: int) -> int:
        """The number of the cluster among those of its node."""
        first = Job.objects.filter(topic_key=self.dag.pk, name=name, process=0, pk__lt=cluster_id)
        return first.count()

    def _end_script(self, run: ScriptRun) -> None:
        node = self.nodes[run.node.name]
        code = node.code(run.kind, self.runs[node.name, run.kind])
        self.runs[node.name, run.kind] += 1
        lease = secrets.token_hex(8)
        ScriptRun.objects.filter(pk=run.pk).update(
            state="running", lease=lease, started_at=timezone.now()
        )
        assert end_run(run.pk, lease, exit_code=code, now=timezone.now())

    def _is_alive(self) -> bool:
        self.dag.refresh_from_db()
        return self.dag.state not in DAG_TERMINAL

    def _compare(self) -> None:
        expected = outcome(list(self.nodes.values()))
        states = dict(Node.objects.filter(dag=self.dag).values_list("name", "state"))
        assert states == {name: result.state for name, result in expected.items()}
        all_done = all(state == "done" for state in states.values())
        assert self.dag.state == ("completed" if all_done else "failed")
        for name, result in expected.items():
            clusters = Job.objects.filter(topic_key=self.dag.pk, name=name, process=0).count()
            assert clusters == result.runs.get("job", 0), name
            for kind in ("pre", "post"):
                assert self.runs[name, kind] == result.runs.get(kind, 0), (name, kind)
        assert rebuild_dag(self.dag.pk).differences == ()
        assert not InboxEntry.objects.filter(key=self.dag.pk, topic="dag-scripts").exists()
        left = Job.objects.filter(topic_key=self.dag.pk).exclude(state__in=TERMINAL)
        assert not left.exists()


def _stream(text: str):  # type: ignore[no-untyped-def]
    import io

    return io.BytesIO(text.encode())


@pytest.mark.slow
@pytest.mark.django_db
def test_engine_log_and_model_agree_whatever_happens_in_whatever_order(
    django_capture_on_commit_callbacks: object,
) -> None:
    factories.site("site-a")
    run_state_machine_as_test(
        Engine,
        settings=settings(
            max_examples=20,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
