"""Kubernetes for tests: real servers where there are programs for them, else a conformance fake.

    python -m tests.batch_systems.kubernetes start FOLDER
    python -m tests.batch_systems.kubernetes stop FOLDER

`kube-apiserver`, `kube-controller-manager` and `etcd` are looked for in the folder that
PILOTAGE_KUBERNETES names, then in PATH. Without them there is `kubernetes_fake`. In both cases
`kubernetes_node` stands in for scheduler and kubelet: pods are processes of this host. The portal's
rights are those that the how-to gives it. For tests and for trying things out only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.batch_systems.kubernetes_api import Api, ApiError
from tests.batch_systems.kubernetes_certificates import make_certificates
from tests.batch_systems.services import (
    Unavailable,
    end,
    free_ports,
    locked,
    own_pid,
    wait_until,
)

#: Folder of the real programs.
VARIABLE = "PILOTAGE_KUBERNETES"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "etcd")
START_LIMIT_S = 60.0
ACCOUNT = "pilotage"
BASE = Path(__file__).parents[2]
HOW_TO = BASE / "docs/how-to/connect-a-kubernetes-cluster.md"
#: Processes in the order in which they are started.
_FAKE, _REAL = ("api",), ("etcd", "api", "controllers")


@dataclass(frozen=True)
class Kubernetes:
    """A cluster that is up, and what a client needs to speak to it."""

    folder: Path
    port: int
    admin_token: str
    is_real: bool

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def api(self) -> Api:
        return Api(self.port, self.ca_file, self.admin_token)

    def kill(self) -> None:
        """End the API server and what is beside it at once; pods run on."""
        for name in reversed(_REAL):
            end(self.folder / f"{name}.pid", self.folder, number=signal.SIGKILL)

    def evict(self, pilot: str) -> None:
        """End of a pilot's pod as by a node that is short of memory."""
        (self.folder / "evict" / pilot).touch()

    def new_namespace(self, name: str) -> Path:
        """Make a namespace in which the portal has its rights; return the file of its token."""
        api = self.api
        _made(api, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace"}, name)
        for manifest in _manifests(name):
            _made(api, _collection(manifest, name), manifest, manifest["metadata"]["name"])
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200},
        }
        path = f"/api/v1/namespaces/{name}/serviceaccounts/{ACCOUNT}/token"
        file = self.folder / f"{name}.token"
        file.touch(mode=0o600)
        file.write_text(api.post(path, request)["status"]["token"])
        return file


def start(folder: Path) -> Kubernetes:
    """Start the cluster if it is not up, and return when it answers; raise `Unavailable`."""
    with locked(folder / "lock"):
        found = _configured(folder)
        for name, argv in _commands(found).items():
            _ensure(folder, name, argv)
        if not wait_until(lambda: _answers(found), START_LIMIT_S):
            raise Unavailable(f"the API server did not come up; see {folder}/*.log")
        _ensure(folder, "node", _python("kubernetes_node", folder))
        if not wait_until(lambda: _has_node(found), START_LIMIT_S):
            raise Unavailable(f"the node did not come up; see {folder}/node.log")
    return found


def stop(folder: Path) -> None:
    """End the cluster that `start` started in this folder, with all of its pods."""
    for name in ("node", *reversed(_REAL)):
        end(folder / f"{name}.pid", folder, number=signal.SIGTERM)


def _configured(folder: Path) -> Kubernetes:
    """Lay out the folder once."""
    file = folder / "cluster.json"
    if not file.exists():
        make_certificates(folder)
        port, etcd, peers, controllers = free_ports(4)
        told = {
            "port": port,
            "etcd_ports": [etcd, peers],
            "controllers_port": controllers,
            "admin_token": secrets.token_urlsafe(24),
            "is_real": all(_program(each) for each in PROGRAMS),
        }
        (folder / "tokens.csv").write_text(f'{told["admin_token"]},admin,1,"system:masters"\n')
        _write_kubeconfig(folder, told)
        file.write_text(json.dumps(told))
    told = json.loads(file.read_text())
    return Kubernetes(folder, told["port"], told["admin_token"], told["is_real"])


def _write_kubeconfig(folder: Path, told: dict[str, Any]) -> None:
    server = {
        "server": f"https://localhost:{told['port']}",
        "certificate-authority": str(folder / "ca.pem"),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": server}],
        "users": [{"name": "admin", "user": {"token": told["admin_token"]}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))


def _program(name: str) -> str | None:
    folder = os.environ.get(VARIABLE)
    return shutil.which(name, path=folder) if folder else shutil.which(name)


def _help(name: str) -> str:
    argv = [_program(name) or name, "--help"]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30).stdout


def _python(module: str, folder: Path) -> list[str]:
    return [sys.executable, "-m", f"tests.batch_systems.{module}", str(folder)]


