"""By default, there is a thread for each physical core that the process may use, within the limits of its container."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import constrain
from constrain.llama.threads import counts
from constrain.llama.threads.counts import cpu_quota, default_threads

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells of cores and control groups")


def machine(folder: Path, siblings: list[str]) -> Path:
    """Files as Linux has them for processors, each with the list of those on its core."""
    for number, listed in enumerate(siblings):
        topology = folder / f"cpu{number}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(listed + "\n")
    return folder


@linux_only
@pytest.mark.parametrize(
    ("siblings", "usable", "cores"),
    [
        (["0", "1"], {0, 1}, 2),
        (["0,2", "1,3", "0,2", "1,3"], {0, 1, 2, 3}, 2),
        (["0-1", "0-1", "2-3", "2-3"], {0, 1, 2}, 2),
        (["0-1", "0-1", "2-3", "2-3"], {0, 1}, 1),
        (["0-1", "0-1", "2", "3"], {0, 1, 2, 3}, 3),
    ],
)
def test_processors_on_one_core_count_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, siblings: list[str], usable: set[int], cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: usable)
    assert counts._usable_cores(machine(tmp_path, siblings)) == cores


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_the_limit_of_a_group_and_of_those_around_it_count(tmp_path: Path) -> None:
    groups, mount = tmp_path / "cgroup", tmp_path / "mount"
    groups.write_text("0::/pod/container\n")
    group(mount / "pod" / "container", cpu__max="max 100000\n")
    assert cpu_quota(groups, mount) is None
    group(mount / "pod", cpu__max="250000 100000\n")
    assert cpu_quota(groups, mount) == 2.5
    group(mount / "pod" / "container", cpu__max="150000 100000\n")
    assert cpu_quota(groups, mount) == 1.5
    groups.write_text("0::/a/path/of/the/host\n")  # in a container, the group is the mount
    group(mount, cpu__max="400000 100000\n")
    assert cpu_quota(groups, mount) == 4


@pytest.mark.parametrize("folder", ["cpu,cpuacct", "cpu"])
def test_groups_of_version_1_count(tmp_path: Path, folder: str) -> None:
    (tmp_path / "cgroup").write_text("8:memory:/x\n3:cpu,cpuacct:/x\n0::/\n")
    group(tmp_path / "mount" / folder / "x", cpu__cfs_quota_us="50000\n", cpu__cfs_period_us="100000\n")
    assert cpu_quota(tmp_path / "cgroup", tmp_path / "mount") == 0.5
    group(tmp_path / "mount" / folder / "x", cpu__cfs_quota_us="-1\n")
    assert cpu_quota(tmp_path / "cgroup", tmp_path / "mount") is None


@pytest.mark.parametrize("text", ["", "max", "100000 0", "nonsense here"])
def test_a_limit_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "cgroup").write_text("0::/\n")
    group(tmp_path / "mount", cpu__max=text)
    assert cpu_quota(tmp_path / "cgroup", tmp_path / "mount") is None
    assert cpu_quota(tmp_path / "nowhere", tmp_path / "mount") is None


@linux_only
@pytest.mark.parametrize(("quota", "threads"), [(None, 8), (2.4, 2), (2.6, 3), (0.3, 1), (64.0, 8)])
def test_a_limit_makes_the_threads_fewer(monkeypatch: pytest.MonkeyPatch, quota: float | None, threads: int) -> None:
    monkeypatch.setattr(counts, "_usable_cores", lambda: 8)
    monkeypatch.setattr(counts, "cpu_quota", lambda: quota)
    assert default_threads() == threads


def test_a_model_takes_the_default(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.llama.loading.default_threads", lambda: 3)
    with constrain.Model(tiny, n_ctx=64) as model:
        assert (model.llama.n_threads, model.llama.n_threads_batch) == (3, 3)
    with constrain.Model(tiny, n_ctx=64, n_threads=1) as model:
        assert (model.llama.n_threads, model.llama.n_threads_batch) == (1, 1)
