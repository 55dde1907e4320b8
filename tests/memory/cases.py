# SPDX-License-Identifier: BSD-2-Clause
"""What runs on which way, as whom, and what is known to fail."""
import subprocess

# The default first: it gets the long forms.
WAYS = ("auto", "kernel", "packets", "mapped")

# The headings under "Known faults" in docs/exposed-memory.md, all of memory that is moved to where
# peers map it.
SHARED = "Pages that stay shared"
HELD = "Old pages in use"
LISTED = {
    "mapped": {
        "memory stays private": SHARED,
        "memory is private again, threads": SHARED,
        "mremap, threads": SHARED,
        "realloc and calloc": SHARED,
        "MADV_DONTNEED, threads": SHARED,
        "MADV_DONTNEED while registered": SHARED,
        "MADV_FREE, threads": SHARED,
        "MADV_FREE while registered": SHARED,
        "MADV_WIPEONFORK, threads": SHARED,
        "MADV_WIPEONFORK while registered": SHARED,
        "munmap of a half": SHARED,
        "coroutines": HELD,
        "_Fork": HELD,
        "clone": HELD,
        "clone after deregistration, threads": HELD,
        "io_uring buffers before registration": HELD,
        "io_uring buffers after registration": HELD,
        "AIO": HELD,
        "userfaultfd after registration": HELD,
    },
}

# Faults that are open on every way, with what is wrong.
OPEN = {
}

# Root is under none of these.
ORDINARY = {"PR_SET_DUMPABLE", "PR_SET_DUMPABLE before opening", "PR_SET_PTRACER", "no more threads",
            "no locked memory", "mlockall under a limit", "seccomp EPERM", "user namespace"}

# Other programs of tests/robust about a program's own memory, descriptors and threads.
ROBUST = [("cancelled",), ("tidy", "close"), ("tidy", "close_range"), ("tidy", "closefrom"),
          ("marked",), ("confined",), ("forked",), ("replaced",), ("neighbours", "thread"),
          *(("stopped", how) for how in ("retries", "error", "reset", "destroy", "dereg"))]


def listed_by(program):
    out = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    return out.splitlines()


def cases(build, long, seed):
    """(way, name, program and arguments): in the order in which they start."""
    programs, robust = build / "tests/memory", build / "tests/robust"
    rounds, lives = (60, 1500) if long else (6, 1150)
    for n, way in enumerate(WAYS):
        devices = ("mlx5_0", "mlx5_1") if long else (f"mlx5_{n % 2}",)
        for device in devices:
            # The longest first, so that others run beside it.
            many = lives if long or not n else 100
            for what, count in (("lives", many), ("regions", 45), ("objects", 60), ("held", 150)):
                yield way, f"budget {what}", [programs / "budget", device, what, str(count)]
            for kind in ("private", "shared"):
                yield way, f"sums {kind}", [programs / "sums", device, kind, str(150 * rounds)]
            for kind in listed_by(programs / "quiet"):
                yield way, f"quiet {kind}", [programs / "quiet", device, kind, str(rounds),
                                             str(seed)]
            for kind in listed_by(programs / "targets"):
                yield way, f"targets {kind}", [programs / "targets", device, kind,
                                               str(30 if long else 3), str(seed)]
            for name in listed_by(programs / "host"):
                yield way, name, [programs / "host", device, name]
            for name, *arguments in ROBUST:
                yield (way, " ".join(["robust", name, *arguments]),
                       [robust / name, device, *arguments])
