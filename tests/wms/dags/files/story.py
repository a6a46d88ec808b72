"""Builder of the rows of a DAG's run, event by event at chosen times, without the engine.

`all_outcomes` builds the run of a sample with the numbers and times of DAGMan's own files.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests import factories
from wms.core.models import User
from wms.dags.lifecycle import JOB_TOPIC
from wms.dags.models import Dag, DagEvent, Edge, Node, NodeEvent, ScriptRun
from wms.dags.states import NODE_TRANSITIONS
from wms.jobs.models import Job, JobEvent, Workspace
from wms.jobs.states import TRANSITIONS

START = 1_795_181_832


class Story:
    """Writes the rows of one run; its clock advances by a millisecond with every event."""

    def __init__(self, owner: User, **fields: Any) -> None:
        self.now = datetime.fromtimestamp(START, UTC)
        workspace = fields.pop("workspace", None) or Workspace.objects.create(owner=owner)
        fields = {"name": "sample", "dag_files": ["sample.dag"], "created_at": self.now} | fields
        self.dag = Dag.objects.create(owner=owner, workspace=workspace, **fields)
        self.nodes: dict[str, Node] = {}
        self.scripts: dict[str, ScriptRun] = {}

    def at(self, second: int) -> Story:
        """Set the clock to this second of Unix time."""
        self.now = max(self.now, datetime.fromtimestamp(second, UTC))
        return self

    def _tick(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    def add(self, *names: str, **fields: Any) -> Story:
        for name in names:
            self.nodes[name] = Node.objects.create(
                dag=self.dag, name=name, ordinal=len(self.nodes) + 1, **fields
            )
        return self

    def arcs(self, parents: str, children: str, *, is_weak: bool = False) -> Story:
        for parent in parents.split():
            for child in children.split():
                Edge.objects.create(
                    parent=self.nodes[parent], child=self.nodes[child], is_weak=is_weak
                )
        return self

    def dag_event(self, event: str, **changes: Any) -> Story:
        DagEvent.objects.create(dag=self.dag, event=event, actor="t", created_at=self._tick())
        return self.set(**changes)

    def set(self, **changes: Any) -> Story:
        Dag.objects.filter(pk=self.dag.pk).update(**changes)
        self.dag.refresh_from_db()
        return self

    def move(self, event: str, name: str, reason: str = "", **facts: Any) -> Story:
        """Add an event of a node, and change the node's state by it."""
        node, step = self.nodes[name], NODE_TRANSITIONS[event]
        assert node.state in step.sources, f"{name} is {node.state}"
        NodeEvent.objects.create(
            dag=self.dag,
            node=node,
            event=event,
            from_state=node.state,
            to_state=step.target,
            actor="t",
            reason=reason,
            facts=facts,
            created_at=self._tick(),
        )
        node.state, node.state_reason = step.target, reason
        node.job_id = facts.get("job", node.job_id)
        node.retry_number += event == "retry"
        node.save()
        return self

    def submit(self, name: str, first: int, processes: int = 1) -> Story:
        """Submit a node as the cluster `first`; further jobs of it are 100 above."""
        for process in range(processes):
            job = factories.stored_job(
                pk=first + 100 * process,
                name=name,
                owner=self.dag.owner,
                workspace=self.dag.workspace,
                topic=JOB_TOPIC,
                topic_key=self.dag.pk,
                cluster_id=first,
                process=process,
            )
            self.job("enqueue", job.pk)
        return self.move("submit", name, job=first)

    def job(self, event: str, pk: int, reason: str = "", **facts: Any) -> Story:
        """Add an event of a job, and change the job's state by it."""
        job, step = Job.objects.get(pk=pk), TRANSITIONS[event]
        JobEvent.objects.create(
            job=job,
            event=event,
            from_state=job.state,
            to_state=step.target,
            actor="t",
            reason=reason,
            facts=facts,
            created_at=self._tick(),
        )
        job.state, job.attempt_number, job.state_reason = step.target, 1, reason or "because"
        job.save()
        return self

    def run(self, pk: int, host: str = "node1") -> Story:
        """Add the events by which a pilot takes the job and starts it."""
        return self.job("match", pk, host=host).job("start", pk)

    def begin_script(self, kind: str, name: str, run: int = 0) -> Story:
        """Add the start of a script of the node."""
        self.scripts[name] = ScriptRun.objects.create(
            dag=self.dag,
            node=self.nodes[name],
            kind=kind,
            retry_number=self.nodes[name].retry_number,
            run_number=run,
            executable=f"{kind}.sh",
            state="running",
            started_at=self._tick(),
        )
        return self

    def end_script(self, name: str, code: int) -> Story:
        """Add the end of the node's running script."""
        run = self.scripts.pop(name)
        run.state, run.exit_code, run.ended_at = "ended", code, self._tick()
        run.save()
        return self

    def script(self, kind: str, name: str, code: int, run: int = 0) -> Story:
        """Add the start and the end of a script of the node."""
        return self.begin_script(kind, name, run).end_script(name, code)