def _commands(cluster: Kubernetes) -> dict[str, list[str]]:
    if not cluster.is_real:
        return dict(zip(_FAKE, [_python("kubernetes_fake", cluster.folder)], strict=True))
    folder = cluster.folder
    told = json.loads((folder / "cluster.json").read_text())
    client, peers = (f"http://127.0.0.1:{each}" for each in told["etcd_ports"])
    etcd = [
        f"--data-dir={folder}/etcd", f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}", f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}",
    ]  # fmt: skip
    api = [
        f"--etcd-servers={client}", "--bind-address=127.0.0.1", f"--secure-port={cluster.port}",
        f"--tls-cert-file={folder}/host.pem", f"--tls-private-key-file={folder}/host.key",
        f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder}/host.key",
        f"--service-account-signing-key-file={folder}/host.key",
        "--service-cluster-ip-range=10.96.0.0/24", "--endpoint-reconciler-type=none",
        "--kubelet-preferred-address-types=InternalIP",
        f"--cert-dir={folder}/certificates",
    ]  # fmt: skip
    controllers = [
        f"--kubeconfig={folder}/kubeconfig", "--leader-elect=false",
        "--controllers=job,garbagecollector,namespace,serviceaccount,resourcequota",
        f"--service-account-private-key-file={folder}/host.key",
        "--bind-address=127.0.0.1", f"--secure-port={told['controllers_port']}",
        f"--cert-dir={folder}/certificates",
    ]  # fmt: skip
    if "--port int" in _help("kube-controller-manager"):
        # Before 1.24 it would also serve without TLS, at a port that all clusters share.
        controllers.append("--port=0")
    options = [etcd, api, controllers]
    programs = ["etcd", "kube-apiserver", "kube-controller-manager"]
    return {
        name: [_program(each) or each, *words]
        for name, each, words in zip(_REAL, programs, options, strict=True)
    }


def _ensure(folder: Path, name: str, argv: list[str]) -> None:
    """Start a program if it is not up; it outlives this process."""
    pid_file = folder / f"{name}.pid"
    if own_pid(pid_file, folder) is not None:
        return
    # By a shell that does not wait, so that it is nobody's child.
    noted = 'echo $$ >"$0" && exec "$@"'
    with (folder / f"{name}.log").open("ab") as log:
        subprocess.run(
            ["setsid", "--fork", "sh", "-c", noted, str(pid_file), *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=BASE,
            check=True,
            timeout=30,
        )
    wait_until(lambda: own_pid(pid_file, folder) is not None, 10.0)


def _answers(cluster: Kubernetes) -> bool:
    context = ssl.create_default_context(cafile=cluster.ca_file)
    headers = {"Authorization": f"Bearer {cluster.admin_token}"}
    request = urllib.request.Request(f"{cluster.url}/readyz", headers=headers)
    try:
        with urllib.request.urlopen(request, context=context, timeout=5):
            return True
    except OSError:
        return False


def _has_node(cluster: Kubernetes) -> bool:
    try:
        nodes = cluster.api.get("/api/v1/nodes")["items"]
    except (OSError, ApiError):
        return False
    return any(each.get("status", {}).get("daemonEndpoints") for each in nodes)


def _manifests(namespace: str) -> list[dict[str, Any]]:
    """The how-to's service account, role and binding, for another namespace."""
    block = re.search(r"^```yaml\n(.*?)^```", HOW_TO.read_text(), re.M | re.S)
    assert block is not None, "the how-to has no manifests"
    text = re.sub(r"\bnamespace: \S+", f"namespace: {namespace}", block[1])
    return [each for each in yaml.safe_load_all(text) if each["kind"] != "Namespace"]


def _collection(manifest: dict[str, Any], namespace: str) -> str:
    version = manifest["apiVersion"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{base}/namespaces/{namespace}/{manifest['kind'].lower()}s"


def _made(api: Api, path: str, manifest: dict[str, Any], name: str) -> None:
    try:
        api.post(path, manifest | {"metadata": manifest.get("metadata", {}) | {"name": name}})
    except ApiError as error:
        if error.status != 409:
            raise


def settings_of(cluster: Kubernetes, namespace: str) -> dict[str, str]:
    """Settings of a queue that sends pilots into a namespace, which is made."""
    return {
        "url": cluster.url,
        "namespace": namespace,
        "ca_path": str(cluster.ca_file),
        "token_file": str(cluster.new_namespace(namespace)),
        "image": "python:3.11-slim",
    }


def _main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.batch_systems.kubernetes")
    parser.add_argument("command", choices=["start", "stop"])
    parser.add_argument("folder", type=Path, help="all of its state; it may be removed after stop")
    parsed = parser.parse_args(arguments)
    folder = parsed.folder.resolve()
    if parsed.command == "stop":
        stop(folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    try:
        cluster = start(folder)
    except Unavailable as error:
        sys.exit(f"kubernetes: {error}")
    settings = json.dumps(settings_of(cluster, "pilots"))
    what = "a real API server" if cluster.is_real else "the conformance fake"
    sys.stdout.write(f"{what}; settings of a queue with the element kubernetes:\n{settings}\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
