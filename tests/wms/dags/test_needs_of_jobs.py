"""Needs of jobs after parsing: warnings, jobs, and the sites that a DAG may go to."""

from __future__ import annotations

import pytest

from matching.negotiation.unmatched_reasons import Kind
from matching.task_queues.needs import Needs
from tests.wms.dags.driving import advance, match
from tests.wms.dags.test_needs import sub
from wms.accounting.models import AccountingGroup
from wms.accounting.services import save_group
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag, MatchRecord
from wms.dags.submission.submit import submission_warnings
from wms.jobs.models import Job
from wms.sites.models import Queue, Site
from wms.taskqueues.models import TaskQueue, TaskQueuePolicy, WaitingJob
from wms.taskqueues.task_queue_policy import save_policy

SYSTEM = Actor.system("test")


def in_group(user: User, name: str = "physics") -> AccountingGroup:
    group = AccountingGroup(name=name, quota=1.0)
    save_group(group, actor=SYSTEM, members=[user])
    return group


@pytest.fixture
def sites(make_site) -> None:
    make_site("site-a", queue={"tags": ["cvmfs"], "platform": "linux-x86_64", "cores": 8})


def warnings(dag: Dag) -> list[tuple[str, int | None, str]]:
    """File, line and subject of each warning: the command or attribute that it begins with."""
    return [
        (each.file, each.line, each.message.split()[0].removesuffix(":"))
        for each in submission_warnings(dag)
    ]


def test_words_that_no_site_offers_today_are_accepted_with_a_warning(submit, sites) -> None:
    dag = submit(
        'JOB A step.sub\nJOB B step.sub\nVARS B +Tags="\\"cvmfs\\""',
        files=sub(
            '+Sites = "site-a, T2_X"',
            '+Tags = "cvmfs, gpu"',
            '+Platforms = "arm"',
            '+Queues = "site-a/main, site-a/gone"',
            '+BannedSites = "T3"',
            '+SubmitPools = "pool"',
            '+Middlewares = "host, slurm"',
            '+Setup = "Test"',
        ),
    )

    assert dag.state == "idle"
    unknown = ["T2_X", "gpu", "arm", "site-a/gone", "T3", "pool", "slurm", "Test"]
    assert warnings(dag) == [
        ("step.sub", 2, "+Sites"),
        ("step.sub", 3, "+Tags"),
        ("step.sub", 4, "+Platforms"),
        ("step.sub", 5, "+Queues"),
        ("step.sub", 6, "+BannedSites"),
        ("step.sub", 7, "+SubmitPools"),
        ("step.sub", 8, "+Middlewares"),
        ("step.sub", 9, "+Setup"),
    ]
    for word, warning in zip(unknown, submission_warnings(dag), strict=True):
        assert f" {word} " in warning.message


def test_more_time_than_any_queue_has_is_accepted_with_a_warning(submit, make_site) -> None:
    make_site("site-a", queue={"wall_time_s": 3600})
    dag = submit(
        'JOB A step.sub\nJOB B step.sub\nVARS B +CPUTimeSeconds="300" most_s="7200"\n',
        files=sub("+CPUTimeSeconds = 4000", "allowed_execute_duration = $(most_s:600)"),
    )

    assert dag.state == "idle"
    assert sorted(warnings(dag)) == [
        ("step.sub", 2, "+CPUTimeSeconds"),
        ("test.dag", 3, "allowed_execute_duration"),
    ]
    assert all("3540 s" in each.message for each in submission_warnings(dag))


def test_time_that_some_queue_has_is_accepted_without_a_word(submit, make_site) -> None:
    make_site("site-a", queue={"wall_time_s": 3600})
    make_site("site-b", queue={"wall_time_s": 172_800})

    dag = submit(
        "JOB A step.sub",
        files=sub("+CPUTimeSeconds = 50000", "allowed_execute_duration = 90000"),
    )

    assert warnings(dag) == []


def test_words_that_are_offered_are_accepted_without_a_word(submit, sites) -> None:
    dag = submit(
        "JOB A step.sub",
        files=sub(
            '+Sites = "site-a"',
            '+Tags = "cvmfs"',
            '+Platforms = "linux-x86_64"',
            '+Queues = "site-a/main"',
            '+Middlewares = "host"',
            "tags = y",
            "arguments = $(Tags)",
            "+ProjectName = 1",
        ),
    )

    assert warnings(dag) == []


