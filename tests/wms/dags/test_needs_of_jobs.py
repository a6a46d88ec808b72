"""What becomes of needs that were understood: warnings, jobs, and where a DAG may go."""

from __future__ import annotations

import pytest

from matching.needs import Needs
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


def warnings(dag: Dag) -> list[str]:
    return [str(warning) for warning in submission_warnings(dag)]


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
    assert warnings(dag) == [
        "step.sub:2: +Sites: there is no site T2_X today",
        "step.sub:3: +Tags: no queue offers the tag gpu today",
        "step.sub:4: +Platforms: no queue offers the platform arm today",
        "step.sub:5: +Queues: no site has a queue site-a/gone today",
        "step.sub:6: +BannedSites: there is no site T3 today",
        "step.sub:7: +SubmitPools: no queue is in the submit pool pool today",
        "step.sub:8: +Middlewares: no queue gets its pilots by slurm today",
        "step.sub:9: +Setup: no queue belongs to the setup Test today",
    ]


def test_more_time_than_any_queue_has_is_accepted_with_a_warning(submit, make_site) -> None:
    make_site("site-a", queue={"wall_time_s": 3600})
    dag = submit(
        'JOB A step.sub\nJOB B step.sub\nVARS B +CPUTimeSeconds="300" most_s="7200"\n',
        files=sub("+CPUTimeSeconds = 4000", "allowed_execute_duration = $(most_s:600)"),
    )

    assert dag.state == "idle"
    assert sorted(warnings(dag)) == [
        "step.sub:2: +CPUTimeSeconds: no queue has 5000 s for a job today, the longest has 3540 s:"
        " it will find no pilot",
        "test.dag:3: allowed_execute_duration: no queue has 7200 s for a job today: it is stopped"
        " after 3540 s at the latest",
    ]


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
        "step.sub:2: +BannedSite means nothing here; +BannedSites does",
        "step.sub:3: request_cpu means nothing here; request_cpus does",
        "step.sub:4: sites means nothing here; +Sites does",
    ]


def test_requirements_on_what_no_pilot_has_are_accepted_with_a_warning(submit, sites) -> None:
    text = "\n".join(f'JOB N{n} step.sub\nVARS N{n} mb="{n}"' for n in range(3))
    dag = submit(text, files=sub("requirements = TARGET.Cpu >= 1 && Memory > $(mb)"))

    assert warnings(dag) == [
        "step.sub:2: requirements: no pilot has an attribute Cpu; did you mean Cpus?"
    ]


def test_words_from_vars_are_told_with_their_line(submit, sites) -> None:
    dag = submit(
        'VARS B APPEND +Tags="\\"gpu\\""\nJOB A step.sub\nVARS A Other="1"\n'
        'VARS A S="T2_X"\nJOB B step.sub',
        files=sub('+Tags = "cvmfs"', '+sites = "$(s:site-a)"'),
    )

    assert warnings(dag) == [
        "test.dag:1: +Tags: no queue offers the tag gpu today",
        "test.dag:4: +Sites: there is no site T2_X today",
    ]


def test_what_is_misspelt_in_vars_is_accepted_with_a_warning_where_it_comes_first(
    submit, sites
) -> None:
    dag = submit(
        'JOB A step.sub\nJOB B step.sub\nVARS A x="1" +Tag="\\"gpu\\"" tags="y"\nVARS B +tag="2"',
        files=sub(),
    )

    assert warnings(dag) == ["test.dag:3: +Tag means nothing here; +Tags does"]


def test_what_belongs_to_the_whole_dag_is_accepted_with_a_warning(submit, sites) -> None:
    dag = submit(
        'JOB A step.sub\nVARS A +AccountingGroup="\\"x\\""',
        files=sub("accounting_group = physics", "max_cpus = 4", "concurrency_limits = db"),
    )

    why = "means nothing here: it is the whole DAG's, and belongs in the DAG's description"
    assert warnings(dag) == [
        f"step.sub:2: accounting_group {why}",
        "step.sub:3: max_cpus means nothing here; +MaxCpus does",
        f"step.sub:4: concurrency_limits {why}",
        f"test.dag:2: +AccountingGroup {why}",
    ]


def test_of_a_name_that_is_given_again_in_another_case_the_last_one_counts(submit, sites) -> None:
    dag = match(
        submit(
            'JOB A step.sub\nVARS A +JobType="\\"a\\""\n'
            'VARS A +jobtype="\\"b\\"" +JobType="\\"c\\""',
            files=sub("+MaxCpus = 2", "+maxcpus = 3", "+MaxCpus = 4"),
        )
    )

    assert warnings(dag) == [
        "step.sub:3: +maxcpus is +MaxCpus of line 2 again: the last one counts",
        "step.sub:4: +MaxCpus is +maxcpus of line 3 again: the last one counts",
        "test.dag:3: +JobType was given as +jobtype in line 3: the last one counts",
        "test.dag:3: +jobtype was given as +JobType in line 2: the last one counts",
    ]
    needs = Needs.from_dict(job_of(dag).needs)
    assert (needs.max_cores, needs.job_type) == (4, "c")


def test_the_warnings_of_a_repeated_submission_are_those_of_the_first(submit, sites) -> None:
    files = sub('+Tags = "gpu"')
    first = submit("JOB A step.sub", files=files, idempotency_key="k")
    again = submit("JOB A step.sub", files=files, idempotency_key="k")

    assert first == again
    assert warnings(again) == ["step.sub:2: +Tags: no queue offers the tag gpu today"]


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
    told = warnings(submit("JOB A step.sub", files=sub(line)))

    assert [each.partition("here; ")[2] for each in told] == ([f"{meant} does"] if meant else [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('+Sites = "T2_X"', "may run at T2_X only"),
        ('+BannedSites = "site-a"', "may not run at site-a"),
        ('+Queues = "T2_X/q"', "may run in the queues T2_X/q only"),
        ('requirements = Site == "T2_X"', 'has requirements that are false here: Site == "T2_X"'),
        ('+Middlewares = "slurm"', "is for pilots sent by slurm"),
        ("+MaxCpus = 2\nrequest_gpus = 1", "needs 1 GPUs, offered are 0"),
    ],
)
def test_a_dag_at_a_site_that_its_node_excludes_looks_elsewhere(
    submit, sites, line: str, reason: str
) -> None:
    dag = match(submit("JOB A step.sub", files=sub(*line.split("\n"))))

    assert dag.state == "idle"
    record = MatchRecord.objects.get(dag=dag)
    assert record.end == MatchRecord.End.UNFIT
    assert record.reason == f"node A: no queue of site-a can run it: {reason}"
    assert not Job.objects.exists()


def test_of_the_queues_of_a_site_each_tells_why_it_cannot_run_a_node(submit, sites) -> None:
    site = Site.objects.get()
    Queue.objects.create(site=site, name="many", element="host", cores=64, memory_mb=10)
    dag = match(submit("JOB A step.sub", files=sub("request_cpus = 32", "request_memory = 999")))

    assert MatchRecord.objects.get(dag=dag).reason == (
        "node A: no queue of site-a can run it: main: needs 32 cores, offered are 8; "
        "many: needs 999 MB of memory, offered are 10"
    )


def test_requirements_on_the_node_do_not_turn_a_site_down(submit, sites) -> None:
    dag = match(submit("JOB A step.sub", files=sub('requirements = Machine == "node7"')))

    assert advance(dag).state == "running"
    assert job_of(dag).state == "waiting"
