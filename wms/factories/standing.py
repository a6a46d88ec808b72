"""Standing of factories and their entries: whether they take pilots now, and if not, why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from wms.core.conf import conf
from wms.factories.models import FactoryEntry, RemoteFactory


@dataclass(frozen=True, slots=True)
class Standings:
    """Factories and their entries at one moment."""

    factories: Mapping[str, RemoteFactory]
    entries: Mapping[tuple[str, str], FactoryEntry]
    now: datetime

    def silence(self, factory: str) -> str:
        """Why nothing is known of this factory's pilots now; empty where it was heard lately."""
        row = self.factories.get(factory)
        if row is None:
            return f"there is no factory {factory}"
        if row.seen_at is None:
            never = f"never answered{_error_of(row)}" if row.url else "never called"
            return f"the factory {factory} has {never}"
        if is_stale(row, self.now):
            age_s = (self.now - row.seen_at).total_seconds()
            refused = ""
            if row.refused_at is not None and row.refused_at > row.seen_at:
                refused = f"; its last call was refused: {row.refused_reason}"
            return (
                f"the factory {factory} was heard last at {row.seen_at:%Y-%m-%d %H:%M:%S} UTC, "
                f"{age_s:.0f} s ago{refused or _error_of(row)}"
            )
        return ""

    def refusal(self, factory: str, entry: str, *, site: str) -> str:
        """Why no pilot is ordered of this entry for a queue of the site; empty where some may be.

        The age of what is known of it is told with it.
        """
        row = self.factories.get(factory)
        if row is not None and not row.is_enabled:
            return f"the factory {factory} is switched off"
        if row is not None and row.sites and site not in row.sites:
            return f"the factory {factory} may not serve the site {site}"
        if silent := self.silence(factory):
            return silent
        ad = self.entries.get((factory, entry))
        if ad is None or is_old(ad.seen_at, self.now):
            return f"the factory {factory} does not advertise the entry {entry}"
        if not ad.is_open:
            return f"the factory {factory} says of the entry {entry}: {ad.reason}"
        return ""


def _error_of(factory: RemoteFactory) -> str:
    """Why the last call of a factory failed, to be added to what is said of its silence."""
    return f"; the last call of it failed: {factory.error}" if factory.error else ""


def is_stale(factory: RemoteFactory, now: datetime) -> bool:
    """Whether a factory has not been heard for so long that what it told may be wrong by now."""
    return factory.seen_at is None or is_old(factory.seen_at, now)


def is_old(told_at: datetime, now: datetime) -> bool:
    """Whether what was told then may be wrong by now."""
    return now - told_at > timedelta(seconds=conf().factory_stale_s)


def standings(names: Collection[str], now: datetime) -> Standings:
    """Factories of these names with their entries. Two queries, or none without a name."""
    if not names:
        return Standings({}, {}, now)
    factories = {row.name: row for row in RemoteFactory.objects.filter(name__in=names)}
    ads = FactoryEntry.objects.select_related("factory").filter(factory__name__in=names)
    return Standings(factories, {(ad.factory.name, ad.name): ad for ad in ads}, now)
