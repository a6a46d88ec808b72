"""Text of a page, or of a single element of it that is found by its id, for assertions."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "use", "wbr"}


class _Element(HTMLParser):
    """Collects the text inside the element with one id."""

    def __init__(self, element_id: str) -> None:
        super().__init__()
        self.element_id = element_id
        self.depth = 0
        self.is_there = False
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            return
        if self.depth:
            self.depth += 1
        elif not self.is_there and ("id", self.element_id) in attrs:
            self.depth, self.is_there = 1, True

    def handle_endtag(self, tag: str) -> None:
        if self.depth and tag not in _VOID:
            self.depth -= 1

    def handle_data(self, data: str) -> None:
        if self.depth:
            self.parts.append(data)


def text_of(page: str, element_id: str) -> str:
    """Text of the element with this id, in one line. Fails if the page has none."""
    element = _Element(element_id)
    element.feed(page)
    assert element.is_there, f"no element has the id {element_id}"
    return " ".join(" ".join(element.parts).split())


def plain_text(page: str) -> str:
    """Text of the whole page, in one line."""
    return text_of(f'<div id="whole-page">{page}</div>', "whole-page")
