"""What submit descriptions ask for, from their text to the needs of the jobs and the refusals."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from matching.needs import BadNeeds, Needs
from tests.wms.dags.driving import advance, match
from wms.accounting.models import AccountingGroup
from wms.accounting.services import save_group
from wms.core.actors import Actor
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User
from wms.dags import node_checks
from wms.dags.models import Dag, MatchRecord
from wms.dags.needs import _evaluated, _read_again, read_needs
from wms.dags.submission import submission_warnings
from wms.jobs.models import Job
from wms.sites.models import Queue, Site
from wms.taskqueues.models import TaskQueue, TaskQueuePolicy, WaitingJob
from wms.taskqueues.policies import save_policy

SYSTEM = Actor.system("test")


def read(
    commands: Mapping[str, str] | None = None,
    segments_s: tuple[int, ...] = (500, 5_000),
    **attributes: str,
) -> Needs:
    return read_needs(
        commands or {}, attributes, owner="alice", group="physics", segments_s=segments_s
    )


def sub(*lines: str) -> dict[str, str]:
    return {"step.sub": "\n".join(["executable = step.sh", *lines, "queue"])}


def in_group(user: User, name: str = "physics") -> AccountingGroup:
    group = AccountingGroup(name=name, quota=1.0)
    save_group(group, actor=SYSTEM, members=[user])
    return group


def test_a_description_can_ask_for_everything_that_there_is() -> None:
    needs = read(
        {
            "request_cpus": "2",
            "request_memory": "1.5 GB",
            "request_gpus": "1",
            "requirements": "Cpus>2&&TARGET.Memory>MY.RequestMemory",
        },
        MaxCpus="8",
        CPUTimeSeconds="20 * 60",
        Sites='"T2_X, T2_Y"',
        BannedSites='{"T2_Z"}',
        Queues='"T2_X/long"',
        Platforms='"linux-x86_64"',
        PilotTypes='"private"',
        SubmitPools='"wms"',
        Middlewares='{"slurm", "htcondor"}',
        Tags='"gpu,cvmfs"',
        Setup='"Certification"',
        JobType='"Merge"',
    )

    assert needs == Needs(
        owner="alice",
        owner_group="physics",
        setup="Certification",
        cpu_time_s=5_000,
        cores=2,
        max_cores=8,
        memory_mb=1536,
        gpus=1,
        sites=("T2_X", "T2_Y"),
        banned_sites=("T2_Z",),
        queues=("T2_X/long",),
        platforms=("linux-x86_64",),
        pilot_types=("private",),
        submit_pools=("wms",),
        middlewares=("htcondor", "slurm"),
        tags=("cvmfs", "gpu"),
        job_type="Merge",
        requirements="Cpus > 2 && TARGET.Memory > MY.RequestMemory",
    )


def test_a_description_that_asks_for_nothing_gets_one_core_in_the_first_segment() -> None:
    assert read() == Needs(owner="alice", owner_group="physics", cpu_time_s=500)


def test_attributes_are_written_in_any_case() -> None:
    assert read(SITES='"T2_X"', jobtype='"User"') == read(Sites='"T2_X"', JobType='"User"')


def test_a_job_can_use_as_many_cores_as_it_needs_if_nothing_else_is_said() -> None:
    assert read({"request_cpus": "4"}).max_cores == 4


@pytest.mark.parametrize(
    ("commands", "attributes", "message", "names"),
    [
        (
            {"request_cpus": "4"},
            {"MaxCpus": "2"},
            "request_cpus and +MaxCpus: cores (4) is more than max_cores (2)",
            ("request_cpus", "+MaxCpus"),
        ),
        (
            {},
            {"Sites": '"T2_X"', "BannedSites": '"T2_X"'},
            "+Sites and +BannedSites: sites and banned_sites contradict each other: both name T2_X",
            ("+Sites", "+BannedSites"),
        ),
        (
            {},
            {"Sites": '"T2_X"', "Queues": '"T2_Y/q"'},
            "+Queues and +Sites: queues names only queues of sites that are not in sites",
            ("+Queues", "+Sites"),
        ),
        ({"request_cpus": "0"}, {}, "cores must be from 1 to", ("request_cpus",)),
        ({"request_cpus": "999999999"}, {}, "cores must be from 1 to", ("request_cpus",)),
        ({"request_memory": "99999999 T"}, {}, "memory_mb must be from 0", ("request_memory",)),
        ({"request_gpus": "-1"}, {}, "request_gpus is not a whole number: -1", ("request_gpus",)),
        ({"requirements": "false"}, {}, "requirements can never be true", ("requirements",)),
        ({"requirements": "(a <"}, {}, "not a ClassAd expression", ("requirements",)),
        ({}, {"CPUTimeSeconds": "1.5"}, "+CPUTimeSeconds is not a whole", ("+CPUTimeSeconds",)),
        ({}, {"CPUTimeSeconds": "-1"}, "cpu_time_s must be from 0", ("+CPUTimeSeconds",)),
        ({}, {"MaxCpus": "true"}, "+MaxCpus is not a whole number: true", ("+MaxCpus",)),
        ({}, {"Tags": "gpu"}, '+Tags must be words in quotes, as in "a, b"', ("+Tags",)),
        ({}, {"Tags": '{"gpu", 1}'}, "+Tags must be words in quotes", ("+Tags",)),
        ({}, {"JobType": "User"}, "+JobType must be a text in quotes, not User", ("+JobType",)),
        ({}, {"JobType": '"' + "u" * 65 + '"'}, "+JobType: job_type has more than", ("+JobType",)),
        ({}, {"Tags": 'eval("1")'}, "+Tags: eval", ("+Tags",)),
        ({}, {"Tags": 'regexp("(a+)+$", "b") ? "a" : "b"'}, "take too long", ("+Tags",)),
        ({}, {"Tags": '"' + "x" * 8192 + '"'}, "+Tags has more than 8192 char", ("+Tags",)),
        ({}, {"MaxCpus": "sum({" + "size(Owner)," * 40 + "1})"}, "too large", ("+MaxCpus",)),
        ({}, {"PilotTypes": '"secret"'}, "secret is not one of generic, priv", ("+PilotTypes",)),
    ],
)
def test_what_nobody_could_meet_is_refused_with_the_names_that_are_at_fault(
    commands: dict[str, str], attributes: dict[str, str], message: str, names: tuple[str, ...]
) -> None:
    with pytest.raises(BadNeeds) as caught:
        read(commands, **attributes)

    assert message in str(caught.value)
    assert caught.value.fields == names


def test_what_was_written_at_great_length_is_not_remembered() -> None:
    _read_again.cache_clear()

    with pytest.raises(BadNeeds):
        read({"requirements": "x" * 20_000})
    read({"request_memory": "7" + " " * 20_000})
    assert _read_again.cache_info().currsize == 0

    read({"request_memory": "7"})
    assert _read_again.cache_info().currsize == 1


def test_an_attribute_that_nodes_have_in_common_is_evaluated_once() -> None:
    tags = '{"common-to-all"}'
    read({"request_memory": "1"}, Tags=tags)
    evaluated = _evaluated.cache_info()

    read({"request_memory": "2"}, Tags=tags)

    assert _evaluated.cache_info().misses == evaluated.misses


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (["request_cpus = 4", "+maxcpus = 2"], 2, "request_cpus and +MaxCpus: "),
        (["", '+Sites = "X"', '+BannedSites = "X"'], 3, "+Sites and +BannedSites: "),
        (["priority = 11"], 2, "priority must be from 0 to 10, not 11"),
        (["priority = high"], 2, "priority is not a whole number: high"),
        (["allowed_execute_duration = long"], 2, "allowed_execute_duration is not a whole"),
        (["arguments = $$(Name)", "+Tags = gpu"], 3, "+Tags must be words in quotes"),
        (["requirements = Cpus > $(none) 1 &&"], 2, "requirements: not a ClassAd expression"),
    ],
)
def test_contradictions_are_told_once_with_the_line_of_the_submit_file(
    submit, lines: list[str], line: int, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit("JOB A step.sub\nJOB B step.sub\n", files=sub(*lines))

    told = {(f.file, f.line, f.message.removeprefix("node A: ")) for f in caught.value.findings}
    assert any(message in each for _, _, each in told)
    assert {(file, at) for file, at, _ in told} == {("step.sub", line)}
    assert not Dag.objects.exists()


def test_a_value_that_is_a_macro_alone_is_told_with_the_line_of_the_vars(submit) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit(
            'JOB A step.sub\nJOB B step.sub\nVARS A n="1"\nVARS B n="no"',
            files=sub("request_cpus = $(n)"),
        )

    assert caught.value.findings == (
        Finding("request_cpus is not a whole number: no", file="test.dag", line=4),
    )


def test_a_value_that_has_a_macro_in_it_is_told_with_the_node(submit) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit('JOB A step.sub\nVARS A n="no"', files=sub("request_cpus = 1$(n)"))

    assert caught.value.findings == (
        Finding("node A: request_cpus is not a whole number: 1no", file="step.sub", line=2),
    )


def test_an_attribute_from_the_dag_file_is_told_with_the_line_of_its_vars(submit) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit('JOB A step.sub\nVARS A APPEND +Tags="gpu"', files=sub('+Tags = "x"'))

    (finding,) = caught.value.findings
    assert (finding.file, finding.line) == ("test.dag", 2)
    assert finding.message.startswith("+Tags must be words in quotes")


def test_ten_thousand_nodes_with_one_fault_are_told_of_it_once(submit) -> None:
    nodes = "\n".join(f"JOB N{n} step.sub" for n in range(10_000))

    with pytest.raises(InvalidInput) as caught:
        submit(nodes, files=sub("request_cpus = 0"))

    assert len(caught.value.findings) == 1


def test_the_different_needs_of_a_dag_are_limited(submit, monkeypatch) -> None:
    monkeypatch.setattr(node_checks, "MAX_DIFFERENT_NEEDS", 2)
    text = "\n".join(f'JOB N{n} step.sub\nVARS N{n} mb="{n % 3}"' for n in range(6))

    with pytest.raises(InvalidInput, match="the nodes of a DAG have at most 2 different"):
        submit(text, files=sub("request_memory = $(mb)"))


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
