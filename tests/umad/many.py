# SPDX-License-Identifier: BSD-2-Clause
"""Many agents, programs that do not read, that are stopped, killed in each operation, or hostile: what
is theirs has bounds and an end, and others go on."""
import json
import os
import pathlib
import re
import time

import nets
from checklist import path_of
from harness import expect, settled, within
from subnet import NAME, Subnet

HOST = "B"  # of two ports
GROWS_MOST = 64 << 10  # KiB of the daemon's memory
LONG = bool(os.environ.get("UMAD_LONG"))
ROUNDS = 200 if LONG else 4
POINTS = 100 if LONG else 1
SEED = int(time.time()) % 100000


def memory(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def issm_bits(subnet):
    return [int(subnet.ok(HOST, "cat", f"/sys/class/infiniband/mlx5_0/ports/{port}/cap_mask"), 0) & 2
            for port in (1, 2)]


def of(program, *words, limit=120):
    """The program must end well, and leave the daemon as it was."""
    def test(session):
        with Subnet(session, nets.router()) as subnet:
            (daemon,) = session.daemons()
            # Its first client makes it open what it keeps.
            subnet.ok(HOST, "ibstat")
            files, kib = descriptors(daemon), memory(daemon)
            result = subnet.run(HOST, path_of(session, program), *words, limit=limit)
            expect(result.status == 0, f"{' '.join(words)}: status {result.status}: {result.text()}")
            left = settled(lambda: descriptors(daemon), files)
            expect(left <= files, f"{words}: the daemon has {left} descriptors, {files} before")
            grown = memory(daemon) - kib
            expect(grown <= GROWS_MOST, f"{words}: the daemon has grown by {grown} KiB")
            status = json.loads(session.tool("fabric", "status", "--fabric", NAME, "--json").out)
            expect(status["clients"] == [], f"{words}: slots: {status['clients']}")
            expect(not any(issm_bits(subnet)), f"{words}: an IsSM bit")
            expect(session.daemons() == [daemon], f"{words}: another daemon")
            # The built-in subnet manager stands back for a while after a program was one.
            expect(within(30, lambda: subnet.run(HOST, "sminfo").status == 0), f"{words}: sminfo")
    return test


def cases():
    return [(f"many: {name}", test) for name, test in (
        ("1,024 agents", of("crowd_mads", "agents")),
        ("a program that does not read", of("crowd_mads", "deaf")),
        ("a program that is stopped", of("crowd_mads", "stopped")),
        ("reports that nobody reads", of("crowd_mads", "reports")),
        ("killed in each operation", of("mortal_mads", str(ROUNDS), str(SEED), limit=60 + 3 * ROUNDS)),
        ("stopped and killed at instructions", of("stepped_mads", str(POINTS), str(SEED), limit=120 + 20 * POINTS)),
        ("a file in two programs, by fork", of("passed_mads", "fork")),
        ("a file in two programs, by execve", of("passed_mads", "exec")),
        ("a hostile program", of("hostile_mads", str(SEED))))]
