"""The operating system. Every function that only Linux or POSIX has is called here, so a port is a port of this file.

Files, memory and processors work on every system. Only Linux can limit and measure the processes in which the
server compiles requests: ``start_program`` refuses on other systems. Windows lacks ``lock_file``, too.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl
    import resource

CLOCK_TICKS = os.sysconf("SC_CLK_TCK") if sys.platform == "linux" else 100
"""Ticks of a second in which ``/proc/stat`` counts."""

TIME_IS_UP = 27 if sys.platform == "win32" else signal.SIGPROF
"""Signal that ends a process at the limit of ``limit_cpu_seconds``."""


def is_anothers(found: os.stat_result) -> bool:
    """Whether a file or directory belongs to another user; on Windows, the user's own folder protects it."""
    return sys.platform != "win32" and found.st_uid != os.geteuid()


def why_not_private(found: os.stat_result, parent: Path) -> str:
    """Why a directory is not private to the user; empty if it is."""
    if not stat.S_ISDIR(found.st_mode):
        return "it is no directory"
    if sys.platform == "win32":  # modes say nothing there: the directory is in the user's own folder
        return ""
    if is_anothers(found):
        return "it belongs to another user"
    if found.st_mode & 0o077:
        return "others may use it; its mode must be 700"
    around = parent.stat()
    if around.st_mode & 0o022 and not around.st_mode & stat.S_ISVTX:
        return f"others may replace what is in {parent}"
    return ""


def lock_file(file: BinaryIO) -> None:
    """Locks a file until it is closed; the end of the process closes it, too.

    Raises BlockingIOError if another process has locked it, and OSError where files cannot be locked.
    """
    if sys.platform == "win32":
        raise OSError(f"{file.name} cannot be locked: constrain locks no files on Windows; use WSL")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def flush_folder(folder: Path) -> None:
    """Flushes a folder to the disk, so that the names of new files survive a crash. Windows opens no folders."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def map_file(descriptor: int, size: int) -> mmap.mmap:
    """Maps an open file, for reading all of it at once."""
    if sys.platform != "linux":
        return mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    flags = mmap.MAP_PRIVATE | mmap.MAP_POPULATE  # a checksum reads the whole file anyway
    return mmap.mmap(descriptor, size, flags=flags, prot=mmap.PROT_READ)


def map_memory(size: int) -> mmap.mmap:
    """Maps empty pages that only this process uses."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def usable_processors() -> set[int]:
    """Returns the numbers of the processors that this process may run on."""
    return os.sched_getaffinity(0) if sys.platform == "linux" else set(range(os.cpu_count() or 1))


def has_lower_priority() -> bool:
    """Whether this process has a lower priority than most (``nice``)."""
    return sys.platform == "linux" and os.getpriority(os.PRIO_PROCESS, 0) > 0


def lower_thread(thread: int, nice: int) -> None:
    """Lowers the priority of a thread, by its native number. Only Linux has a priority per thread."""
    if sys.platform == "linux":
        with suppress(OSError):  # the thread has ended
            os.setpriority(os.PRIO_PROCESS, thread, nice)


def find_loaded(library: str) -> ctypes.CDLL | None:
    """Returns a shared library that this process has loaded; ``None`` if it has not, or the system cannot tell."""
    if sys.platform == "win32":
        return None
    try:
        return ctypes.CDLL(library, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        return None


def name_processes() -> str | None:
    """Returns a name of the space that this process has its number in; ``None`` if the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 - it is no path
    except OSError:
        return None


def is_running(process: int) -> bool:
    """Whether a process has not ended. For processes of this system's ``name_processes`` only."""
    assert sys.platform != "win32"  # where signal 0 would end the process
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def start_program(command: list[str], inherited: socket.socket) -> subprocess.Popen[bytes]:
    """Starts a program that inherits a socket and may call the functions below. Raises OSError if there are none."""
    if sys.platform != "linux":
        raise OSError("the server compiles each request in a process that only Linux can limit; on Windows, use WSL")
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[inherited.fileno()])  # noqa: S603


def send_socket(control: socket.socket, message: bytes, sent: socket.socket) -> None:
    """Sends a message with an open socket. Raises OSError."""
    assert sys.platform == "linux"
    socket.send_fds(control, [message], [sent.fileno()])


def receive_socket(control: socket.socket) -> tuple[bytes, int]:
    """Returns the next byte of messages, and the descriptor of the socket that came with it; -1 for none."""
    assert sys.platform == "linux"
    message, sockets, _, _ = socket.recv_fds(control, 1, 1)
    return message, sockets[0] if sockets else -1


def fork() -> int:
    """Forks this process; returns 0 in the new process, and the number of the new process in the old one."""
    assert sys.platform == "linux"
    return os.fork()


def lower_priority(nice: int) -> int:
    """Lowers the priority of this process and of its later children; returns it."""
    assert sys.platform == "linux"
    return os.nice(nice)


def limit_cpu_seconds(seconds: float) -> None:
    """Ends this process by ``TIME_IS_UP`` after more CPU seconds."""
    assert sys.platform == "linux"
    signal.setitimer(signal.ITIMER_PROF, seconds)


def limit_memory(more: int) -> None:
    """Lets this process use so many bytes more than now, and leave no core file."""
    assert sys.platform == "linux"
    most = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def reap(child: int, *, waits: bool) -> int | None:
    """Returns the exit status of a child, or minus the number of the signal that ended it, and frees its number.

    ``None`` if it runs, unless this waits for its end.
    """
    assert sys.platform == "linux"
    ended, status = os.waitpid(child, 0 if waits else os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def kill(process: int) -> None:
    """Ends a process, also a paused one. Raises ProcessLookupError."""
    assert sys.platform == "linux"
    os.kill(process, signal.SIGKILL)


def cpu_seconds_of(process: int) -> float:
    """Returns the CPU seconds of another process, until it is reaped."""
    assert sys.platform == "linux"
    return time.clock_gettime(~process << 3 | 2)  # Linux's CPU-time clock of another process
