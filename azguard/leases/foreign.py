"""What others wrote on a lock or a lease, made safe to show."""

import re

#: The marks by which a CI runner knows a command in what a job prints: ``##vso[…]`` of Azure Pipelines and ``##[…]``
#: anywhere in a line, ``::…::`` of GitHub Actions where it begins, after a carriage return too.
RUNNER_COMMAND = re.compile(r"##(?=\[|vso\[)|(?:^|\r)\s*::", re.IGNORECASE | re.MULTILINE)


def escape(value: object) -> str:
    """Return text that drives neither a terminal nor a CI runner: others wrote it.

    Control characters are spelled out. What a runner takes for a command of the job, in any line that is printed,
    gets a blank in it.
    """
    text = "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(value))
    return RUNNER_COMMAND.sub(lambda found: found[0].strip().replace("##", "# #").replace("::", ": :"), text)
