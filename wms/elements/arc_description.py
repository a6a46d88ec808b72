"""Description of a batch of pilots in ADL, the language of ARC CEs.

Also the pattern that finds the name of a pilot in its description.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.sax.saxutils import escape

SCRIPT = "pilot.sh"
LOG = "pilot.log"
#: Finds the name of an activity in its description, as we write it.
ACTIVITY_NAME = re.compile(r"<ActivityIdentification><Name>([^<]*)</Name>")

_BATCH = '<?xml version="1.0" encoding="UTF-8"?><ActivityDescriptions>{}</ActivityDescriptions>'
_ACTIVITY = """
<ActivityDescription xmlns="http://www.eu-emi.eu/es/2010/12/adl">
<ActivityIdentification><Name>{name}</Name></ActivityIdentification>
<Application>
<Executable><Path>/bin/sh</Path><Argument>{script}</Argument></Executable>
<Output>{log}</Output><Error>{log}</Error>
{environment}
</Application>
<Resources>
<SlotRequirement>
<NumberOfSlots>{cores}</NumberOfSlots><SlotsPerHost>{cores}</SlotsPerHost>
</SlotRequirement>
<IndividualPhysicalMemory>{memory_bytes}</IndividualPhysicalMemory>
<WallTime>{wall_s}</WallTime>
{queue}
</Resources>
<DataStaging>
<InputFile><Name>{script}</Name></InputFile>
<OutputFile><Name>{log}</Name></OutputFile>
</DataStaging>
</ActivityDescription>
"""


def batch_description(name: str, count: int, slot: Mapping[str, int], queue: str) -> str:
    """Return the description of the pilots `NAME.0`, `NAME.1`, ..."""
    pilots = (_activity(f"{name}.{index}", slot, queue) for index in range(count))
    return _BATCH.format("".join(pilots))


def _activity(name: str, slot: Mapping[str, int], queue: str) -> str:
    index = name.rpartition(".")[2]
    told = {"INDEX": index, "SCRIPT": SCRIPT, **slot}
    variables = (
        f"<Environment><Name>PILOTAGE_{key}</Name><Value>{value}</Value></Environment>"
        for key, value in told.items()
    )
    return _ACTIVITY.format(
        name=name,
        script=SCRIPT,
        log=LOG,
        environment="".join(variables),
        cores=slot["CORES"],
        # The CE counts memory by slot.
        memory_bytes=slot["MEMORY_MB"] * 1024 * 1024 // slot["CORES"],
        wall_s=slot["MINUTES"] * 60,
        queue=f"<QueueName>{escape(queue)}</QueueName>" if queue else "",
    )
