"""Commands and their options. What they do is loaded when they run."""

from __future__ import annotations

from argparse import ArgumentParser, HelpFormatter, _SubParsersAction
from typing import Any

from .. import __version__
from .targets import HELP as TARGETS

_SHELLS = ("bash", "zsh", "tcsh")


class _Commands:
    """Commands of a parser, each with the options that all have."""

    def __init__(self, subparsers: _SubParsersAction[ArgumentParser]) -> None:
        self._subparsers = subparsers

    def add(
        self,
        name: str,
        run: str,
        text: str,
        *,
        needs_client: bool = True,
        has_verdict: bool = False,
    ) -> ArgumentParser:
        """Command that calls `module:function`."""
        command = self._subparsers.add_parser(
            name, help=text, description=text, formatter_class=_Formatter, allow_abbrev=False
        )
        command.set_defaults(run=run, needs_client=needs_client, has_verdict=has_verdict)
        whom = command.add_argument_group("which portal")
        whom.add_argument("--profile", metavar="NAME", help="profile of the configuration file")
        whom.add_argument("--url", help="address of the portal")
        whom.add_argument("--token-file", metavar="FILE", help="file with the token")
        whom.add_argument("--ca-file", metavar="FILE", help="certificates of authorities (PEM)")
        command.add_argument("--json", action="store_true", help="print JSON")
        return command


class _Formatter(HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)


def parser() -> ArgumentParser:
    """Parser of the command line."""
    found = ArgumentParser(
        prog="pilotage",
        description="Submit DAGs and jobs to a Pilotage portal, follow and steer them.",
        allow_abbrev=False,
    )
    found.add_argument("--version", action="version", version=f"pilotage-client {__version__}")
    commands = _Commands(found.add_subparsers(metavar="COMMAND", required=True, dest="command"))
    _add_account(commands)
    _add_submission(commands)
    _add_lists(commands)
    _add_reading(commands)
    _add_steering(commands)
    _add_repairs(commands)
    _add_remarks(commands)
    return found


def _add_account(commands: _Commands) -> None:
    login = commands.add(
        "login", "account:login", "check a token and keep it in a profile", needs_client=False
    )
    login.add_argument("portal", nargs="?", metavar="URL", help="address of the portal")
    login.add_argument(
        "--device", action="store_true", help="log in by a provider, in a browser anywhere"
    )
    login.add_argument(
        "--provider", default="", metavar="NAME", help="by which, where the portal has several"
    )
    commands.add("logout", "account:logout", "forget the token of a profile", needs_client=False)
    commands.add("token", "account:token", "tell whose token is used, and whether it is taken")
    completion = commands.add(
        "completion", "account:completion", "print completion for a shell", needs_client=False
    )
    completion.add_argument("shell", choices=_SHELLS)


def _add_submission(commands: _Commands) -> None:
    submit = commands.add(
        "submit",
        "submission:submit",
        "submit DAG files, or a submit file, or behind -- a program with its arguments",
    )
    _add_files(submit)
    submit.add_argument("--queue", metavar="TEXT", help="of a program: 10, or `x from table.csv`")
    submit.add_argument("--name", help="name of the cluster")
    submit.add_argument("--group", help="accounting group of the cluster")
    submit.add_argument("--label", action="append", default=[], help="word to find it by")
    submit.add_argument("--priority", type=int, help="from 0 to 10")
    submit.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="as max_jobs=100"
    )
    submit.add_argument("--binding", choices=("site", "job"), help="what is bound to a site")
    submit.add_argument("--resume", metavar="RESCUE", help="newest, or the number of a rescue")
    submit.add_argument("--afresh", action="store_true", help="rescues that lie there do not count")
    submit.add_argument("--save-point", metavar="NAME", help="begin from a save point")
    submit.add_argument("--key", default="", help="key of an earlier call: it is submitted once")
    submit.add_argument("--wait", action="store_true", help="wait for the end")
    check = commands.add(
        "check", "submission:check", "tell what a submission would say", has_verdict=True
    )
    _add_files(check)
    check.add_argument("--queue", metavar="TEXT", help="of a program: 10, or `x from table.csv`")
    check.add_argument("--allow-missing", action="store_true", help="missing files are warnings")
    check.add_argument("--dagman", action="store_true", help="what DAGMan does not know is a fault")
    simulate = commands.add(
        "simulate", "submission:simulate", "try a DAG at the portal; nothing runs", has_verdict=True
    )
    _add_files(simulate)
    simulate.add_argument("--behaviour", metavar="FILE", help="how nodes end (JSON)")
    follow = commands.add(
        "follow", "following:follow", "have the portal follow a DAG of HTCondor's DAGMan"
    )
    follow.add_argument("dag_file", metavar="DAG_FILE")
    follow.add_argument("log", metavar="LOG", help="the job event log (*.nodes.log)")
    follow.add_argument("--and", action="append", default=[], dest="more", metavar="DAG_FILE")
    _add_place(follow)
    follow.add_argument("--rescue", type=int, metavar="N", help="the rescue that it began from")
    follow.add_argument("--dag", type=int, metavar="ID", help="a DAG that is followed already")
    follow.add_argument("--once", action="store_true", help="send what there is, and end")
    follow.add_argument("--every", type=float, default=2.0, metavar="SECONDS")
    follow.add_argument("--time-zone", default="", help="of times that tell none; by default UTC")
    follow.add_argument("--allow-events", type=int, help="as DAGMAN_ALLOW_EVENTS")
    follow.add_argument("--state", metavar="FILE", help="what is kept; default LOG.pilotage.json")


