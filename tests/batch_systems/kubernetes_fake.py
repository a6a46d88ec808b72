"""Conformance fake of a Kubernetes API server with its controllers, for where no real one is.

    python -m tests.batch_systems.kubernetes_fake FOLDER

It speaks the part of the API that an element and a kubelet need, over TLS, as the real one does:
bearer tokens and RBAC, strict manifests (`kubernetes_schema`), versions of resources, selectors of
labels, lists in pages whose tokens expire, merge patches, quotas, graceful removal with what is
owned (`kubernetes_store`). Errors are `Status` objects with the same codes. Nothing is watched.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import signal
import ssl
import sys
import threading
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.batch_systems.kubernetes_schema import Invalid, matches
from tests.batch_systems.kubernetes_store import Controllers, Denied, Key, Store, Thing

MERGE_PATCH = "application/merge-patch+json"
_GROUPS = {
    "jobs": "batch", "roles": "rbac.authorization.k8s.io",
    "rolebindings": "rbac.authorization.k8s.io",
}  # fmt: skip
_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[a-z.0-9]+)/v1)(?:/namespaces/(?P<namespace>[a-z0-9-]+))?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[a-z0-9.-]+))?(?:/(?P<sub>[a-z]+))?"
)
_VERBS = {"POST": "create", "PATCH": "patch", "GET": "get", "DELETE": "delete"}
_LARGEST_BODY = 3 * 1024 * 1024
#: A page's token is of no use any more when so many changes have happened since.
EXPIRY = 10_000


class Fake:
    """State behind the HTTP server."""

    def __init__(self, store: Store, admin_token: str) -> None:
        self.store = store
        self._admin_token = admin_token
        #: Versions before this one are compacted away.
        self.oldest = 0

    def answer(
        self, method: str, path: str, query: dict[str, str], token: str, kind: str, body: Any
    ) -> object:
        """Object, or text, that answers a request; raise `Denied` or `Invalid`."""
        user = self._user(token)
        if path == "/readyz":
            return "ok"
        if path == "/fake/compact":
            self.oldest = self.store.version + 1
            return "ok"
        found = _PATH.fullmatch(path)
        if found is None:
            raise Denied(404, "NotFound", "the server could not find the requested resource")
        resource, name, sub = found["resource"], found["name"] or "", found["sub"] or ""
        where = found["namespace"] or ""
        if resource == "namespaces":
            # Its name comes where others have their namespace.
            where = ""
        key: Key = (resource, where, name)
        if (found["group"] or "") != _GROUPS.get(resource, ""):
            raise Denied(404, "NotFound", "the server could not find the requested resource")
        self._authorize(user, method, key, sub)
        if where and ("namespaces", "", where) not in self._names("namespaces"):
            raise Denied(404, "NotFound", f'namespaces "{where}" not found')
        return self._served(method, key, sub, query, kind, body)

    def _served(
        self, method: str, key: Key, sub: str, query: dict[str, str], kind: str, body: Any
    ) -> object:
        resource, where, name = key
        if sub:
            return self._of_subresource(method, key, sub, query, body)
        if method == "GET":
            return self.store.get(key) if name else self._listed(resource, where, query)
        if method == "POST":
            body = _an_object(body)
            made = str(body.get("metadata", {}).get("name", ""))
            return self.store.add((resource, where, made), body)
        if method == "PATCH":
            if kind != MERGE_PATCH:
                raise Denied(415, "UnsupportedMediaType", "the body of the request was in an "
                             "unknown format")  # fmt: skip
            return self.store.change(key, _without_status(_an_object(body)))
        return self._removed(key, query, body)

    def _listed(self, resource: str, where: str, query: dict[str, str]) -> Thing:
        chosen = [
            thing
            for thing in self.store.all_of(resource, where)
            if matches(query.get("labelSelector", ""), thing["metadata"].get("labels", {}))
        ]
        version, start = self.store.version, 0
        if "continue" in query:
            version, start = self._page(query["continue"])
        limit = int(query.get("limit", 0)) or len(chosen)
        meta: Thing = {"resourceVersion": str(version)}
        if len(chosen) > start + limit:
            token = json.dumps({"rv": version, "start": start + limit}).encode()
            meta["continue"] = base64.urlsafe_b64encode(token).decode()
        return {"kind": "List", "metadata": meta, "items": chosen[start : start + limit]}

    def _page(self, token: str) -> tuple[int, int]:
        try:
            told = json.loads(base64.urlsafe_b64decode(token))
            version, start = int(told["rv"]), int(told["start"])
        except (ValueError, KeyError, TypeError) as error:
            raise Denied(400, "BadRequest", "continue key is not valid") from error
        if version < max(self.oldest, self.store.version - EXPIRY):
            why = "The provided continue parameter is too old to display a consistent list result."
            raise Denied(410, "Expired", why)
        return version, start

    def _removed(self, key: Key, query: dict[str, str], body: Any) -> Thing:
        resource, where, name = key
        options = body if isinstance(body, dict) else {}
        policy = query.get("propagationPolicy", "Background")
        if policy not in {"Background", "Foreground", "Orphan"}:
            raise Denied(422, "Invalid", f"propagationPolicy: Unsupported value: {policy!r}")
        names = [name]
        if not name:
            listed = self._listed(resource, where, {k: query[k] for k in query if k != "limit"})
            names = [each["metadata"]["name"] for each in listed["items"]]
        for each in names:
            self.store.remove((resource, where, each), grace_s=options.get("gracePeriodSeconds"))
        return {"kind": "Status", "status": "Success"}

    def _of_subresource(
        self, method: str, key: Key, sub: str, query: dict[str, str], body: Any
    ) -> object:
        resource, where, name = key
        if sub == "status" and method == "PATCH":
            return self.store.change(key, {"status": _an_object(body).get("status", {})})
        if sub == "binding" and method == "POST":
            self.store.bind(key, _an_object(body)["target"]["name"])
            return {"kind": "Status", "status": "Success"}
        if sub == "token" and resource == "serviceaccounts" and method == "POST":
            self.store.get(key)
            token, made = secrets.token_urlsafe(24), f"token-{secrets.token_hex(8)}"
            user = f"system:serviceaccount:{where}:{name}"
            told = {"metadata": {"name": made}, "token": token, "user": user}
            self.store.add(("tokens", where, made), told)
            return {"kind": "TokenRequest", "status": {"token": token}}
        if sub == "log" and resource == "pods" and method == "GET":
            return self._log(self.store.get(key), query)
        raise Denied(404, "NotFound", "the server could not find the requested resource")

    def _log(self, pod: Thing, query: dict[str, str]) -> Callable[[], str]:
        """Function that fetches a log from the node, without the lock."""
        containers = {each["name"] for each in pod["spec"]["containers"]}
        if query.get("container") not in {None, *containers}:
            raise Denied(400, "BadRequest", f"container {query['container']} is not valid")
        state = next(iter(pod["status"].get("containerStatuses", [])), {}).get("state", {})
        if not state.keys() & {"running", "terminated"}:
            why = f'container "pilot" in pod "{pod["metadata"]["name"]}" is waiting to start'
            raise Denied(400, "BadRequest", why)
        node = self.store.get(("nodes", "", pod["spec"]["nodeName"]))
        port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        meta, tail = pod["metadata"], query.get("tailLines", "-1")
        place = f"containerLogs/{meta['namespace']}/{meta['name']}/pilot?tailLines={tail}"

        def fetch() -> str:
            # As the real one by default: it does not know its nodes' authority.
            context = ssl._create_unverified_context()
            url = f"https://127.0.0.1:{port}/{place}"
            with urllib.request.urlopen(url, context=context, timeout=10) as answer:
                return str(answer.read().decode(errors="replace"))

        return fetch

    def _user(self, token: str) -> str:
        if secrets.compare_digest(token, self._admin_token):
            return "admin"
        for each in self.store.all_of("tokens"):
            if secrets.compare_digest(token, each["token"]):
                return str(each["user"])
        raise Denied(401, "Unauthorized", "Unauthorized")

    def _authorize(self, user: str, method: str, key: Key, sub: str) -> None:
        resource, where, name = key
        verb = _VERBS[method]
        if not name and verb in {"get", "delete"}:
            verb = {"get": "list", "delete": "deletecollection"}[verb]
        asked = f"{resource}/{sub}" if sub else resource
        group = _GROUPS.get(resource, "")
        if user == "admin" or any(
            {verb} <= set(rule["verbs"])
            and {asked} <= set(rule["resources"])
            and {group} <= set(rule["apiGroups"])
            for rule in self._rules(user, where)
        ):
            return
        why = f'User "{user}" cannot {verb} resource "{asked}" in API group "{group}"'
        full = f"{resource}.{group}" if group else resource
        place = f'in the namespace "{where}"' if where else "at the cluster scope"
        raise Denied(403, "Forbidden", f"{full} is forbidden: {why} {place}")

    def _rules(self, user: str, where: str) -> list[Thing]:
        rules: list[Thing] = []
        for binding in self.store.all_of("rolebindings", where) if where else []:
            for each in binding["subjects"]:
                named = f"system:serviceaccount:{each.get('namespace', where)}:{each['name']}"
                if each["kind"] == "ServiceAccount" and named == user:
                    role = self.store.get(("roles", where, binding["roleRef"]["name"]))
                    rules += role["rules"]
        return rules

    def _names(self, resource: str) -> set[Key]:
        return {(resource, "", each["metadata"]["name"]) for each in self.store.all_of(resource)}


def _an_object(body: Any) -> Thing:
    if not isinstance(body, dict):
        raise Denied(400, "BadRequest", "the object provided is unrecognized")
    return body


def _without_status(patch: Thing) -> Thing:
    """A patch without what only the subresource may change."""
    return {key: value for key, value in patch.items() if key != "status"}


def handler(fake: Fake) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # An answer goes as one, and is not kept back for the next one on a connection.
        wbufsize = -1
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            place = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(place.query).items()}
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            kind = self.headers.get("Content-Type", "").partition(";")[0]
            status, told = 200, None
            try:
                if size > _LARGEST_BODY:
                    raise Denied(413, "RequestEntityTooLarge", "limit is 3145728")
                body = json.loads(self.rfile.read(size)) if size else None
                with fake.store.lock:
                    told = fake.answer(self.command, place.path, query, token, kind, body)
                    text = told if callable(told) else _written(told)
                text = text() if callable(text) else text
                status = 201 if self.command == "POST" else 200
            except ValueError:
                status, text = 400, _status(400, "BadRequest", "the body is no JSON")
            except Invalid as error:
                code = 400 if self.command == "GET" else 422
                status, text = code, _status(code, "Invalid", str(error))
            except Denied as error:
                status, text = error.status, _status(error.status, error.reason, str(error))
            except OSError as error:
                status, text = 500, _status(500, "InternalError", str(error))
            self.send_response(status)
            data = text.encode()
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = _serve

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _written(told: object) -> str:
    return told if isinstance(told, str) else json.dumps(told)


def _status(code: int, reason: str, message: str) -> str:
    told = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return json.dumps({**told, "code": code, "reason": reason, "message": message})


class Server(ThreadingHTTPServer):
    """Server whose TLS handshakes are in the threads of their connections."""

    daemon_threads = True
    context: ssl.SSLContext

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(120)
        with self.context.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients of tests go away as they like."""


def main(folder: Path) -> None:
    """Serve until a signal comes."""
    told = json.loads((folder / "cluster.json").read_text())
    store = Store(folder / "objects.jsonl")
    fake = Fake(store, told["admin_token"])
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    server = Server(("127.0.0.1", told["port"]), handler(fake))
    server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.context.load_cert_chain(folder / "host.pem", folder / "host.key")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Controllers(store).run(stopped)
    server.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
