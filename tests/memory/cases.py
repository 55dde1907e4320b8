# SPDX-License-Identifier: BSD-2-Clause
"""What runs on which way, and as whom."""
import subprocess

# The default first: it gets the long forms.  What the environment says for each.
WAYS = {"auto": {}, "kernel": {"SOFTHCA_MEMORY": "kernel"}, "packets": {"SOFTHCA_MEMORY": "packets"},
        "shared": {"TEST_MEMORY": "shared"}}

# Root is under none of these.
ORDINARY = {"PR_SET_DUMPABLE", "PR_SET_DUMPABLE before opening", "PR_SET_PTRACER", "no more threads",
            "no locked memory", "mlockall under a limit", "seccomp EPERM", "user namespace"}

# Other programs of tests/robust about a program's own memory, descriptors and threads.
ROBUST = [("cancelled",), ("tidy", "close"), ("tidy", "close_range"), ("tidy", "closefrom"),
          ("marked",), ("confined",), ("forked",),
          *(("stopped", how) for how in ("retries", "error", "reset", "destroy", "dereg"))]


def listed_by(program):
    out = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    return out.splitlines()


def taken_back(programs, device, rounds, seed, long):
    """What was given back is left alone: programs that register what device_memory gives."""
    for kind in listed_by(programs / "quiet"):
        yield f"quiet {kind}", [programs / "quiet", device, kind, str(rounds), str(seed)]
    for kind in listed_by(programs / "targets"):
        yield f"targets {kind}", [programs / "targets", device, kind, str(30 if long else 3),
                                  str(seed)]


def cases(build, long, seed):
    """(way, name, program and arguments): in the order in which they start."""
    programs, robust = build / "tests/memory", build / "tests/robust"
    rounds, lives = (60, 1500) if long else (4, 1150)
    for n, way in enumerate(WAYS):
        devices = ("mlx5_0", "mlx5_1") if long else (f"mlx5_{n % 2}",)
        for device in devices:
            if way == "shared":
                for case in taken_back(programs, device, rounds, seed, long):
                    yield way, *case
                continue
            # The longest first, so that others run beside it.
            many = lives if long or not n else 100
            for what, count in (("lives", many), ("regions", 45), ("objects", 60), ("held", 150)):
                yield way, f"budget {what}", [programs / "budget", device, what, str(count)]
            for kind in ("private", "shared"):
                yield way, f"sums {kind}", [programs / "sums", device, kind, str(150 * rounds)]
            for case in taken_back(programs, device, rounds, seed, long):
                yield way, *case
            for name in listed_by(programs / "host"):
                yield way, name, [programs / "host", device, name]
            for name, *arguments in ROBUST:
                yield (way, " ".join(["robust", name, *arguments]),
                       [robust / name, device, *arguments])
