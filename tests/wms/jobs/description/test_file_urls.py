"""URLs among input files: the files that they become, and those that are faults."""

from __future__ import annotations

import pytest

from tests.wms.jobs.clusters.samples import PLAIN, go_on
from tests.wms.jobs.clusters.samples import submit as submit_cluster
from tests.wms.jobs.description.test_rendering import render
from wms.core.errors import InvalidInput
from wms.dags.models import Dag
from wms.jobs.description.renderer_inputs import CannotRender
from wms.jobs.directives import Directives
from wms.jobs.models import Cluster, Job


def urls(line: str, *more: str) -> dict[str, str]:
    (spec,) = render("\n".join([line, *more, "queue"]))
    return dict(Directives.of(spec.directives).input_urls)


def test_urls_are_told_apart_from_files_of_the_workspace() -> None:
    (spec,) = render(
        "transfer_input_files = a.txt, HTTPS://x.org/d/b%20c?v=1 , d/e\n"
        "common_input_files = http://[2606:4700::1]:8080/f\nqueue"
    )

    assert spec.input_files == ("a.txt", "d/e")
    assert Directives.of(spec.directives).input_urls == {
        "b c": "https://x.org/d/b%20c?v=1",
        "f": "http://[2606:4700::1]:8080/f",
    }


def test_macros_are_expanded_in_urls() -> None:
    assert urls("transfer_input_files = $(base)/$(JOB).bin", "base = https://x.org/in") == {
        "A.bin": "https://x.org/in/A.bin"
    }


def test_standard_input_may_be_a_file_of_a_url() -> None:
    (spec,) = render("transfer_input_files = https://x.org/in.txt\ninput = in.txt\nqueue")

    assert (spec.input_files, spec.directives["stdin_name"]) == ((), "in.txt")


@pytest.mark.parametrize(
    "url",
    [
        "https://x.org",
        "https://x.org/",
        "https://x.org/a/..",
        "https://x.org/a%2F..",
        "https://x.org/%00",
        "https://x.org/a%0Ab",
        "https://user:password@x.org/a",
        "https://user@x.org/a",
        "https://x.org/a#part",
        "https:///a",
        "https://x.org:0/a",
        "https://x.org:99999/a",
        "https://[::1/a",
        "https://x.org/ä",
        "https://x.org/a b",
        "https://127.0.0.1/a",
        "https://169.254.169.254/latest/meta-data",
        "http://10.0.0.7/a",
        "http://[::ffff:10.0.0.7]/a",
        "box.token+https://x.org/a",
        "osdf:///a",
        "file:///etc/passwd",
        "root://x.org//a",
        f"https://x.org/{'a' * 3000}",
        "a.txt https://x.org/a",
    ],
)
def test_urls_that_pilots_cannot_move_are_faults(submit, url: str) -> None:
    files = {"step.sub": f"executable = step.sh\ntransfer_input_files = {url}\nqueue\n"}

    with pytest.raises(InvalidInput) as caught:
        submit("JOB A step.sub", files=files)

    (finding,) = caught.value.findings
    assert (finding.file, finding.line) == ("step.sub", 2)
    assert "password@" not in finding.message
    assert not Dag.objects.exists()


def test_objects_of_s3_are_urls_where_there_is_a_store(settings) -> None:
    with pytest.raises(CannotRender):
        urls("transfer_input_files = s3://bucket/d/a")
    placement = settings.PILOTAGE["PLACEMENT"] | {"S3_URL": "https://s3.example.org"}
    settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": placement}

    assert urls("transfer_input_files = s3://bucket/d/a%20b") == {"a b": "s3://bucket/d/a%20b"}
    for url in ("s3://bucket/", "s3://bucket:80/a", "s3://bucket/a?versionId=1", "s3:///a"):
        with pytest.raises(CannotRender):
            urls(f"transfer_input_files = {url}")


def test_logical_names_are_urls() -> None:
    assert urls("transfer_input_files = LFN:/run%20s/7, lfn:/b") == {
        "7": "lfn:/run%20s/7",
        "b": "lfn:/b",
    }
    for url in ("lfn:/", "lfn:/a/", "lfn:/a//b", "lfn:/../b", "lfn:/%FF", f"lfn:/{'a' * 1001}"):
        with pytest.raises(CannotRender):
            urls(f"transfer_input_files = {url}")


def test_addresses_that_are_allowed_are_no_faults(settings) -> None:
    placement = settings.PILOTAGE["PLACEMENT"] | {"ALLOWED": ["10.0.0.0/8"]}
    settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": placement}

    assert urls("transfer_input_files = http://10.0.0.7/a") == {"a": "http://10.0.0.7/a"}


