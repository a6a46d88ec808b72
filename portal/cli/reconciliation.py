"""Text of the account after a return of the database: what goes on, what may be done twice."""

from __future__ import annotations

from collections.abc import Iterator

from wms.recovery.account import Account, Doubts, Some

_NAMED = 10


def lines_of(account: Account) -> Iterator[str]:
    """Lines for people; counts with the ids of the first."""
    if account.restoration is None or account.doubts is None:
        yield "The database has never gone back to an earlier state."
    else:
        row = account.restoration
        yield (
            f"The database went back to {row.back_to:%Y-%m-%d %H:%M:%S} UTC, at "
            f"{row.restored_at:%Y-%m-%d %H:%M:%S} UTC ({row.origin})."
        )
        yield from _of_doubts(account.doubts)
    yield from _of_losses(account)


def _of_doubts(doubts: Doubts) -> Iterator[str]:
    for some, text in (
        (doubts.in_hand, "jobs have pilots that were heard since: they go on, or run again when "
            "these end"),
        (doubts.silent, "jobs have pilots that were not heard since: they run again, though some "
         "may have been done, when these are given up"),
        (doubts.again, "jobs lost their attempts since and run again: they may have been done"),
        (doubts.waiting, "jobs still wait that waited then: they may have been done meanwhile by "
         "pilots that are not known here"),
        (doubts.draining_pilots, "pilots of before end what they run and take no more jobs"),
        (doubts.pending_pilots, "pilots of before had not called in: those that did meanwhile are "
         "refused, and end"),
        (doubts.dags, "DAGs go on from where they were"),
        (doubts.clusters, "clusters go on from where they were"),
        (doubts.placements, "placement requests go on from where they were"),
        (doubts.schedules, "schedules had times meanwhile: DAGs may have been submitted for them"),
    ):  # fmt: skip
        if some.count:
            yield f"{some.count} {text}: {_ids(some)}"


def _of_losses(account: Account) -> Iterator[str]:
    lost = account.contents
    if lost.count:
        named = ", ".join(f"{count} of {name}" for name, count in sorted(lost.named_by.items()))
        yield f"{lost.count} contents are lost, named by rows: {named}"
        yield f"  {', '.join(lost.sha256s[:_NAMED])}"
    for ids, text in (
        (lost.held_dags, "DAGs were held for them"),
        (lost.held_clusters, "clusters were held for them"),
        (lost.held_jobs, "jobs were held for them"),
    ):
        if ids:
            yield f"{len(ids)} {text}: {_ids(Some(len(ids), tuple(ids)))}"
    if account.streams.count:
        yield f"{account.streams.count} attempts lost output: {_ids(account.streams)}"
    if account.uploads.count:
        yield f"{account.uploads.count} uploads lost bytes: {_ids(account.uploads)}"


def _ids(some: Some) -> str:
    more = ", ..." if some.count > _NAMED else ""
    return ", ".join(map(str, some.ids[:_NAMED])) + more
