#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The preload library calls none of the functions that it defines for the program, but those below: the others
rewrite paths, and the library's own files are not the program's.  See src/preload/own_calls.c."""
import subprocess
import sys

# A reason, and the functions that tell nothing of files by their paths.
CALLED = {
    "by descriptor: its own are hidden, or in no table": "bind close connect dup3 epoll_ctl epoll_wait fcntl64 "
                                                         "getsockname ioctl poll ppoll pread64 read recv "
                                                         "recvmsg sendmsg setsockopt write",
    "keep the driver's handlers outermost": "__sysv_signal pthread_sigmask sigaction sigaltstack signal sigsuspend",
    "leave the path as it is": "dlopen execve",
    "take no path": "pthread_cancel socket",
}


def names(*command):
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    return [line.split() for line in told.stdout.splitlines()]


def main(library):
    defined = {line[-1] for line in names("nm", "-D", "--defined-only", library)}
    referred = {line[4].split("@")[0] for line in names("readelf", "--relocs", "--wide", library)
                if len(line) > 4 and line[2].startswith("R_")}
    known = set(" ".join(CALLED.values()).split())
    called = defined & referred
    if not {"open64", "stat", "close"} <= defined or "close" not in called:
        return f"{library}: its functions and calls were not found"
    if called - known:
        return f"the library would call itself: {sorted(called - known)}; see src/preload/own_calls.c"
    if known - called:
        return f"listed here and not called: {sorted(known - called)}"
    return None


sys.exit(main(sys.argv[1]))
