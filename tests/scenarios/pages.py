"""HTTP client of the portal's pages: logs in by the form, returns the visible text of a page."""

from __future__ import annotations

import html
import re
from http.cookiejar import CookieJar
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

_HIDDEN = re.compile(r"<(script|style|template)\b.*?</\1>", re.S)
_TAG = re.compile(r"<[^>]*>")


class Pages:
    """One person's session."""

    def __init__(self, url: str, username: str, password: str) -> None:
        self._url = url
        self._opener = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))
        form = self._get("login/")
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
        assert token, form
        fields = {"csrfmiddlewaretoken": token[1], "username": username, "password": password}
        with self._opener.open(f"{url}/login/", urlencode(fields).encode(), timeout=60) as answer:
            assert not answer.url.endswith("/login/"), "the login was refused"

    def html(self, path: str) -> str:
        """A page as it comes. Raises HTTPError where it is refused."""
        return self._get(path)

    def text(self, path: str) -> str:
        """The words of a page, with single spaces between them."""
        visible = _TAG.sub(" ", _HIDDEN.sub(" ", self._get(path)))
        return " ".join(html.unescape(visible).split())

    def _get(self, path: str) -> str:
        with self._opener.open(f"{self._url}/{path}", timeout=60) as answer:
            return answer.read().decode()
