from __future__ import annotations

from pathlib import Path

import pytest

from wms.elements.host import HostElement
from wms.elements.protocol import BadSettings
from wms.elements.registry import ELEMENTS, element_for
from wms.elements.slurm import SlurmElement

SSH = {"host": "login.example.org", "known_hosts_file": "/etc/ssh/ssh_known_hosts"}


@pytest.mark.process
def test_settings_become_an_element(tmp_path: Path) -> None:
    element = element_for("host", {"directory": str(tmp_path), "slots": 2})

    assert isinstance(element, HostElement)
    assert element.capacity().total == 2


def test_a_cluster_behind_ssh_needs_no_more_than_this() -> None:
    element = element_for("slurm", {"log_directory": "/home/pilot/logs", "ssh": SSH})

    assert isinstance(element, SlurmElement)


def host(**settings: object) -> tuple[str, dict[str, object]]:
    return "host", {"directory": "/tmp/x", **settings}


def slurm(**settings: object) -> tuple[str, dict[str, object]]:
    return "slurm", {"log_directory": "/tmp/x", **settings}


def htcondor(**settings: object) -> tuple[str, dict[str, object]]:
    return "htcondor", {"collector": "pool.example.org", "token_directory": "/tmp/x", **settings}


def arc(**settings: object) -> tuple[str, dict[str, object]]:
    return "arc", {"url": "https://ce.example.org/arex", "certificate_file": "/tmp/x", **settings}


def kubernetes(**settings: object) -> tuple[str, dict[str, object]]:
    needed = {"url": "https://k", "namespace": "pilots", "image": "x", "token_file": "/tmp/x"}
    return "kubernetes", {**needed, **settings}


@pytest.mark.parametrize(
    ("given", "key", "reason"),
    [
        (("punchcards", {}), "kind", "unknown; there are"),
        (("host", {"slots": 2}), "directory", "is missing; it needs an absolute path"),
        (host(directory="var/pilots"), "directory", "needs an absolute path"),
        (host(directory="/tmp/\n"), "directory", "needs an absolute path"),
        (host(slots=0), "slots", "a whole number from 1 to 10000"),
        (host(slots="2"), "slots", "a whole number"),
        (host(slots=True), "slots", "a whole number"),
        (host(slot=2), "slot", "unknown setting; there are directory, slots"),
        (host(timeout_s=0), "timeout_s", "a whole number from 1 to 100"),
        (host(ssh="login"), "ssh", "needs an object with config_file, host"),
        (host(ssh={}), "ssh.host", "is missing"),
        (host(ssh=SSH | {"host": "-oProxyCommand=x"}), "ssh.host", "needs a host's name"),
        (host(ssh=SSH | {"port": 0}), "ssh.port", "from 1 to 65535"),
        (host(ssh=SSH | {"user": "-x"}), "ssh.user", "needs an account"),
        (host(ssh=SSH | {"password": "hush"}), "ssh.password", "unknown setting"),
        (host(ssh=SSH | {"key_file": "id_ed25519"}), "ssh.key_file", "an absolute path"),
        (host(ssh=SSH | {"proxy_jump": "a b"}), "ssh.proxy_jump", "[user@]host[:port]"),
        (host(ssh=SSH | {"proxy_jump": "a,b"}), "ssh.proxy_jump", "[user@]host[:port]"),
        (host(ssh={"host": "x"}), "ssh.known_hosts_file", "has to be known beforehand"),
        (("slurm", {}), "log_directory", "is missing"),
        (slurm(log_directory="/tmp/%j"), "log_directory", "must not contain '%'"),
        (slurm(partition="-x"), "partition", "a partition's name"),
        (slurm(arguments="--qos=long"), "arguments", "needs a list"),
        (slurm(arguments=["--qos=long", "x"]), "arguments", "'x' is not an option of sbatch"),
        (slurm(arguments=["--array=0-99"]), "arguments", "--array is set for each batch by"),
        (slurm(arguments=["--outp=/etc/x"]), "arguments", "--outp is set for each batch by"),
        (slurm(arguments=["--requeue"]), "arguments", "--requeue is set for each batch by"),
        (slurm(path="bin"), "path", "absolute paths"),
        (slurm(slurm_conf=1), "slurm_conf", "an absolute path"),
        (slurm(cores=0), "cores", "a whole number"),
        (("htcondor", {"token_directory": "/tmp/x"}), "collector", "is missing"),
        (htcondor(collector="pool:port"), "collector", "HOST or HOST:PORT"),
        (htcondor(schedd='x" || true'), "schedd", "the name of a schedd"),
        (htcondor(token_directory="tokens"), "token_directory", "an absolute path"),
        (htcondor(token="hush"), "token", "unknown setting"),
        (htcondor(commands="rank = 1"), "commands", "needs an object with accounting_group"),
        (htcondor(commands={"input": "/etc/passwd"}), "commands.input", "unknown setting"),
        (htcondor(commands={"+PilotageBatch": '"x"'}), "commands.+PilotageBatch", "unknown"),
        (htcondor(commands={"rank": "1\nqueue 5"}), "commands.rank", "needs a text"),
        (htcondor(commands={"priority": 1}), "commands.priority", "needs a text"),
        (("arc", {"certificate_file": "/tmp/x"}), "url", "is missing"),
        (arc(url="http://ce.example.org/arex"), "url", "an address https://HOST:PORT/arex"),
        (arc(url="https://user:hush@ce.example.org/arex"), "url", "an address https://"),
        (arc(queue="a b"), "queue", "a queue"),
        (arc(ca_path="ca.pem"), "ca_path", "an absolute path"),
        (("arc", {"url": "https://ce/arex"}), "certificate_file", "or token_file"),
        (
            ("arc", {"url": "https://ce/arex", "token_file": "/x", "key_file": "/y"}),
            "key_file",
            "needs certificate_file",
        ),
        (("kubernetes", {"url": "https://k"}), "namespace", "is missing"),
        (kubernetes(url="http://k"), "url", "an address https://HOST:PORT"),
        (kubernetes(url="https://k/?x=1"), "url", "an address https://HOST:PORT"),
        (kubernetes(namespace="a/b"), "namespace", "the name of a namespace"),
        (kubernetes(image="a b"), "image", "the name of a container image"),
        (kubernetes(token="hush"), "token", "unknown setting"),
        (kubernetes(token_file="x"), "token_file", "an absolute path"),
        (kubernetes(run_as_user=0), "run_as_user", "from 1 to"),
        (kubernetes(gpu_resource="gpu"), "gpu_resource", "as nvidia.com/gpu"),
        (kubernetes(node_selector=["a"]), "node_selector", "an object of labels"),
        (kubernetes(node_selector={"a b": "c"}), "node_selector.a b", "an object of labels"),
        (kubernetes(node_selector={"a": 1}), "node_selector.a", "an object of labels"),
        (kubernetes(priority_class="A"), "priority_class", "the name of a priority class"),
    ],
)
def test_settings_that_do_not_fit_are_refused_with_place_and_reason(
    given: tuple[str, dict[str, object]], key: str, reason: str
) -> None:
    with pytest.raises(BadSettings) as caught:
        element_for(*given)

    assert caught.value.key == key
    assert reason in caught.value.reason


def test_what_is_unknown_is_told_with_the_kinds_there_are() -> None:
    with pytest.raises(BadSettings, match=", ".join(sorted(ELEMENTS))):
        element_for("punchcards", {})
