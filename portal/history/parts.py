"""Parts of the installation that a history chart can be of: one site, one frontend, or all."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One site, or one frontend, with its id; all where neither is named."""

    site: str = ""
    frontend: str = ""
    frontend_id: int = 0

    def __bool__(self) -> bool:
        return bool(self.site or self.frontend)

    @property
    def words(self) -> str:
        """Words that follow a title: ` at UW`, ` of atlas`; none for all."""
        if self.frontend:
            return f" of {self.frontend}"
        return f" at {self.site}" if self.site else ""


#: All sites and frontends together.
WHOLE = Part()
