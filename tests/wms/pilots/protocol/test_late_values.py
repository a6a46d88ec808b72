"""Late values: `$$(...)`, MATCH_ and `$ENV(...)` of a job get those of the site that drew it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.statements import carried_out_by
from tests.wms.dags.driving import NOW, advance, match
from tests.wms.pilots.claiming import SYSTEM, ask, running_pilot
from wms.core.errors import InvalidInput
from wms.dags.models import Dag
from wms.jobs.attempts.ending import PayloadEnd, end_attempt
from wms.jobs.attempts.progress import add_attempt_file
from wms.jobs.attempts.rescheduling import reschedule_jobs
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Attempt, Filling, Job, WorkspaceFile
from wms.jobs.operations import release_jobs
from wms.pilots.models import Pilot

pytestmark = pytest.mark.django_db
Make = Callable[..., Any]


@pytest.fixture
def pilots(make_site: Make) -> dict[str, Pilot]:
    """A pilot at each of two sites, which differ in their ads and environments."""
    sites = [
        make_site("site-a", environment="ROOT=/data/a", attributes='Arch = "x86"\nDisks = 2'),
        make_site("site-b", environment="ROOT=/data/b", attributes="Disks = 5"),
    ]
    return {site.name: running_pilot(site.queues.get()) for site in sites}


@pytest.fixture
def late(submit: Make) -> Callable[..., Dag]:
    """A DAG of one node whose jobs are bound by their claims; `commands` are its description."""

    def make(commands: str, *, text: str = "JOB A step.sub\n", description: str = "") -> Dag:
        return submit(
            text,
            files={"step.sub": f"executable = step.sh\n{commands}"},
            description_text=f"binding = job\n{description}",
            description_name="dag.sub",
        )

    return make


@pytest.mark.parametrize(
    ("site", "arguments", "variables"),
    [
        ("site-a", ["site-a", "2", "x86", "/data/a"], {"AT": "site-a", "TWICE": "4"}),
        ("site-b", ["site-b", "5", "any", "/data/b"], {"AT": "site-b", "TWICE": "10"}),
    ],
)
def test_values_are_those_of_the_site_that_draws_the_job(
    pilots: Any, late: Make, site: str, arguments: list[str], variables: dict[str, str]
) -> None:
    match(
        late(
            "arguments = $$(Name) $$(Disks) $$(Arch:any) $ENV(ROOT)\n"
            'environment = "AT=$$(name) TWICE=$$([TARGET.Disks * 2])"\n'
            "output = $$(Name).out\n"
        )
    )

    work = ask(pilots[site]).work

    assert work is not None
    assert list(work.job.arguments) == arguments
    assert work.job.environment == variables
    assert work.job.stdout_name == f"{site}.out"
    assert work.job.attributes["MATCH_Name"] == site
    assert Job.objects.get().arguments == []


def test_expressions_may_look_at_the_job_and_its_dag(pilots: Any, late: Make) -> None:
    match(
        late(
            "request_memory = 300\n"
            "arguments = $$([MY.RequestMemory * TARGET.Disks]) $$([MY.Owner]) $$([MY.Kind])\n"
            "+Mine = 3\n",
            description='+Kind = "night"\n',
        )
    )

    work = ask(pilots["site-b"]).work

    assert work is not None
    assert list(work.job.arguments) == ["1500", "alice", "night"]


def test_the_same_claim_is_given_the_same_values_though_the_ad_changed(
    pilots: Any, late: Make
) -> None:
    match(late("arguments = $$(Disks)\n"))
    pilot = pilots["site-a"]
    first = ask(pilot, key="a" * 32).work
    pilot.queue.site.attributes = "Disks = 9"
    pilot.queue.site.save()
    match(Dag.objects.get())

    again = ask(pilot, key="a" * 32).work

    assert first is not None
    assert again is not None
    assert list(first.job.arguments) == list(again.job.arguments) == ["2"]


def test_each_attempt_keeps_what_it_ran_with(pilots: Any, late: Make) -> None:
    match(late("arguments = $$(Name)\n"))
    first = ask(pilots["site-a"]).work
    assert first is not None
    reschedule_jobs(
        [first.job.pk],
        outcome=Attempt.Outcome.LOST,
        actor=SYSTEM,
        reason="its pilot is gone",
        is_at_fault=False,
    )

    second = ask(pilots["site-b"]).work

    assert second is not None
    fillings = Filling.objects.order_by("attempt__number").values_list("fields", flat=True)
    assert [each["arguments"] for each in fillings] == [["site-a"], ["site-b"]]


def test_a_job_whose_value_is_undefined_at_its_site_is_held_and_names_it(
    pilots: Any, late: Make
) -> None:
    dag = match(late("arguments = $$(Arch)\n"))

    answer = ask(pilots["site-b"])

    job = Job.objects.get()
    assert answer.work is None
    assert (job.state, job.state_cause, job.max_attempts) == ("held", "undefined", 6)
    assert "Arch" in job.state_reason
    assert Attempt.objects.get().outcome == "not_run"
    release_jobs([job.pk], actor=SYSTEM)
    assert ask(pilots["site-a"]).work is not None
    assert advance(dag).state == "running"


def test_a_name_that_leads_out_of_the_workspace_holds_the_job(pilots: Any, late: Make) -> None:
    match(late("transfer_output_files = $$(Arch:../../x)\n"))

    assert ask(pilots["site-b"]).work is None
    assert Job.objects.get().state_cause == "undefined"
    assert not Filling.objects.exists()


def test_outputs_with_late_names_come_into_the_workspace(pilots: Any, late: Make) -> None:
    match(late("transfer_output_files = hist.$$(Name)\n"))
    work = ask(pilots["site-b"]).work
    assert work is not None
    attempt = Attempt.objects.get()
    add_attempt_file(attempt, kind="output", path="hist.site-b", blob=store_bytes(b"1"))

    end_attempt(
        attempt.job_id,
        1,
        pilot_id=pilots["site-b"].pk,
        end=PayloadEnd(exit_code=0),
        actor=SYSTEM,
        now=NOW,
    )

    assert Job.objects.get().state == "done"
    assert WorkspaceFile.objects.filter(path="hist.site-b").exists()


def test_an_output_with_a_late_name_that_did_not_come_fails_the_job(
    pilots: Any, late: Make
) -> None:
    match(late("transfer_output_files = hist.$$(Name)\n"))
    ask(pilots["site-b"])

    end_attempt(
        Job.objects.get().pk,
        1,
        pilot_id=pilots["site-b"].pk,
        end=PayloadEnd(exit_code=0),
        actor=SYSTEM,
        now=NOW,
    )

    assert (Job.objects.get().state, Job.objects.get().state_cause) == ("failed", "outputs")


def test_the_number_of_the_cluster_is_known_in_late_texts(pilots: Any, late: Make) -> None:
    match(late("arguments = $(Cluster) $(node) $$(Name)\n"))

    work = ask(pilots["site-a"]).work

    assert work is not None
    assert list(work.job.arguments) == [str(work.job.cluster_id), "A", "site-a"]


def test_nothing_is_filled_in_where_nothing_refers_to_the_site(pilots: Any, late: Make) -> None:
    match(late("arguments = $(node)\n"))

    work = ask(pilots["site-a"]).work

    assert work is not None
    assert list(work.job.arguments) == ["A"]
    assert not Filling.objects.exists()


def test_the_claim_of_a_job_bound_before_sends_no_statement_more(
    pilots: Any, late: Make, submit: Make
) -> None:
    dag = match(submit("JOB A step.sub\n"))
    bound = pilots.pop(dag.site.name)
    of_bound = carried_out_by(lambda: ask(bound))
    match(late("arguments = $(node)\n"))
    [other] = pilots.values()

    of_late = carried_out_by(lambda: ask(other))

    assert Attempt.objects.count() == 2
    assert len(of_bound) == len(of_late)
    assert not any("filling" in each or "sitescope" in each for each in (*of_bound, *of_late))


@pytest.mark.parametrize(
    "command",
    [
        "executable = $$(Arch)",
        "transfer_input_files = $ENV(ROOT)/x",
        "request_memory = $$(Memory)",
        "request_cpus = $$([TARGET.Disks])",
        "requirements = Disks > $$(Disks)",
        "initialdir = $$(Name)",
        "priority = $$(Disks)",
        "periodic_hold = $$(Disks) > 3",
        '+Sites = "$$(Name)"',
    ],
)
def test_references_where_a_value_is_needed_before_the_claim_are_faults(
    late: Make, command: str
) -> None:
    extra = "" if command.startswith("executable") else "executable = step.sh\n"
    with pytest.raises(InvalidInput) as refused:
        late(f"{extra}{command}\n")

    [finding] = refused.value.findings
    assert (finding.file, finding.line) == ("step.sub", 3 if extra else 2)
    assert not Dag.objects.exists()