def _add_files(command: ArgumentParser) -> None:
    command.add_argument("files", nargs="*", metavar="FILE", help="DAG files, or one submit file")
    command.add_argument(
        "--file", action="append", default=[], metavar="PATH", help="a further file or folder"
    )
    command.add_argument("--description", metavar="FILE", help="submit file for the DAG as a whole")
    command.add_argument(
        "--as", dest="kind", choices=("dag", "jobs"), help="what FILE is, if its text does not tell"
    )
    _add_place(command)


def _add_place(command: ArgumentParser) -> None:
    command.add_argument("--directory", metavar="DIR", help="where names are looked up")
    command.add_argument("--root", metavar="DIR", help="the folder that is sent")
    command.add_argument("--usedagdir", action="store_true", help="names in the DAG file's folder")


def _add_lists(commands: _Commands) -> None:
    q = commands.add("q", "lists:q", "list DAGs and clusters that have not ended")
    q.add_argument("targets", nargs="*", metavar="OBJECT", help=TARGETS)
    q.add_argument("--jobs", action="store_true", help="their jobs instead")
    _add_owner(q)
    _add_list(q)
    history = commands.add("history", "lists:history", "list DAGs and clusters that have ended")
    history.add_argument("--since", metavar="TIME", help="7d, 2026-11-20, or A..B")
    _add_owner(history)
    _add_list(history, limit=20)
    sites = commands.add("sites", "lists:sites", "list sites, and why they take no DAGs")
    _add_list(sites)
    pilots = commands.add("pilots", "lists:pilots", "list pilots that have not ended")
    pilots.add_argument("--all", action="store_true", help="those that have ended, too")
    pilots.add_argument("--site", help="of one site")
    _add_list(pilots)


def _add_owner(command: ArgumentParser) -> None:
    whose = command.add_mutually_exclusive_group()
    whose.add_argument("--owner", help="of somebody else")
    whose.add_argument("--all-owners", action="store_true", help="of all whom one may see")


def _add_list(command: ArgumentParser, limit: int = 0) -> None:
    command.add_argument("--constraint", metavar="EXPR", help="as 'state == \"held\"'")
    command.add_argument(
        "--filter", action="append", default=[], metavar="NAME=VALUE", help="filter of the API"
    )
    command.add_argument("--limit", type=int, default=limit, help="at most so many")
    columns = command.add_mutually_exclusive_group()
    columns.add_argument(
        "-af", "--autoformat", nargs="+", metavar="FIELD", help="these fields, as nodes.done"
    )
    columns.add_argument(
        "-af:h", dest="autoformat_head", nargs="+", metavar="FIELD", help="with their names"
    )


def _add_reading(commands: _Commands) -> None:
    watch = commands.add("watch", "watching:watch", "show progress until all have ended")
    watch.add_argument("targets", nargs="*", metavar="OBJECT", help="default: all of one's own")
    watch.add_argument(
        "--exit", action="append", default=[], metavar="STATE,WHICH[,CODE]",
        help="end when all, any or none is so: `failed,any,3`",
    )  # fmt: skip
    watch.add_argument("--timeout", type=float, metavar="SECONDS", help="end after so long")
    why = commands.add("why", "explaining:why", "tell why something does not run, or failed")
    why.add_argument("target", metavar="OBJECT", help=f"{TARGETS}; q5: a TaskQueue; s:NAME: a site")
    why.add_argument(
        "--if", action="append", default=[], dest="changes", metavar="NAME=EXPR",
        help="what if the DAG's attribute, or the job's need, were so",
    )  # fmt: skip
    tail = commands.add("tail", "contents:tail", "print the end of a job's output, or follow it")
    tail.add_argument("target", metavar="OBJECT", help="j42, d7/NODE, or the uuid of a pilot")
    tail.add_argument("-f", "--follow", action="store_true", help="go on until it has ended")
    tail.add_argument("-c", "--bytes", type=int, default=65536, help="so much of the end")
    tail.add_argument("--stderr", action="store_true", help="the error stream")
    tail.add_argument("--attempt", type=int, metavar="N", help="of this attempt")
    fetch = commands.add("fetch", "contents:fetch", "fetch outputs of a DAG, cluster or job")
    fetch.add_argument("target", metavar="OBJECT", help=TARGETS)
    fetch.add_argument("--to", default=".", metavar="DIR", help="into this folder")
    fetch.add_argument("--only", action="append", default=[], metavar="PATTERN", help="as *.json")
    fetch.add_argument("--all", action="store_true", help="of a DAG: what was submitted, too")


