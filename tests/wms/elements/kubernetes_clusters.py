"""Fixtures of clusters of Kubernetes, and makers of adapters to them.

They are real ones where there are programs for them, else fakes that conform.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator

import pytest

from tests.batch_systems.kubernetes import Kubernetes, settings_of
from tests.batch_systems.services import Unavailable, shared
from wms.elements.kubernetes import KubernetesElement, kubernetes_element
from wms.elements.logins import Login
from wms.elements.runner import CommandRunner

Make = Callable[..., KubernetesElement]


def cluster_or_skip(name: str) -> Kubernetes:
    try:
        found = shared(name)
    except Unavailable as error:
        pytest.skip(str(error))
    assert isinstance(found, Kubernetes)
    return found


def maker(kubernetes: Kubernetes, namespace: str) -> Make:
    told = settings_of(kubernetes, namespace)

    def make(
        runner: CommandRunner | None = None, login: Login | None = None, **settings: object
    ) -> KubernetesElement:
        element = kubernetes_element({**told, "slots": 16, "timeout_s": 30, **settings}, login)
        return KubernetesElement(element.settings, runner, login)

    return make


@pytest.fixture(scope="module")
def kubernetes() -> Kubernetes:
    """A cluster that all tests of a run share."""
    return cluster_or_skip("kubernetes")


@pytest.fixture(scope="module")
def own_kubernetes() -> Kubernetes:
    """A cluster of this test process alone, whose API server it may stop."""
    return cluster_or_skip(f"kubernetes-{os.environ.get('PYTEST_XDIST_WORKER', 'own')}")


@pytest.fixture
def namespace(kubernetes: Kubernetes) -> Iterator[str]:
    """A namespace of this test alone, whose Jobs end with it."""
    name = f"ns-{secrets.token_hex(4)}"
    yield name
    kubernetes.api.delete(f"/apis/batch/v1/namespaces/{name}/jobs?propagationPolicy=Background")


@pytest.fixture
def make_kubernetes(kubernetes: Kubernetes, namespace: str) -> Make:
    return maker(kubernetes, namespace)