def all_outcomes(owner: User) -> Story:
    """Run of `all_outcomes/sample.dag`, with the numbers and times of DAGMan's own files."""
    story = Story(owner, pk=3, exports={"status": "sample.status"})
    _begin(story)
    _first_attempts(story)
    _second_attempts(story)
    return story


def _begin(story: Story) -> None:
    story.add("Setup", "Multi").add("Skip", features={"is_noop": True})
    story.add("Held").add("Retry", max_retries=2)
    story.add("Bad", "Rescued", "Killed", "After")
    story.add("Done1", state="done", state_reason="User defined as DONE")
    story.arcs("Setup", "Multi Skip Held Retry Bad Rescued Killed")
    story.arcs("Multi Skip Held Bad", "After").dag_event("match")
    story.move("make ready", "Setup").move("start pre", "Setup").script("pre", "Setup", 0)
    story.move("pass pre", "Setup")
    story.at(START + 1).submit("Setup", 4).at(START + 10).run(4).job("complete", 4, exit_code=0)
    story.move("start post", "Setup").begin_script("post", "Setup").at(START + 11)
    story.end_script("Setup", 0).move("succeed", "Setup")


def _first_attempts(story: Story) -> None:
    for name in ("Multi", "Skip", "Held", "Retry", "Bad", "Rescued", "Killed"):
        story.move("make ready", name)
    story.at(START + 21).submit("Multi", 5, 3).move("succeed", "Skip")
    for pk, name in enumerate(("Held", "Retry", "Bad", "Rescued", "Killed"), start=6):
        story.submit(name, pk)
    # It was submitted on hold, which is no event.
    Job.objects.filter(pk=6).update(state="held", state_reason="submitted on hold")
    story.run(5).job("complete", 5, exit_code=0).at(START + 22)
    for pk in (105, 205):
        story.run(pk).job("complete", pk, exit_code=0)
    story.move("succeed", "Multi")
    story.run(7).job("fail", 7, "exit code 3", exit_code=3).move("retry", "Retry", "exit code 3")
    for second, pk, name, code in ((22, 8, "Bad", 7), (23, 9, "Rescued", 1)):
        story.at(START + second).run(pk).job("fail", pk, f"exit code {code}", exit_code=code)
        story.move("start post", name).begin_script("post", name)
    story.at(START + 24).run(10)


def _second_attempts(story: Story) -> None:
    story.at(START + 26).end_script("Bad", 5)
    story.move("fail", "Bad", "Job exited with status 7 and POST Script failed with status 5")
    story.move("give up", "After", "Had an ancestor node fail")
    story.end_script("Rescued", 0).move("succeed", "Rescued")
    story.at(START + 31).submit("Retry", 11).at(START + 50).run(11)
    story.job("fail", 11, "exit code 3", exit_code=3).move("retry", "Retry", "exit code 3")
    story.at(START + 56).job("hold", 10, "via condor_hold (by user user)").submit("Retry", 12)
    story.run(12).job("fail", 12, "exit code 3", exit_code=3)
    story.move("fail", "Retry", "Job proc (12.0.0) failed with status 3 (after 2 node retries)")
    story.at(START + 59).job("release", 10).job("release", 6)
    story.at(START + 70).run(6).run(10).at(START + 75).job("complete", 6, exit_code=0)
    story.move("succeed", "Held")
    story.at(START + 91).job("kill", 10, "no longer wanted (by user user)")
    aborted = "HTCondor reported ULOG_JOB_ABORTED event for job proc (10.0.0)"
    story.move("fail", "Killed", aborted)
    story.dag_event("fail", state="failed", state_reason="nodes failed", status=2, exit_code=1)
    story.set(ended_at=story.now)
