"""Pilots in Kubernetes: the contract, and what is particular to it.

They run against a real API server where there is one, else against the fake that conforms.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.batch_systems.kubernetes import Kubernetes
from tests.batch_systems.kubernetes_api import ApiError
from tests.batch_systems.kubernetes_node import MISSING_IMAGE
from tests.wms.elements.contract import (
    FOREVER,
    ElementContract,
    submit,
    unique_name,
    wait_for,
    wait_for_log,
)
from tests.wms.elements.kubernetes_clusters import Make
from wms.elements.kubernetes import BATCHES_PER_LIST
from wms.elements.kubernetes_manifests import LONGEST_SCRIPT_BYTES, job_manifest
from wms.elements.logins import Login, LoginKind
from wms.elements.protocol import BatchState, Element, Refused, Unreachable
from wms.elements.runner import Completed, LocalRunner

pytestmark = [pytest.mark.slow, pytest.mark.batch]


class TestKubernetes(ElementContract):
    unknown_ids = ("nobody-0", "nobody.0", "../../etc", "-0", "a" * 80 + "-0")

    @pytest.fixture
    def make_element(self, make_kubernetes: Make) -> Callable[[], Element]:
        return make_kubernetes


def of_namespace(kubernetes: Kubernetes, namespace: str, resource: str) -> list[dict[str, Any]]:
    group = "/apis/batch/v1" if resource == "jobs" else "/api/v1"
    found: list[dict[str, Any]] = kubernetes.api.get(f"{group}/namespaces/{namespace}/{resource}")[
        "items"
    ]
    return found


def secrets_of_pilots(kubernetes: Kubernetes, namespace: str) -> set[str]:
    return {
        str(each["metadata"]["name"])
        for each in of_namespace(kubernetes, namespace, "secrets")
        if "pilotage/pilot" in each["metadata"].get("labels", {})
    }


def until(condition: Callable[[], bool], limit_s: float = 30.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_batch_that_is_submitted_once_more_makes_no_second_pilot(
    make_kubernetes: Make, kubernetes: Kubernetes, namespace: str
) -> None:
    element, name = make_kubernetes(), unique_name()
    first = submit(element, FOREVER, count=2, name=name, secrets=["one", "two"])

    again = submit(element, FOREVER, count=2, name=name, secrets=["three", "four"])

    assert again == first == element.adopt(name)
    assert len(of_namespace(kubernetes, namespace, "jobs")) == 2


def test_a_job_that_lost_its_secret_on_the_way_is_held_and_comes_to_run_when_submitted_again(
    make_kubernetes: Make, kubernetes: Kubernetes, namespace: str
) -> None:
    element, name = make_kubernetes(), unique_name()
    [pilot] = submit(element, "echo hello", name=name)
    wait_for(element, pilot, BatchState.DONE)
    second = f"{name}-1"
    pod = make_kubernetes().settings.pod
    slot = {"CORES": 1, "MEMORY_MB": 100, "GPUS": 0, "MINUTES": 5}
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    kubernetes.api.post(path, job_manifest(name, 1, slot, pod))

    found = wait_for(element, second, BatchState.HELD)
    assert found.native == "CreateContainerConfigError"
    assert second in found.reason

    assert submit(element, "echo hello", count=2, name=name) == [pilot, second]
    wait_for(element, second, BatchState.DONE)


def test_a_script_that_no_environment_has_room_for_is_refused(
    make_kubernetes: Make, kubernetes: Kubernetes, namespace: str
) -> None:
    with pytest.raises(Refused, match="longer than"):
        submit(make_kubernetes(), "#" * (LONGEST_SCRIPT_BYTES + 1))

    assert of_namespace(kubernetes, namespace, "jobs") == []


def test_a_job_of_somebody_else_with_a_pilots_name_is_not_taken_for_the_pilot(
    make_kubernetes: Make, kubernetes: Kubernetes, namespace: str
) -> None:
    element, name = make_kubernetes(), unique_name()
    submit(element, "true", name=name)
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}-0"
    kubernetes.api.patch(path, {"metadata": {"labels": {"pilotage/pilot": "else"}}})

    with pytest.raises(Refused, match="that is no pilot's"):
        submit(element, "true", name=name)


def test_a_quota_refuses_a_batch_as_a_whole(
    make_kubernetes: Make, kubernetes: Kubernetes, namespace: str
) -> None:
    element = make_kubernetes()
    limited(kubernetes, namespace, {"count/jobs.batch": "2"})

    with pytest.raises(Refused, match=r"403: .*exceeded quota"):
        submit(element, FOREVER, count=3)

    until(lambda: not of_namespace(kubernetes, namespace, "jobs"))
    until(lambda: not secrets_of_pilots(kubernetes, namespace))


def limited(kubernetes: Kubernetes, namespace: str, hard: dict[str, str]) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "tight"},
        "spec": {"hard": hard},
    }
    kubernetes.api.post(f"/api/v1/namespaces/{namespace}/resourcequotas", quota)

    def is_told() -> bool:
        [found] = of_namespace(kubernetes, namespace, "resourcequotas")
        return "hard" in found.get("status", {})

    until(is_told)


def test_the_quota_of_a_namespace_tells_its_places(
    make_kubernetes: Make, kubernetes: Kubernetes, namespace: str
) -> None:
    assert make_kubernetes(slots=7).capacity().total == 7
    limited(kubernetes, namespace, {"requests.cpu": "8500m", "pods": "3"})

    assert make_kubernetes().capacity().total == 3
    assert make_kubernetes(cores=4).capacity().total == 2


def test_the_api_server_is_asked_with_the_rights_of_the_how_to_and_no_others(
    make_kubernetes: Make, kubernetes: Kubernetes, namespace: str
) -> None:
    other = f"{namespace}-b"
    kubernetes.new_namespace(other)
    element = make_kubernetes(namespace=other)

    with pytest.raises(Refused, match=r"403: .*cannot create resource"):
        submit(element, "true")
    with pytest.raises(Refused, match=r"403: .*cannot list resource"):
        element.adopt("any")
    with pytest.raises(Refused, match="403"):
        make_kubernetes(namespace=f"{namespace}-none").capacity()
    token = make_kubernetes().settings.token_file
    with open(token) as file:
        stranger = type(kubernetes.api)(kubernetes.port, kubernetes.ca_file, file.read())
    with pytest.raises(ApiError, match="cannot list resource"):
        stranger.get(f"/api/v1/namespaces/{namespace}/secrets")


def test_a_token_that_is_none_is_refused_and_an_unknown_server_is_told_nothing(
    make_kubernetes: Make, own_kubernetes: Kubernetes
) -> None:
    login = Login(LoginKind.BEARER_TOKEN, "not-a-token", "mark")

    with pytest.raises(Refused, match="401"):
        submit(make_kubernetes(login=login), "true")
    with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
        submit(make_kubernetes(ca_path=str(own_kubernetes.ca_file)), "true")


def test_a_login_is_shown_in_place_of_the_token_of_the_settings(make_kubernetes: Make) -> None:
    with open(make_kubernetes().settings.token_file) as file:
        login = Login(LoginKind.BEARER_TOKEN, file.read(), "mark")

    element = make_kubernetes(login=login, token_file="/nowhere")

    [pilot] = submit(element, "true")
    wait_for(element, pilot, BatchState.DONE)
    with pytest.raises(Unreachable, match="No such file"):
        make_kubernetes(token_file="/nowhere").status([pilot])


class WatchedRunner:
    """Notes which commands it runs."""

    def __init__(self) -> None:
        self.commands: list[Sequence[str]] = []

    def run(self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 10.0) -> Completed:
        self.commands.append(argv)
        return LocalRunner().run(argv, stdin=stdin, timeout_s=timeout_s)


def test_what_is_secret_is_in_the_secret_alone_and_goes_with_the_job(
    make_kubernetes: Make, kubernetes: Kubernetes, namespace: str
) -> None:
    runner, word = WatchedRunner(), secrets.token_hex(16)

    [pilot] = submit(make_kubernetes(runner), f"true {word}", secrets=[word])

    wait_for(make_kubernetes(), pilot, BatchState.DONE)
    told = [of_namespace(kubernetes, namespace, each) for each in ("jobs", "pods")]
    assert word not in json.dumps(told)
    assert word not in str(runner.commands)
    assert secrets_of_pilots(kubernetes, namespace) == {pilot}
    make_kubernetes().forget([pilot])
    until(lambda: not secrets_of_pilots(kubernetes, namespace))
    until(lambda: not of_namespace(kubernetes, namespace, "pods"))


def test_an_image_that_cannot_be_had_holds_the_pilot(make_kubernetes: Make) -> None:
    element = make_kubernetes(image=MISSING_IMAGE)
    [pilot] = submit(element, "true")

    found = wait_for(element, pilot, BatchState.HELD)

    assert found.native == "ImagePullBackOff"
    assert MISSING_IMAGE in found.reason
    element.cancel([pilot])
    wait_for(element, pilot, BatchState.CANCELLED)


def test_a_pilot_that_no_node_has_room_for_waits_and_says_why(make_kubernetes: Make) -> None:
    element = make_kubernetes(node_selector={"kind": "none"})
    [pilot] = submit(element, "true")

    until(lambda: element.status([pilot])[pilot].native == "Unschedulable")

    found = element.status([pilot])[pilot]
    assert found.state == BatchState.QUEUED
    assert "0/1 nodes are available" in found.reason
    assert element.capacity().queued == 1
    assert element.log(pilot) == ""


def test_an_evicted_pilot_and_one_out_of_memory_fail_with_the_reason(
    make_kubernetes: Make, kubernetes: Kubernetes
) -> None:
    element = make_kubernetes()
    [evicted] = submit(element, FOREVER)
    wait_for_log(element, evicted, "begun")
    kubernetes.evict(evicted)
    greedy = 'exec python3 -c "x = bytearray(200 << 20); import time; time.sleep(60)"'
    [killed] = submit(element, greedy)

    first = wait_for(element, evicted, BatchState.FAILED)
    second = wait_for(element, killed, BatchState.FAILED)

    assert (first.native, first.node) == ("Evicted", "node1")
    assert "low on resource: memory" in first.reason
    assert (second.native, second.exit_code) == ("OOMKilled", 137)
    assert "OOMKilled" in second.reason


def test_lists_are_read_over_all_of_their_pages(
    make_kubernetes: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wms.elements.kubernetes.PAGE", 2)
    element, name = make_kubernetes(), unique_name()

    pilots = submit(element, "true", count=5, name=name)

    assert element.adopt(name) == pilots
    for pilot in pilots:
        wait_for(element, pilot, BatchState.DONE)
    assert {each.state for each in element.status(pilots).values()} == {BatchState.DONE}


def test_pilots_of_many_batches_are_asked_for_in_few_questions(make_kubernetes: Make) -> None:
    runner = WatchedRunner()
    [pilot] = submit(make_kubernetes(), "true")
    others = [f"other{number}-0" for number in range(3 * BATCHES_PER_LIST)]

    states = make_kubernetes(runner).status([pilot, *others])

    assert states.keys() == {pilot, *others}
    assert states[pilot].state != BatchState.MISSING
    assert {states[each].state for each in others} == {BatchState.MISSING}
    assert len(runner.commands) == 1


def test_a_pod_has_no_rights_that_a_restricted_namespace_forbids(
    make_kubernetes: Make, kubernetes: Kubernetes, namespace: str
) -> None:
    [pilot] = submit(make_kubernetes(), "id -u; echo over")

    [job] = of_namespace(kubernetes, namespace, "jobs")
    pod = job["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["containers"][0]["securityContext"]["allowPrivilegeEscalation"] is False
    assert pod["automountServiceAccountToken"] is False
    expected = 1000 if os.geteuid() == 0 else os.geteuid()
    assert wait_for_log(make_kubernetes(), pilot, "over") == f"{expected}\nover\n"
