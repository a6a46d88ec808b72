"""Rules of the Kubernetes API for what `kubernetes_fake` stores: fields, names, amounts, labels.

They are written after the API's reference, for the kinds and fields that are used here; any other
field is refused, as by a server that is asked with `fieldValidation=Strict`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import Any

_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LABEL_KEY = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
)
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_QUANTITY = re.compile(r"\d+(\.\d+)?(m|k|M|G|T|P|E|[KMGTPE]i)?")
_VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_SECRET_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_MOST_SECRET_BYTES = 1024 * 1024


class Invalid(Exception):
    """An object breaks a rule."""


_META = {
    "name", "namespace", "labels", "annotations", "ownerReferences", "uid", "resourceVersion",
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
}  # fmt: skip
_FIELDS: dict[str, set[str]] = {
    "Job": {"apiVersion", "kind", "metadata", "spec", "status"},
    "Pod": {"apiVersion", "kind", "metadata", "spec", "status"},
    "Secret": {"apiVersion", "kind", "metadata", "type", "immutable", "data"},
    "job spec": {
        "completions", "parallelism", "backoffLimit", "podReplacementPolicy",
        "ttlSecondsAfterFinished", "activeDeadlineSeconds", "template", "suspend",
    },
    "pod spec": {
        "restartPolicy", "activeDeadlineSeconds", "terminationGracePeriodSeconds",
        "automountServiceAccountToken", "enableServiceLinks", "securityContext", "containers",
        "volumes", "nodeSelector", "priorityClassName", "imagePullSecrets", "nodeName",
    },
    "container": {
        "name", "image", "command", "args", "workingDir", "env", "resources", "securityContext",
        "volumeMounts", "imagePullPolicy",
    },
}  # fmt: skip


def check(thing: dict[str, Any]) -> None:
    """Raise `Invalid` where an object of a kind that has rules here breaks one."""
    kind = thing.get("kind", "")
    if kind in _FIELDS:
        _known(thing, kind, kind)
    _meta(thing.get("metadata", {}))
    _RULES.get(kind, lambda _: None)(thing)


def check_change(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Raise `Invalid` where an object may not change so."""
    check(new)
    if new.get("kind") == "Job":
        for name in ("template", "completions"):
            if old["spec"].get(name) != new["spec"].get(name):
                raise Invalid(f"spec.{name}: Invalid value: field is immutable")
    if new.get("kind") == "Secret" and old.get("immutable") and old["data"] != new["data"]:
        raise Invalid("data: Forbidden: field is immutable when `immutable` is set")


def matches(selector: str, labels: dict[str, str]) -> bool:
    """Whether labels fit a selector; raise `Invalid` if it is none."""
    return all(each(labels) for each in _requirements(selector))


def _requirements(selector: str) -> Iterator[Callable[[dict[str, str]], bool]]:
    for text in filter(None, re.split(r",(?![^(]*\))", selector)):
        if found := re.fullmatch(r"\s*(\S+)\s+(in|notin)\s+\(([^()]*)\)\s*", text):
            key, word, values = found[1], found[2], set(re.split(r"\s*,\s*", found[3].strip()))
            _label(key, *values)
            yield lambda labels, k=key, v=values, w=word: (labels.get(k) in v) == (w == "in")
        elif found := re.fullmatch(r"\s*([^\s=!]+)\s*(==?|!=)\s*([^\s=!]*)\s*", text):
            key, word, value = found[1], found[2], found[3]
            _label(key, value)
            yield lambda labels, k=key, v=value, w=word: (labels.get(k) == v) == (w != "!=")
        else:
            raise Invalid(f"unable to parse requirement: {text!r}")


def _label(key: str, *values: str) -> None:
    if not _LABEL_KEY.fullmatch(key):
        raise Invalid(f"metadata.labels: Invalid value: {key!r}")
    for value in values:
        if not isinstance(value, str) or not _LABEL_VALUE.fullmatch(value):
            raise Invalid(f"metadata.labels: Invalid value: {value!r}")


def _known(thing: object, fields: str, path: str) -> None:
    if not isinstance(thing, dict):
        raise Invalid(f"{path}: must be an object")
    unknown = sorted(set(thing) - _FIELDS[fields])
    if unknown:
        raise Invalid(f"strict decoding error: unknown field {path}.{unknown[0]}")


def _meta(meta: dict[str, Any]) -> None:
    unknown = sorted(set(meta) - _META)
    if unknown:
        raise Invalid(f"strict decoding error: unknown field metadata.{unknown[0]}")
    if not _DNS_NAME.fullmatch(str(meta.get("name"))):
        raise Invalid(f"metadata.name: Invalid value: {meta.get('name')!r}")
    for key, value in meta.get("labels", {}).items():
        _label(key, value)
    for each in meta.get("ownerReferences", []):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not each.get(name):
                raise Invalid(f"metadata.ownerReferences.{name}: Required value")


