"""Parts of the installation that a history chart can be of: one site, one frontend, or all."""

from __future__ import annotations

from dataclasses import dataclass

from wms.accounting.frontends import DEFAULT_KEY, called


@dataclass(frozen=True, slots=True)
class Part:
    """One site, or one frontend, with its id; all where neither is named.

    The default frontend has the key of addresses for its name.
    """

    site: str = ""
    frontend: str = ""
    frontend_id: int = 0

    def __bool__(self) -> bool:
        return bool(self.site or self.frontend)

    @property
    def name(self) -> str:
        """Name that people read; empty for all."""
        return self.site or (called(self.frontend) if self.frontend else "")

    @property
    def words(self) -> str:
        """Words that follow a title: ` at UW`, ` of atlas`; none for all."""
        if self.frontend:
            return f" of {self.name}"
        return f" at {self.site}" if self.site else ""

    @property
    def file_word(self) -> str:
        """Word for it in names of files; empty for all."""
        return self.site or ("default" if self.frontend == DEFAULT_KEY else self.frontend)


#: All sites and frontends together.
WHOLE = Part()
