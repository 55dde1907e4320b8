#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each function of the C library's headers that takes a text or a descriptor is interposed, or named with a reason
in not_interposed.txt: a function that takes a path and is in neither would find no device, and one that takes a
descriptor could change the device tree."""
import fnmatch
import pathlib
import re
import subprocess
import sys

HEADERS = """dirent dlfcn fcntl fts ftw glob mntent nl_types spawn stdio stdlib sys/acct sys/fanotify sys/inotify sys/ipc
sys/file sys/ioctl sys/mman sys/mount sys/quota sys/sendfile sys/socket sys/stat sys/statfs sys/statvfs sys/swap sys/time sys/uio
sys/xattr unistd utime wordexp""".split()
TAKEN = r"(?:const char \*|char \*const \*|\bint __\w*(?:fd|fildes)\w*)"


def declared(compiler):
    """The functions that the headers declare with a parameter that is a text or a descriptor."""
    source = "".join(f"#include <{header}.h>\n" for header in HEADERS)
    told = subprocess.run([*compiler, "-E", "-P", "-D_GNU_SOURCE", "-x", "c", "-"], input=source, check=True,
                          capture_output=True, text=True)
    found = set()
    for declaration in told.stdout.split(";"):
        match = re.search(r"\bextern\s[^(]*?\b(\w+)\s*\((.*)\)", declaration, re.DOTALL)
        if match and re.search(TAKEN, match.group(2)):
            found.add(match.group(1))
    return found


def main(library, *compiler):
    told = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
    interposed = {line.split()[-1] for line in told.stdout.splitlines()}
    lines = (pathlib.Path(__file__).parent / "not_interposed.txt").read_text().splitlines()
    named = [name for line in lines if line and line[0] != "#" for name in line.split(":")[1].split()]
    functions = declared(compiler)
    if not {"open", "stat", "printf", "fchmod", "bind"} <= functions:
        return "the headers were not read"
    missing = {name for name in functions - interposed if not any(fnmatch.fnmatchcase(name, n) for n in named)}
    if missing:
        return f"neither interposed nor in not_interposed.txt: {sorted(missing)}"
    wrong = (set(named) & interposed) | {name for name in named if named.count(name) > 1}
    return f"in not_interposed.txt and interposed, or twice there: {sorted(wrong)}" if wrong else None


sys.exit(main(*sys.argv[1:]))