def test_what_is_misspelt_is_accepted_with_a_warning(submit, sites) -> None:
    dag = submit(
        "JOB A step.sub",
        files=sub("+BannedSite = 1", "request_cpu = 4", 'sites = "site-a"', "request_disk = 1"),
    )

    assert warnings(dag) == [
        ("step.sub", 2, "+BannedSite"),
        ("step.sub", 3, "request_cpu"),
        ("step.sub", 4, "sites"),
    ]
    meant = ["+BannedSites", "request_cpus", "+Sites"]
    for name, warning in zip(meant, submission_warnings(dag), strict=True):
        assert f" {name} " in warning.message


def test_requirements_on_what_no_pilot_has_are_accepted_with_a_warning(submit, sites) -> None:
    text = "\n".join(f'JOB N{n} step.sub\nVARS N{n} mb="{n}"' for n in range(3))
    dag = submit(text, files=sub("requirements = TARGET.Cpu >= 1 && Memory > $(mb)"))

    assert warnings(dag) == [("step.sub", 2, "requirements")]
    assert "Cpus?" in submission_warnings(dag)[0].message


def test_words_from_vars_are_told_with_their_line(submit, sites) -> None:
    dag = submit(
        'VARS B APPEND +Tags="\\"gpu\\""\nJOB A step.sub\nVARS A Other="1"\n'
        'VARS A S="T2_X"\nJOB B step.sub',
        files=sub('+Tags = "cvmfs"', '+sites = "$(s:site-a)"'),
    )

    assert warnings(dag) == [("test.dag", 1, "+Tags"), ("test.dag", 4, "+Sites")]


def test_what_is_misspelt_in_vars_is_accepted_with_a_warning_where_it_comes_first(
    submit, sites
) -> None:
    dag = submit(
        'JOB A step.sub\nJOB B step.sub\nVARS A x="1" +Tag="\\"gpu\\"" tags="y"\nVARS B +tag="2"',
        files=sub(),
    )

    assert warnings(dag) == [("test.dag", 3, "+Tag")]


def test_what_belongs_to_the_whole_dag_is_accepted_with_a_warning(submit, sites) -> None:
    dag = submit(
        'JOB A step.sub\nVARS A +AccountingGroup="\\"x\\""',
        files=sub("accounting_group = physics", "max_cpus = 4", "concurrency_limits = db"),
    )

    assert warnings(dag) == [
        ("step.sub", 2, "accounting_group"),
        ("step.sub", 3, "max_cpus"),
        ("test.dag", 2, "+AccountingGroup"),
    ]
    group, cpus, *_ = submission_warnings(dag)
    assert "DAG's description" in group.message
    assert "+MaxCpus" in cpus.message


def test_of_a_name_that_is_given_again_in_another_case_the_last_one_counts(submit, sites) -> None:
    dag = match(
        submit(
            'JOB A step.sub\nVARS A +JobType="\\"a\\""\n'
            'VARS A +jobtype="\\"b\\"" +JobType="\\"c\\""',
            files=sub("+MaxCpus = 2", "+maxcpus = 3", "+MaxCpus = 4"),
        )
    )

    assert warnings(dag) == [
        ("step.sub", 3, "+maxcpus"),
        ("step.sub", 4, "+MaxCpus"),
        ("test.dag", 3, "+JobType"),
        ("test.dag", 3, "+jobtype"),
    ]
    needs = Needs.from_dict(job_of(dag).needs)
    assert (needs.max_cores, needs.job_type) == (4, "c")


def test_the_warnings_of_a_repeated_submission_are_those_of_the_first(submit, sites) -> None:
    files = sub('+Tags = "gpu"')
    first = submit("JOB A step.sub", files=files, idempotency_key="k")
    again = submit("JOB A step.sub", files=files, idempotency_key="k")

    assert first == again
    assert warnings(again) == warnings(first) == [("step.sub", 2, "+Tags")]


def job_of(dag: Dag) -> Job:
    return Job.objects.get(topic_key=dag.pk)


