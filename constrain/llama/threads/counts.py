"""The number of threads to compute with, if the caller gives none: one for each physical core that may be used.

Two threads on one core share its arithmetic units, and llama.cpp's threads wait for the slowest, so more threads than
physical cores make an evaluation slower. In a container, the limit on CPU time counts too: a process that has used up
its share stands still until the next period.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from constrain.system import usable_processors

if TYPE_CHECKING:
    from collections.abc import Callable

_CPU_MAX = "cpu.max"
"""File of a control group, version 2: quota and period in microseconds, or ``max`` and the period."""

_QUOTA, _PERIOD = "cpu.cfs_quota_us", "cpu.cfs_period_us"
"""Files of a control group, version 1; a quota of -1 is none."""


def default_threads() -> int:
    """The number of physical cores that this process may use, 1 or more, as far as the system tells it."""
    cores = _usable_cores() if sys.platform == "linux" else _all_cores()
    quota = cpu_quota() if sys.platform == "linux" else None
    return max(1, cores if quota is None else min(cores, round(quota)))


def _usable_cores(system: Path = Path("/sys/devices/system/cpu")) -> int:
    """Physical cores among the processors that this process may run on."""
    processors = usable_processors()
    found = set()
    for number in processors:
        topology = system / f"cpu{number}" / "topology"
        try:
            siblings = (topology / "thread_siblings_list").read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):  # the system does not tell
            return len(processors)
        found.add(siblings)
    return len(found)


def _all_cores() -> int:
    """Physical cores of a machine without Linux: on Apple's, the fast ones; elsewhere half of the processors."""
    if sys.platform == "darwin":
        for name in ("hw.perflevel0.physicalcpu", "hw.physicalcpu"):
            command = ["/usr/sbin/sysctl", "-n", name]
            asked = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no input
            if asked.returncode == 0 and asked.stdout.strip().isdigit():
                return int(asked.stdout)
    return (os.cpu_count() or 2) // 2


def cpu_quota(groups: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> float | None:
    """The CPU seconds per second that control groups allow this process; ``None`` for no limit."""
    try:
        lines = groups.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    found: list[float] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found += _quotas(mount, path, _unified_quota)
        elif "cpu" in controllers.split(","):
            found += _quotas(mount / controllers, path, _legacy_quota) or _quotas(mount / "cpu", path, _legacy_quota)
    return min(found, default=None)


def _quotas(mount: Path, path: str, read: Callable[[Path], float | None]) -> list[float]:
    """The limits of a control group and of those around it; in a container, the group is the mount itself."""
    inner = mount / path.lstrip("/")
    folders = [inner, *(each for each in inner.parents if each.is_relative_to(mount))]
    return [quota for folder in folders if (quota := read(folder)) is not None]


def _unified_quota(folder: Path) -> float | None:
    try:
        quota, period = (folder / _CPU_MAX).read_text("ascii").split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _legacy_quota(folder: Path) -> float | None:
    try:
        quota, period = (int((folder / name).read_text("ascii")) for name in (_QUOTA, _PERIOD))
        return None if quota < 0 else quota / period
    except (OSError, ValueError, ZeroDivisionError):
        return None