@pytest.mark.parametrize(
    "line", ["https://x.org/a, https://y.org/a", "a, https://x.org/a", "./a, https://x.org/a"]
)
def test_two_inputs_of_one_name_are_a_fault(submit, line: str) -> None:
    files = {"step.sub": f"executable = step.sh\ntransfer_input_files = {line}\nqueue\n", "a": "a"}

    with pytest.raises(InvalidInput):
        submit("JOB A step.sub", files=files)


def test_too_many_urls_are_a_fault(submit) -> None:
    line = ", ".join(f"https://x.org/{number}" for number in range(101))
    files = {"step.sub": f"executable = step.sh\ntransfer_input_files = {line}\nqueue\n"}

    with pytest.raises(InvalidInput):
        submit("JOB A step.sub", files=files)


def test_outputs_may_go_to_urls() -> None:
    (spec,) = render(
        "transfer_output_files = a, d/b, c, e/\n"
        'transfer_output_remaps = "a = https://x.org/in/; b=HTTP://x.org/q?k\\=1\\;2; c=new/c"\n'
        "queue"
    )

    assert spec.output_files == ("a", "d/b", "c", "e/")
    assert spec.directives == {
        "output_remaps": {"c": "new/c"},
        "output_urls": {"a": "https://x.org/in/a", "d/b": "http://x.org/q?k=1;2"},
    }


def test_all_outputs_may_go_below_one_url_but_those_with_other_names() -> None:
    (spec,) = render(
        "transfer_output_files = a, d/b, c, e\n"
        'transfer_output_remaps = "c = new/c; e = https://y.org/e"\n'
        "output_destination = https://x.org/out/$(Process)\nqueue"
    )

    assert spec.directives == {
        "output_remaps": {"c": "new/c"},
        "output_urls": {
            "a": "https://x.org/out/0/a",
            "d/b": "https://x.org/out/0/b",
            "e": "https://y.org/e",
        },
    }


@pytest.mark.parametrize(
    ("outputs", "destination"),
    [
        ("a", "results"),
        ("a", "ftp://x.org/out"),
        ("a", "https://x.org/out?q"),
        ("a, e/", "https://x.org/out"),
        ("", "https://x.org/out"),
        ("a, d/a", "https://x.org/out"),
    ],
)
def test_destinations_of_outputs_that_cannot_be_are_faults(submit, outputs, destination) -> None:
    lines = f"transfer_output_files = {outputs}\noutput_destination = {destination}\nqueue\n"

    with pytest.raises(InvalidInput) as caught:
        submit("JOB A step.sub", files={"step.sub": f"executable = step.sh\n{lines}"})

    (finding,) = caught.value.findings
    assert finding.file == "step.sub"


@pytest.mark.parametrize(
    "remaps",
    [
        "a=ftp://x.org/a",
        "a=lfn:/a",
        "a=https://10.1.2.3/a",
        "a=https://user:password@x.org/a",
        "a=https://x.org/d/?q",
        "e/f=https://x.org/f",
        "e/=https://x.org/f",
        "z=https://x.org/z",
        "a=https://x.org/a; b=https://x.org/a",
        "d/b=https://x.org/a; b=https://x.org/b",
    ],
)
def test_urls_that_outputs_cannot_go_to_are_faults(submit, remaps: str) -> None:
    lines = f'transfer_output_files = a, d/b, e/\ntransfer_output_remaps = "{remaps}"\nqueue\n'

    with pytest.raises(InvalidInput) as caught:
        submit("JOB A step.sub", files={"step.sub": f"executable = step.sh\n{lines}"})

    (finding,) = caught.value.findings
    assert (finding.file, finding.line) == ("step.sub", 3)
    assert "password@" not in finding.message


def test_no_node_makes_what_goes_to_a_url(submit) -> None:
    files = {
        "make.sub": "executable = step.sh\ntransfer_output_files = a\n"
        'transfer_output_remaps = "a=https://x.org/a"\nqueue\n',
        "use.sub": "executable = step.sh\ntransfer_input_files = a\nqueue\n",
    }

    with pytest.raises(InvalidInput) as caught:
        submit("JOB A make.sub\nJOB B use.sub\nPARENT A CHILD B", files=files)

    (finding,) = caught.value.findings
    assert (finding.file, finding.line) == ("use.sub", 2)


@pytest.mark.django_db
def test_clusters_have_urls_too(alice) -> None:
    line = "transfer_input_files = https://x.org/$(Process).bin\nqueue 2\n"
    submit_cluster(alice, PLAIN + line)
    go_on(Cluster.objects.get())

    found = [Directives.of(job.directives).input_urls for job in Job.objects.order_by("pk")]
    assert found == [{"0.bin": "https://x.org/0.bin"}, {"1.bin": "https://x.org/1.bin"}]
