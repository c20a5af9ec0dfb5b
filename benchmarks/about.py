"""What every report of a benchmark says about its origin: commit, date and machine."""

from __future__ import annotations

import datetime as dt
import os
import platform
import subprocess
from pathlib import Path
from typing import Any


def origin(elsewhere: str | None = None) -> dict[str, Any]:
    """The commit that is measured ("-dirty" with changes that are not in it), the day, and the machine.

    ``elsewhere``: in words, the machine that was measured, if it is not this one.
    """
    command = ("git", "describe", "--always", "--dirty", "--exclude=*")
    here = Path(__file__).parent
    commit = subprocess.check_output(command, cwd=here, text=True).strip()
    said = {"commit": commit, "date": dt.datetime.now(dt.timezone.utc).date().isoformat()}
    if elsewhere:
        return {**said, "measured_on": elsewhere}
    return {
        **said,
        "machine": platform.platform(),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
    }


def processor() -> str:
    """The name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor()


def told(report: dict[str, Any]) -> str:
    """The origin of a report, as a table says it."""
    needed = ("commit", "date") if report.get("measured_on") else ("commit", "date", "processor", "cores")
    missing = [name for name in needed if not report.get(name)]
    if missing:
        raise ValueError(f"the report does not say {', '.join(missing)}: measure again")
    return f"{machine_of(report)}; commit {report['commit']}, {report['date']}."


def machine_of(report: dict[str, Any]) -> str:
    """The machine of a report, in words."""
    return report.get("measured_on") or f"{report['cores']} cores ({report['processor']})"
