"""Commands of HTCondor's submit descriptions: their effect here, and warnings about the others."""

from __future__ import annotations

import pytest

from tests.wms.jobs.clusters.samples import submit as submit_cluster
from tests.wms.jobs.description.test_rendering import render
from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.dags.submission.submit import submission_warnings
from wms.jobs.description.commands import command_warning


def told(submit, *lines: str) -> list[str]:
    files = {"step.sub": "\n".join(["executable = step.sh", *lines, "queue", ""])}
    return [each.message for each in submission_warnings(submit("JOB A step.sub", files=files))]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("transfer_input_files = a.txt, ftp://x.org/b , c", "ftp://x.org/b is a URL"),
        ("common_input_files = gsiftp://bucket/key", "gsiftp://bucket/key is a URL"),
        ("transfer_input_files = box.token+https://x.org/b", "box.token+https://x.org/b is a URL"),
        ("transfer_input_files = osdf:///ospool/b", "osdf:///ospool/b is a URL"),
        ("output = file:///tmp/x", "file:///tmp/x is a URL"),
        ("transfer_output_files = a, root://x//b", "root://x//b is a URL"),
        ("executable = https://x.org/run.sh", "https://x.org/run.sh is a URL"),
    ],
)  # fmt: skip
def test_a_url_is_told_as_what_it_is_with_its_line(submit, line: str, words: str) -> None:
    files = {"step.sub": f"executable = step.sh\n{line}\nqueue\n", "a.txt": "a", "c": "c"}

    with pytest.raises(InvalidInput) as caught:
        submit("JOB A step.sub", files=files)

    (finding,) = caught.value.findings
    assert words in finding.message
    assert "DATA node" in finding.message
    assert (finding.file, finding.line) == ("step.sub", 2)


def test_a_url_among_the_arguments_is_an_argument() -> None:
    (spec,) = render("arguments = https://x.org/a\nqueue")

    assert spec.arguments == ("https://x.org/a",)


def test_htcondors_other_names_for_commands_mean_the_same() -> None:
    (spec,) = render(
        "RequestMemory = 2G\nRequestCpus = 2\nstdout = a.out\nstderr = a.err\njob_iwd = sub\n"
        "TransferInputFiles = a, b\ncommon_input_files = b, c\nTransferOutputFiles = d\nqueue"
    )

    assert (spec.needs.memory_mb, spec.needs.cores) == (2048, 2)
    assert (spec.stdout_name, spec.stderr_name, spec.directory) == ("a.out", "a.err", "sub")
    assert (spec.input_files, spec.output_files) == (("a", "b", "c"), ("d",))
    assert not {"requestmemory", "stdout", "job_iwd"} & spec.attributes.keys()


def test_a_line_for_the_shell_takes_the_place_of_an_executable(submit) -> None:
    (spec,) = render("executable =\nshell = cat in.txt | wc -l > $(JOB).out\nqueue")

    expected = "cat in.txt | wc -l > A.out"
    assert (spec.executable, spec.arguments) == ("/bin/sh", ("-c", expected))
    for line, words in (
        ("", "both executable and shell"),
        ("executable =\narguments = x", "both arguments"),
    ):
        with pytest.raises(InvalidInput, match=words):
            told(submit, line, "shell = true")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x509userproxy", "has no effect here: the payload must get its own"),
        ("retry_request_memory", "has no effect here: use RETRY ... WITH request_memory*=2"),
        ("request_licences", "has no effect here: no such resource is known here; use +Tags"),
        ("gpus_minimum_memory", "has no effect here: use requirements"),
        ("docker_network_type", "has no effect here: Apptainer starts all containers"),
        ("vm_memory", "has no effect here: it belongs to a universe that pilots do not run"),
        ("rank", "has no effect here: jobs do not choose among pilots"),
        ("request_memry", "means nothing here; request_memory does"),
        ("frobnicate", "means nothing here: it is kept with the job"),
        ("log", ""),
        ("requestmemory", ""),
    ],
)
def test_every_command_counts_or_is_told(name: str, words: str) -> None:
    assert words in command_warning(name)
    assert bool(words) == bool(command_warning(name))


@pytest.mark.parametrize(
    "line",
    [
        "should_transfer_files = NO",
        "when_to_transfer_output = ON_EXIT_OR_EVICT",
        "when_to_transfer = ALWAYS",
        "leave_in_queue = JobStatus == 4",
        "transfer_executable = false",
        "transfer_input = false",
        "transfer_output = false",
        "transfer_error = false",
        "stream_input = true",
        "preserve_relative_paths = false",
        "notify_user = me@x.org",
        "job_lease_duration = 60",
        "kill_sig = SIGUSR1",
        "job_max_vacate_time = 5",
        "max_transfer_output_mb = 5",
        "want_graceful_removal = false",
        "coresize = 10",
        "on_evict_checks = true",
        "priority = 11",
    ],
)  # fmt: skip
def test_a_value_that_is_not_followed_is_told_with_its_line(submit, alice: User, line: str) -> None:
    name = line.partition(" ")[0]
    files = {"step.sub": f"executable = step.sh\n{line}\nqueue\n"}

    (of_dag,) = submission_warnings(submit("JOB A step.sub", files=files))
    text = f"executable = run.sh\n{line}\nqueue\n"
    of_cluster = submit_cluster(alice, text, {"run.sh": "x"}).warnings

    assert (of_dag.file, of_dag.line) == ("step.sub", 2)
    assert of_dag.message.startswith(name)
    assert of_dag.message in [each.message for each in of_cluster if each.line == 2]


def test_a_value_that_is_followed_is_not_told(submit) -> None:
    lines = (
        "should_transfer_files = IF_NEEDED", "when_to_transfer_output = ON_EXIT",
        "leave_in_queue = false", "transfer_executable = True", "kill_sig = 15",
        "stream_output = true", "log = job.log", "priority = 10", "preserve_relative_paths = yes",
    )  # fmt: skip

    assert told(submit, *lines) == []


def test_the_older_attribute_for_checkpoints_is_the_command() -> None:
    (spec,) = render("+SuccessCheckpointExitCode = 85\ntransfer_checkpoint_files = state\nqueue")

    assert spec.directives == {"checkpoint_exit_code": 85, "checkpoint_files": ["state"]}
    assert "SuccessCheckpointExitCode" not in spec.attributes
