from django.db import migrations, models
from django.db.models.functions import Now

from wms.failures.migrations import _first_rules, _to_re2


def to_re2(apps, schema_editor):
    rules = apps.get_model("failures", "FailureRule")
    changed = []
    for rule in rules.objects.all():
        known = _first_rules.NEW.get(rule.pattern)
        found = _to_re2.Rewritten(known, "") if known else _to_re2.rewritten(rule.pattern)
        if found != (rule.pattern, ""):
            rule.pattern, rule.fault = found
            rule.is_enabled = rule.is_enabled and not found.fault
            changed.append(rule)
    rules.objects.bulk_update(changed, ["pattern", "fault", "is_enabled"])
    if changed:
        _regroup(apps)


def to_python(apps, schema_editor):
    rules = apps.get_model("failures", "FailureRule")
    old = {new: former for former, new in _first_rules.NEW.items()}
    changed = []
    for rule in rules.objects.filter(pattern__in=list(old)):
        rule.pattern = old[rule.pattern]
        changed.append(rule)
    rules.objects.bulk_update(changed, ["pattern"])
    if changed:
        _regroup(apps)


def _regroup(apps):
    apps.get_model("failures", "RuleBook").objects.update(
        version=models.F("version") + 1,
        changed_at=Now(),
        to_regroup=apps.get_model("failures", "Failure").objects.count(),
        regrouped=0,
        finished_at=None,
    )


class Migration(migrations.Migration):
    dependencies = [("failures", "0001_groups_and_rules")]

    operations = [
        migrations.AddField(
            model_name="failurerule",
            name="fault",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Why it was switched off when rules came to be read by RE2.",
                max_length=250,
            ),
        ),
        migrations.AlterField(
            model_name="failurerule",
            name="pattern",
            field=models.CharField(
                help_text="A regular expression of RE2; {owner}, {site} and {host} stand for the names of what failed. A group (?P<it>...) is what is replaced.",
                max_length=400,
            ),
        ),
        migrations.RunPython(to_re2, to_python),
    ]
