"""Settings of a Kubernetes element: where and as whom to submit, and what its pods are."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wms.elements.kubernetes_manifests import PodOptions
from wms.elements.runner import LONGEST_TIMEOUT_S
from wms.elements.settings import Settings, SettingsReader

TIMEOUT_S = 60
#: An account of a container's own, whatever its image has.
RUN_AS_USER = 1000
_KEYS = (
    "url", "namespace", "image", "ca_path", "token_file", "run_as_user", "gpu_resource",
    "node_selector", "priority_class", "image_pull_secret", "cores", "slots", "timeout_s",
)  # fmt: skip
_URL = r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._/-]*)?"
_DNS_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DNS_NAME = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
_WORD = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_IMAGE = r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}"
_LABEL = re.compile(rf"({_DNS_NAME}/)?{_WORD}")
_LABEL_VALUE = re.compile(rf"({_WORD})?")


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """Settings of a Kubernetes element.

    `url` is the API server's; `ca_path` is a file or a folder of certificate authorities, that of
    the system if it is empty. `cores` are those of a pilot; `slots` are told as places where the
    namespace has no quota.
    """

    url: str
    namespace: str
    pod: PodOptions
    ca_path: str = ""
    token_file: str = ""
    cores: int = 1
    slots: int = 1
    timeout_s: float = TIMEOUT_S


def read_settings(settings: Settings) -> KubernetesSettings:
    """Read the settings of a queue; raise `BadSettings`."""
    reader = SettingsReader(settings, _KEYS)
    return KubernetesSettings(
        url=reader.text("url", pattern=_URL, what="an address https://HOST:PORT"),
        namespace=reader.text("namespace", pattern=_DNS_LABEL, what="the name of a namespace"),
        pod=_pod(reader),
        ca_path=str(reader.optional_path("ca_path") or ""),
        token_file=str(reader.absolute_path("token_file")),
        cores=reader.number("cores", 1, low=1, high=10_000),
        slots=reader.number("slots", 1, low=1, high=1_000_000),
        timeout_s=reader.number("timeout_s", TIMEOUT_S, low=1, high=LONGEST_TIMEOUT_S),
    )


def _pod(reader: SettingsReader) -> PodOptions:
    return PodOptions(
        image=reader.text("image", pattern=_IMAGE, what="the name of a container image"),
        # 0 would be root.
        run_as_user=reader.number("run_as_user", RUN_AS_USER, low=1, high=2**31 - 1),
        gpu_resource=reader.text(
            "gpu_resource",
            "nvidia.com/gpu",
            pattern=rf"{_DNS_NAME}/{_WORD}",
            what="the name of a resource, as nvidia.com/gpu",
        ),
        node_selector=reader.pairs(
            "node_selector", _LABEL, _LABEL_VALUE, what="an object of labels and their values"
        ),
        priority_class=reader.text(
            "priority_class", "", pattern=_DNS_NAME, what="the name of a priority class"
        ),
        image_pull_secret=reader.text(
            "image_pull_secret", "", pattern=_DNS_NAME, what="the name of a secret"
        ),
    )
