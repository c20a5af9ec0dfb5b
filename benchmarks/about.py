"""What every report of a benchmark says about its origin: commit, date and machine."""

from __future__ import annotations

import datetime as dt
import os
import platform
import subprocess
from pathlib import Path
from typing import Any


def origin() -> dict[str, Any]:
    """The commit that is measured ("-dirty" with changes that are not in it), the day, and the machine."""
    command = ("git", "describe", "--always", "--dirty", "--exclude=*")
    here = Path(__file__).parent
    return {
        "commit": subprocess.check_output(command, cwd=here, text=True).strip(),
        "date": dt.datetime.now(dt.timezone.utc).date().isoformat(),
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
    missing = [name for name in ("commit", "date", "processor", "cores") if not report.get(name)]
    if missing:
        raise ValueError(f"the report does not say {', '.join(missing)}: measure again")
    where = report.get("measured_on") or f"{report['cores']} cores ({report['processor']})"
    return f"{where}; commit {report['commit']}, {report['date']}."