def _add_steering(commands: _Commands) -> None:
    for name, text, needs_reason in (
        ("hold", "let what runs finish, and start nothing more", True),
        ("release", "let what is held or halted go on", False),
        ("halt", "let a DAG end what is submitted, then end it with a rescue", True),
        ("rm", "end DAGs, clusters, jobs or pilots", True),
    ):
        command = commands.add(name, f"steering:{name}", text)
        _add_targets(command, needs_reason=needs_reason)
    rematch = commands.add("rematch", "steering:rematch", "take a DAG from its site")
    _add_targets(rematch)
    rematch.add_argument("--lets-finish", action="store_true", help="what runs may finish there")
    rematch.add_argument("--avoid", type=int, metavar="SECONDS", help="so long it does not return")
    bulk = commands.add("bulk", "steering:bulk", "act on many objects: preview, then --confirm N")
    bulk.add_argument("list", choices=("dags", "jobs", "pilots", "sites", "placements"))
    bulk.add_argument("action", help="as hold, release, remove, kill, drain")
    bulk.add_argument("filter", help="as 'owner=alice&state=idle,running', or id=1,2,3")
    bulk.add_argument("--reason", required=True, help="stands in the audit trail")
    bulk.add_argument("--confirm", type=int, metavar="N", help="do it, if it is about N objects")
    bulk.add_argument("--with", action="append", default=[], dest="arguments", metavar="NAME=VALUE")


def _add_repairs(commands: _Commands) -> None:
    rescue = commands.add(
        "rescue", "repairs:rescue", "run a DAG that has ended again, as a new one"
    )
    rescue.add_argument("target", metavar="DAG")
    rescue.add_argument("--reason", required=True, help="stands in the audit trail")
    rescue.add_argument("--resume", metavar="RESCUE", help="newest, afresh, or a number")
    rescue.add_argument("--save-point", metavar="NAME", help="begin from a save point")
    rescue.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    rescue.add_argument("--key", default="", help="key of an earlier call: it is made once")
    rerun = commands.add("rerun", "repairs:rerun", "run failed nodes, or jobs of a cluster, again")
    rerun.add_argument("target", metavar="OBJECT", help="a DAG or a cluster")
    rerun.add_argument("nodes", nargs="*", metavar="NODE", help="default: all that failed")
    rerun.add_argument("--reason", required=True, help="stands in the audit trail")
    rerun.add_argument("--alone", action="store_true", help="without the nodes' descendants")
    rerun.add_argument("--with-killed", action="store_true", help="jobs that were killed, too")
    _add_needs(rerun)
    rerun.add_argument("--key", default="", help="key of an earlier call: it is made once")
    edit = commands.add("edit", "repairs:edit", "change a DAG, a cluster, or a node that waits")
    edit.add_argument("target", metavar="OBJECT", help="a DAG, a cluster, or d7/NODE")
    edit.add_argument("--reason", required=True, help="stands in the audit trail")
    edit.add_argument("--priority", type=int)
    edit.add_argument("--add-label", action="append", default=[], metavar="LABEL")
    edit.add_argument("--remove-label", action="append", default=[], metavar="LABEL")
    edit.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="of a DAG: max_jobs=100"
    )
    _add_needs(edit)
    edit.add_argument("--max-idle", type=int, metavar="N", help="of a cluster")
    edit.add_argument("--max-materialize", type=int, metavar="N", help="of a cluster")
    edit.add_argument("--var", action="append", default=[], metavar="NAME=VALUE", help="of a node")
    edit.add_argument("--retries", type=int, metavar="N", help="of a node")


def _add_remarks(commands: _Commands) -> None:
    note = commands.add("note", "remarks:note", "write a note, or into the shift log")
    note.add_argument(
        "subject", metavar="SUBJECT", help="d7: a DAG; s:NAME: a site; f3: a failure group; or log"
    )
    note.add_argument("text", metavar="TEXT")
    note.add_argument("--ticket", default="", metavar="URL", help="address of a ticket")
    note.add_argument("--key", default="", help="key of an earlier call: it is written once")
    log = commands.add("log", "remarks:log", "list entries of the shift log, the latest first")
    log.add_argument(
        "--since", default="24h", metavar="TIME", help="8h, 2026-11-20, or A..B; by default 24h"
    )
    _add_list(log)


def _add_needs(command: ArgumentParser) -> None:
    command.add_argument("--memory-mb", type=int, metavar="MB", help="of a cluster's jobs")
    command.add_argument("--site", action="append", metavar="NAME", help="where alone they may run")
    command.add_argument("--banned-site", action="append", metavar="NAME", help="where not")


def _add_targets(command: ArgumentParser, *, needs_reason: bool = True) -> None:
    command.add_argument("targets", nargs="+", metavar="OBJECT", help=TARGETS)
    named: dict[str, Any] = {"required": True} if needs_reason else {"default": ""}
    command.add_argument("--reason", help="stands in the audit trail", **named)
