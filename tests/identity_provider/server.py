"""Running identity provider, as tests use it: people, tokens, and a browser of a person."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests

PASSWORD = "a purple staple"
_INPUT = re.compile(r'<input[^>]*type="hidden"[^>]*>')


@dataclass(frozen=True, slots=True)
class Provider:
    """The provider's address as an issuer."""

    issuer: str

    def person(self, username: str, **facts: Any) -> str:
        """A person with groups and an address of mail, made or changed; the subject."""
        return str(self._control(username=username, **facts)["sub"])

    def rotate_key(self) -> None:
        """Sign by a new key from now on; the former one is not published any more."""
        self._control(new_key=True)

    def token(
        self,
        username: str,
        *,
        audience: str,
        scope: str = "compute.read",
        changed: Mapping[str, Any] | None = None,
    ) -> str:
        """Access token of a person in the form of the WLCG profile.

        `changed` has claims as they are to be, None for those that are to be missing.
        """
        answer = requests.post(
            f"{self.issuer}/token/",
            data={
                "grant_type": "password", "client_id": "tokens", "username": username,
                "password": PASSWORD, "scope": scope, "audience": audience,
                "changes": json.dumps(changed or {}),
            },
            timeout=10,
        )  # fmt: skip
        answer.raise_for_status()
        return str(answer.json()["access_token"])

    def _control(self, **wanted: Any) -> Any:
        address = urljoin(self.issuer, "/control/")
        answer = requests.post(address, data=json.dumps(wanted), timeout=10)
        answer.raise_for_status()
        return answer.json()


class Person:
    """A person's browser at the provider, which keeps its cookies."""

    def __init__(self, username: str) -> None:
        self._username, self._session = username, requests.Session()

    def agree(self, address: str, **choice: str) -> str:
        """Log in, and answer what the provider asks with `choice`; where it sends to in the end."""
        answer = self._get(address)
        if urlsplit(answer.url).path == "/login/":
            answer = self._send(answer, username=self._username, password=PASSWORD)
        if answer.is_redirect:
            return answer.headers["Location"]
        return self._send(answer, **choice).headers.get("Location", "")

    def confirm(self, address: str, *, user_code: str, **choice: str) -> None:
        """Log in, type the code of a device, and answer what the provider asks with `choice`."""
        answer = self._get(address)
        if urlsplit(answer.url).path == "/login/":
            answer = self._send(answer, username=self._username, password=PASSWORD)
        answer = self._send(answer, user_code=user_code)
        self._send(answer, **choice)

    def _get(self, address: str) -> requests.Response:
        """Page at an address; redirections within the provider are followed."""
        host, answer = urlsplit(address).netloc, self._ask("GET", address)
        while answer.is_redirect and urlsplit(answer.headers["Location"]).netloc in ("", host):
            answer = self._ask("GET", urljoin(answer.url, answer.headers["Location"]))
        return answer

    def _send(self, page: requests.Response, **values: str) -> requests.Response:
        """Answer to the page's form; redirections within the provider are followed."""
        hidden = {
            _attribute("name", each): _attribute("value", each)
            for each in _INPUT.findall(page.text)
        }
        answer = self._ask("POST", page.url, data=hidden | values)
        here = urlsplit(page.url).netloc
        if answer.is_redirect and urlsplit(answer.headers["Location"]).netloc in ("", here):
            return self._get(urljoin(page.url, answer.headers["Location"]))
        return answer

    def _ask(self, method: str, address: str, **named: Any) -> requests.Response:
        return self._session.request(method, address, allow_redirects=False, timeout=10, **named)


def _attribute(name: str, tag: str) -> str:
    found = re.search(rf'\b{name}="([^"]*)"', tag)
    return html.unescape(found[1]) if found else ""


@contextmanager
def identity_provider(callback: str) -> Iterator[Provider]:
    """A provider that runs, and sends people of the portal back to `callback`."""
    program = [sys.executable, "-W", "ignore", "-m", "tests.identity_provider.program", callback]
    process = subprocess.Popen(program, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        issuer = process.stdout.readline().decode().strip()
        assert issuer, "the identity provider did not start"
        yield Provider(issuer)
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
