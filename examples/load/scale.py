"""Scale of the example: how many jobs, DAGs, pilots, sites and days, in proportion; its faults."""

from __future__ import annotations

from dataclasses import dataclass

_DAY_S = 86_400.0
#: So many pilots begin at a site in a day, at least: there is always one that runs.
_PILOTS_A_DAY = 8


@dataclass(frozen=True)
class Scale:
    """Numbers of things. `large` is how many nodes the largest DAG has."""

    jobs: int = 1_000_000
    dags: int = 2_000
    large: int = 200_000
    pilots: int = 50_000
    sites: int = 200
    days: int = 30
    seed: int = 1

    @classmethod
    def of_jobs(cls, jobs: int, *, seed: int = 1) -> Scale:
        """So many jobs, and of all else in proportion."""
        part = jobs / cls.jobs
        sites = min(cls.sites, max(6, round(cls.sites * part**0.5)))
        pilots = max(3 * _PILOTS_A_DAY * sites, round(cls.pilots * part))
        return cls(
            jobs=jobs,
            dags=max(20, round(cls.dags * part)),
            large=max(100, round(cls.large * part)),
            pilots=pilots,
            sites=sites,
            days=min(cls.days, pilots // (_PILOTS_A_DAY * sites)),
            seed=seed,
        )

    @property
    def seconds(self) -> float:
        """How far back it all began."""
        return self.days * _DAY_S

    def faults(self) -> list[str]:
        """Why there is no such production."""
        found = []
        if min(self.dags, self.pilots, self.sites, self.large) < 1 or self.dags < 2:
            found.append("there is at least one of everything, and two DAGs")
        if self.pilots < _PILOTS_A_DAY * self.sites * self.days:
            found.append(f"each site has at least {_PILOTS_A_DAY} pilots a day")
        if self.jobs < self.large + self.dags:
            found.append("there are at least as many jobs as nodes of the largest DAG, and DAGs")
        return found
