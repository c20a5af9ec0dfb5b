"""Only ``constrain.system`` calls what other systems lack, and on these it does without, or says so."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from constrain import system
from tests.support import for_each

PACKAGE = Path(system.__file__).parent

MODULES = {"crypt", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
"""Modules that Windows lacks."""

NAMES = {
    "asyncio": {"open_unix_connection", "start_unix_server"},
    "mmap": {"MAP_ANONYMOUS", "MAP_POPULATE", "MAP_PRIVATE", "MAP_SHARED", "PROT_READ", "PROT_WRITE"},
    "os": {
        *("chown", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid", "getloadavg", "getpgid"),
        *("getpriority", "getuid", "kill", "killpg", "mkfifo", "nice", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK"),
        *("posix_fadvise", "posix_spawn", "pread", "pwrite", "register_at_fork", "RTLD_NOLOAD", "RTLD_NOW"),
        *("sched_getaffinity", "sched_setaffinity", "setpgid", "setpriority", "setsid", "statvfs", "sysconf", "uname"),
        *("wait", "wait3", "wait4", "waitid", "waitpid"),
    },
    "signal": {
        *("alarm", "getitimer", "ITIMER_PROF", "ITIMER_REAL", "pthread_kill", "pthread_sigmask", "setitimer"),
        *("set_wakeup_fd", "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPROF", "SIGSTOP", "SIGUSR1"),
    },
    "socket": {"AF_UNIX", "recv_fds", "send_fds", "SO_REUSEPORT"},
    "time": {"clock_gettime", "pthread_getcpuclockid"},
}
"""Names that Windows or macOS lack, by module; ``os.kill`` does something else on Windows."""

KEYWORDS = {"pass_fds", "preexec_fn", "process_group", "start_new_session"}
"""Arguments of ``subprocess`` that Windows refuses."""


WORDS = {*MODULES, *KEYWORDS, *(name for names in NAMES.values() for name in names)}


def of_one_system(tree: ast.AST) -> Iterator[str]:
    """What a module uses of ``MODULES``, ``NAMES`` and ``KEYWORDS``."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name in MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{each.name}" for each in names if each.name in NAMES.get(module, ()))
                if module in MODULES:
                    yield module
            case ast.Attribute(value=ast.Name(id=module), attr=name) if name in NAMES.get(module, ()):
                yield f"{module}.{name}"
            case ast.keyword(arg=str(name)) if name in KEYWORDS:
                yield name


@pytest.mark.slow
def test_one_module_calls_what_other_systems_lack() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in PACKAGE.rglob("*.py")
        if path != Path(system.__file__) and WORDS & {*re.findall(r"\w+", text := path.read_text("utf-8"))}
        for name in of_one_system(ast.parse(text))
    }
    assert not found
    assert set(of_one_system(ast.parse(Path(system.__file__).read_text("utf-8")))) > {"fcntl", "os.fork", "pass_fds"}


@for_each(
    "text, expected",
    ("import fcntl", ["fcntl"]),
    ("from resource import setrlimit", ["resource"]),
    ("from os import fork, getpid", ["os.fork"]),
    ("def f():\n    os.kill(1, signal.SIGKILL)", ["os.kill", "signal.SIGKILL"]),
    ("subprocess.Popen([], preexec_fn=f)", ["preexec_fn"]),
    ("os.getpid(); workers.fork(); signal.SIGINT", []),
)
def test_uses_are_found(text: str, expected: list[str]) -> None:
    assert sorted(of_one_system(ast.parse(text))) == expected


def test_a_locked_file_is_locked_until_it_is_closed(tmp_path: Path) -> None:
    with (tmp_path / "a").open("ab") as first, (tmp_path / "a").open("ab") as second:
        system.lock_file(first)
        with pytest.raises(BlockingIOError):
            system.lock_file(second)
        first.close()
        system.lock_file(second)


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_other_systems_do_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    (tmp_path / "a").write_bytes(b"text")
    tmp_path.chmod(0o777)
    with (tmp_path / "a").open("rb") as file:
        monkeypatch.setattr(sys, "platform", platform)
        mapped, pages = system.map_file(file.fileno(), 4), system.map_memory(8)
    private, processors = system.why_not_private(os.lstat(tmp_path), tmp_path.parent), system.usable_processors()
    system.flush_folder(tmp_path)
    system.lower_thread(0, 10)
    loaded = system.find_loaded("libnone.so")
    monkeypatch.undo()
    assert mapped[:] == b"text"
    assert pages[:] == bytes(8)
    assert not private if platform == "win32" else "mode" in private
    assert processors == set(range(os.cpu_count() or 1))
    assert loaded is None


def test_other_systems_refuse_what_they_cannot_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "a").open("ab") as file, monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        with pytest.raises(OSError, match="cannot be locked: constrain locks no files on Windows; use WSL"):
            system.lock_file(file)
        with pytest.raises(OSError, match="only Linux can limit; on Windows, use WSL"):
            system.start_program([], None)  # type: ignore[arg-type]
