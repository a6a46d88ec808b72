"""Summaries and descriptions in the OpenAPI schema, taken from the docstrings of endpoints."""

from __future__ import annotations

import inspect

from drf_spectacular.openapi import AutoSchema


class DescribedByDocstring(AutoSchema):
    """The first line of the endpoint's docstring is its summary, unless another one is given."""

    def get_summary(self) -> str:
        """Return the line that is shown in the list of endpoints."""
        text = inspect.getdoc(type(self.view)) or ""
        return text.split("\n")[0].rstrip(".")

    def get_description(self) -> str:
        """Return what there is to say beyond the summary."""
        text: str = super().get_description()
        return "" if text.rstrip(".") == self.get_summary() else text