def test_a_job_waits_for_its_site_with_its_group_its_priority_and_its_segment(
    submit, sites, alice: User
) -> None:
    in_group(alice)
    save_policy(TaskQueuePolicy(pk=1, cpu_segments_s=[700, 7_000]), actor=SYSTEM)

    dag = match(
        submit(
            "JOB A step.sub",
            files=sub("priority = 7", "+CPUTimeSeconds = 800", '+Sites = "site-a, T2_X"'),
            description_text="accounting_group = physics",
            description_name="group.sub",
        )
    )

    waiting = WaitingJob.objects.get(job_id=job_of(dag).pk)
    queue = TaskQueue.objects.get(pk=waiting.task_queue_id)
    assert (waiting.priority, job_of(dag).priority) == (7, 7)
    assert (queue.sites, queue.owner_group, queue.cpu_time_s) == (["site-a"], "physics", 7_000)
    assert Needs.from_dict(job_of(dag).needs).sites == ("site-a",)


def test_needs_that_depend_on_the_site_are_read_when_it_is_known(submit, make_site) -> None:
    make_site("site-a", queue={"cores": 8, "tags": ["fast"]}, attributes='Speed = "fast"\nN = 8')

    dag = match(
        submit(
            "JOB A step.sub",
            files=sub(
                '+Tags = "$$(Speed)"', "request_cpus = $$(N)", "requirements = Cpus >= $$(N)"
            ),
        )
    )

    needs = Needs.from_dict(job_of(dag).needs)
    assert (needs.tags, needs.cores, needs.requirements) == (("fast",), 8, "Cpus >= 8")
    assert warnings(dag) == []


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("+RequestCpus = 4", "request_cpus"),
        ("+Priority = 4", "priority"),
        ("+Requirements = true", "requirements"),
        ("+CPUTime = 4", "+CPUTimeSeconds"),
        ("JobPrio = 4", "priority"),
        ('tags = "x"', "+Tags"),
        ("log = dag.log", ""),
    ],
)
def test_names_from_elsewhere_are_accepted_with_the_name_that_counts_here(
    submit, sites, line: str, meant: str
) -> None:
    found = submission_warnings(submit("JOB A step.sub", files=sub(line)))

    assert len(found) == bool(meant)
    assert all(f" {meant} " in each.message for each in found)


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ('+Sites = "T2_X"', "at T2_X"),
        ('+BannedSites = "site-a"', "not run at site-a"),
        ('+Queues = "T2_X/q"', "T2_X/q"),
        ('requirements = Site == "T2_X"', 'Site == "T2_X"'),
        ('+Middlewares = "slurm"', "slurm"),
        ("+MaxCpus = 2\nrequest_gpus = 1", "1 GPUs"),
    ],
)
def test_a_dag_is_not_matched_with_a_site_that_its_node_excludes(
    submit, sites, line: str, fact: str
) -> None:
    dag = match(submit("JOB A step.sub", files=sub(*line.split("\n"))))

    assert (dag.state, dag.unmatched_kind) == ("idle", Kind.NODES)
    assert "Node A: " in dag.unmatched_reason
    assert fact in dag.unmatched_reason
    assert not MatchRecord.objects.exists()


def test_a_dag_at_a_site_whose_own_values_ask_too_much_looks_elsewhere(submit, make_site) -> None:
    make_site("site-a", attributes='Speed = "fast"')

    dag = match(submit("JOB A step.sub", files=sub('+Tags = "$$(Speed)"')))

    assert dag.state == "idle"
    record = MatchRecord.objects.get(dag=dag)
    assert record.end == MatchRecord.End.UNFIT
    assert record.reason.startswith("node A: ")
    assert "fast" in record.reason
    assert not Job.objects.exists()


def test_of_the_queues_of_a_site_each_tells_why_it_cannot_run_a_node(submit, sites) -> None:
    site = Site.objects.get()
    Queue.objects.create(site=site, name="many", element="host", cores=64, memory_mb=10)
    dag = match(submit("JOB A step.sub", files=sub("request_cpus = 32", "request_memory = 999")))

    assert "main: needs 32 cores" in dag.unmatched_reason
    assert "many: needs 999 MB" in dag.unmatched_reason


def test_requirements_on_the_node_do_not_turn_a_site_down(submit, sites) -> None:
    dag = match(submit("JOB A step.sub", files=sub('requirements = Machine == "node7"')))

    assert advance(dag).state == "running"
    assert job_of(dag).state == "waiting"
