"""Code that decides by the words of a reason is found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.ci_programs import load

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / ".ci" / "check_reasons.py"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    return load("check_reasons")


@pytest.mark.process
def test_no_code_here_decides_by_the_words_of_a_reason() -> None:
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "code",
    [
        'job.state_reason == "lost"',
        'reason.strip().lower() != "lost"',
        '"lost" in job.reason',
        'why in ("lost", "gone")',
        "job.reason < other.reason",
        'row["reason"] == "lost"',
        'row.get("reason", "")[:4] == "lost"',
        'getattr(job, "state_reason") == "lost"',
        '(found.reason or "") == "lost"',
        'reason.startswith("the pilot ")',
        'job.state_reason.removeprefix("the ")',
        'dag.reason.split(":")',
        "reason[4:]",
        "reason[0]",
        're.match("the .*", job.reason)',
        "_PATTERN.search(reason)",
        "_MEANINGS[reason]",
        "_MEANINGS.get(job.reason)",
        'Job.objects.filter(state_reason__startswith="the DAG is held")',
        'Job.objects.exclude(reason="lost")',
        'Q(job__state_reason="lost")',
        "Q(dag__reason__in=known)",
        'Job.objects.filter(**{"state_reason__icontains": text})',
        'Job.objects.filter(**{f"{name}state_reason__icontains": text})',
        'Job.objects.order_by("-state_reason")',
        'Job.objects.order_by(F("reason").desc())',
        'Job.objects.values("state_reason").annotate(Count("pk"))',
        "sorted(jobs, key=lambda job: job.reason)",
        "sorted(job.reason for job in jobs)",
        'jobs.sort(key=attrgetter("reason"))',
        'Texts(field_name="state_reason")',
        'GroupBy("reason", "Reason", F("state_reason"))',
        'ordering = ["reason"]',
        'SQL = "SELECT id FROM jobs_job WHERE state_reason LIKE %s"',
        "SQL = \"SELECT CASE WHEN reason = 'lost' THEN 1 END\"",
        'SQL = "SELECT id FROM jobs_job ORDER BY job.reason"',
        'SQL = "SELECT id FROM jobs_job WHERE starts_with(reason, %s)"',
        'match reason:\n    case "lost":\n        pass',
        'def f(job):\n    text = job.reason.strip()\n    return text == "lost"',
        'def f(job):\n    if (said := job.reason) and said.endswith("lost"):\n        pass',
    ],
)
def test_what_decides_by_words_is_found(check: ModuleType, code: str) -> None:
    assert len(check.faults_of(code, "x.py")) == 1


@pytest.mark.parametrize(
    "code",
    [
        "if job.reason:\n    pass",
        'job.reason == ""',
        "reason is None",
        "if step.needs_reason and not reason.strip():\n    pass",
        "len(reason) > MOST",
        "reason[:1000]",
        'f"{reason}; all attempts are used up"',
        'reason.replace("\\0", "")',
        "by_reason[reason].append(job)",
        "hold_jobs(ids, reason=reason)",
        'Job.objects.filter(pk=1).update(state_reason="lost")',
        'Q(state_reason="")',
        'Job.objects.exclude(reason="")',
        'Job.objects.values_list("state_reason")',
        "job.state_cause == JobCause.PERSON",
        'answer["kind"] == "reason"',
        'body.text("reason", pattern=".+")',
        "needs_reason == True",
        "SQL = \"SELECT id FROM jobs_job WHERE state_reason <> ''\"",
        'SQL = "UPDATE jobs_job SET state_reason = %s WHERE id = %s"',
        '"""The reason is told like this, and in no order."""',
        'def f(job):\n    text = job.name\n    return text == "lost"',
    ],
)
def test_what_decides_by_something_else_is_none_of_its_business(
    check: ModuleType, code: str
) -> None:
    assert check.faults_of(code, "x.py") == []


@pytest.mark.parametrize(
    ("text", "is_fault"),
    [
        ('{% if job.state_reason == "lost" %}', True),
        ('{% elif "lost" in job.state_reason %}', True),
        ("{% regroup jobs by state_reason as groups %}", True),
        ("{% if job.state_reason %}{{ job.state_reason|truncatechars:160 }}{% endif %}", False),
        ('{% if "reason" in listing.shown %}', False),
        ("{% for reason in reasons %}", False),
    ],
)
def test_templates_are_looked_at_too(check: ModuleType, text: str, is_fault: bool) -> None:
    assert bool(check.faults_of_template(text, "x.html")) is is_fault


def test_a_fault_tells_where_it_is(check: ModuleType) -> None:
    code = 'class A:\n    def f(self, reason):\n        return reason == "lost"\n'

    [fault] = check.faults_of(code, "wms/x.py")

    assert (fault.path, fault.scope, fault.line) == ("wms/x.py", "A.f", 3)


def test_a_named_place_is_exempt_and_one_that_is_not_needed_is_told(check: ModuleType) -> None:
    faults = check.faults_of('def f(reason):\n    return reason == "lost"\n', "x.py")

    left, unused = check.exempt(faults, {"x.py:f": "why", "x.py:g": "why"})

    assert (left, unused) == ([], ["x.py:g"])