def _job(job: dict[str, Any]) -> None:
    spec = job.get("spec", {})
    _known(spec, "job spec", "spec")
    if len(job["metadata"]["name"]) > 63:
        raise Invalid("metadata.name: Invalid value: must be no more than 63 characters")
    for name in ("completions", "parallelism", "backoffLimit", "activeDeadlineSeconds",
                 "ttlSecondsAfterFinished"):  # fmt: skip
        _natural(spec.get(name, 0), f"spec.{name}")
    if spec.get("podReplacementPolicy", "Failed") not in {"Failed", "TerminatingOrFailed"}:
        raise Invalid("spec.podReplacementPolicy: Unsupported value")
    template = spec.get("template")
    if not isinstance(template, dict) or set(template) - {"metadata", "spec"}:
        raise Invalid("spec.template: Required value")
    for key, value in template.get("metadata", {}).get("labels", {}).items():
        _label(key, value)
    if template.get("spec", {}).get("restartPolicy") not in {"Never", "OnFailure"}:
        raise Invalid('spec.template.spec.restartPolicy: Unsupported value, must be "OnFailure"'
                      ' or "Never"')  # fmt: skip
    _pod_spec(template["spec"])


def _pod_spec(spec: dict[str, Any]) -> None:
    _known(spec, "pod spec", "spec.template.spec")
    containers = spec.get("containers")
    if not isinstance(containers, list) or not containers:
        raise Invalid("spec.template.spec.containers: Required value")
    if "activeDeadlineSeconds" in spec and spec["activeDeadlineSeconds"] < 1:
        raise Invalid("spec.template.spec.activeDeadlineSeconds: must be between 1 and 2147483647")
    for key, value in spec.get("nodeSelector", {}).items():
        _label(key, value)
    volumes = {each["name"] for each in spec.get("volumes", [])}
    for each in containers:
        _container(each, volumes)


def _container(container: dict[str, Any], volumes: set[str]) -> None:
    path = "spec.template.spec.containers[0]"
    _known(container, "container", path)
    if not _DNS_LABEL.fullmatch(str(container.get("name"))):
        raise Invalid(f"{path}.name: Required value")
    if not container.get("image"):
        raise Invalid(f"{path}.image: Required value")
    for each in container.get("command", []):
        if not isinstance(each, str):
            raise Invalid(f"{path}.command: must be texts")
    for each in container.get("volumeMounts", []):
        if each["name"] not in volumes:
            raise Invalid(f"{path}.volumeMounts.name: Not found: {each['name']!r}")
    _environment(container.get("env", []), path)
    _amounts(container.get("resources", {}), path)


def _environment(variables: list[dict[str, Any]], path: str) -> None:
    for each in variables:
        if not _VARIABLE.fullmatch(str(each.get("name"))):
            raise Invalid(f"{path}.env.name: Invalid value: {each.get('name')!r}")
        if not isinstance(each.get("value", ""), str):
            raise Invalid(f"{path}.env.value: must be a text")
        if "value" in each and "valueFrom" in each:
            raise Invalid(f"{path}.env.valueFrom: may not be specified when `value` is not empty")


def _amounts(resources: dict[str, Any], path: str) -> None:
    for kind in ("requests", "limits"):
        for name, value in resources.get(kind, {}).items():
            if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
                raise Invalid(f"{path}.resources.{kind}[{name}]: quantities must match the format")
    for name, value in resources.get("requests", {}).items():
        limit = resources.get("limits", {}).get(name, value)
        if "/" in name and limit != value:
            raise Invalid(f"{path}.resources.requests: must equal the limit of {name}")


def _secret(secret: dict[str, Any]) -> None:
    size = 0
    for key, value in secret.get("data", {}).items():
        if not _SECRET_KEY.fullmatch(key):
            raise Invalid(f"data[{key}]: Invalid value")
        try:
            size += len(base64.b64decode(value, validate=True))
        except (ValueError, TypeError) as error:
            raise Invalid(f"data[{key}]: illegal base64 data") from error
    if size > _MOST_SECRET_BYTES:
        raise Invalid("data: Too long: must have at most 1048576 bytes")


def _natural(value: object, path: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Invalid(f"{path}: Invalid value: must be greater than or equal to 0")


_RULES: dict[str, Callable[[dict[str, Any]], None]] = {"Job": _job, "Secret": _secret}
