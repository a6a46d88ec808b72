"""Program: OpenStack Swift with its S3 interface, all of its servers in one process.

    program.py FOLDER ACCOUNT USER SECRET

It prints its address, and ends with the process that started it.
"""

from __future__ import annotations

import eventlet

eventlet.monkey_patch()

import logging  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from eventlet import wsgi  # noqa: E402
from swift.account.server import AccountController  # noqa: E402
from swift.common import storage_policy, utils  # noqa: E402
from swift.common.http_protocol import SwiftHttpProtocol  # noqa: E402
from swift.common.middleware import (  # noqa: E402
    catch_errors,
    copy,
    dlo,
    gatekeeper,
    listing_formats,
    slo,
    tempauth,
)
from swift.common.middleware.s3api import s3api  # noqa: E402
from swift.common.ring import RingBuilder  # noqa: E402
from swift.container.server import ContainerController  # noqa: E402
from swift.obj.server import ObjectController  # noqa: E402
from swift.proxy.server import Application  # noqa: E402

REGION = "us-east-1"
_HOST = "127.0.0.1"


def main(folder: Path, account: str, user: str, secret: str) -> None:
    """Serve until the parent is gone."""
    (folder / "devices" / "d1").mkdir(parents=True)
    utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX = b"tests", b"tests"
    logging.getLogger("swift").propagate = False
    conf = {
        "swift_dir": str(folder),
        "devices": str(folder / "devices"),
        "mount_check": "false",
        "fallocate_reserve": "0",
        "disable_fallocate": "true",
        "account_autocreate": "true",
    }
    backends = {"account": AccountController, "container": ContainerController}
    sockets = {name: eventlet.listen((_HOST, 0)) for name in (*backends, "object", "proxy")}
    for name in (*backends, "object"):
        _ring(folder / f"{name}.ring.gz", sockets[name].getsockname()[1])
    policy = storage_policy.StoragePolicy(0, "default", True, False)
    storage_policy._POLICIES = storage_policy.StoragePolicyCollection([policy])
    logger = utils.get_logger(conf, "tests")
    for name, controller in (*backends.items(), ("object", ObjectController)):
        eventlet.spawn(_serve, sockets[name], controller(conf, logger=logger))
    eventlet.spawn(_serve, sockets["proxy"], _proxy(conf, logger, account, user, secret))
    sys.stdout.write(f"http://{_HOST}:{sockets['proxy'].getsockname()[1]}\n")
    sys.stdout.flush()
    parent = os.getppid()
    while os.getppid() == parent:
        eventlet.sleep(1)


def _ring(path: Path, port: int) -> None:
    builder = RingBuilder(1, 1, 0)
    device = {"id": 0, "zone": 1, "region": 1, "weight": 1, "device": "d1"}
    builder.add_dev(device | {"ip": _HOST, "port": port})
    builder.rebalance()
    builder.get_ring().save(str(path))


def _proxy(conf: dict[str, str], logger: Any, account: str, user: str, secret: str) -> Any:
    app = Application(conf, logger=logger)
    app.check_config()
    of_s3 = {
        "location": REGION,
        "allow_multipart_uploads": "true",
        "auth_pipeline_check": "false",
        "check_bucket_owner": "false",
    }
    known = {f"user_{account}_{user}": f"{secret} .admin"}
    filters = (dlo, slo, copy, (tempauth, known), (s3api, of_s3), listing_formats, gatekeeper)
    for each in (*filters, catch_errors):
        module, own = each if isinstance(each, tuple) else (each, {})
        app = module.filter_factory(conf | own)(app)
    return app


class _Nowhere:
    def write(self, text: str) -> None:
        """The log of requests is not kept."""


def _serve(socket: Any, app: Any) -> None:
    wsgi.server(socket, app, _Nowhere(), debug=False, protocol=SwiftHttpProtocol)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5])
