# SPDX-License-Identifier: BSD-2-Clause
"""libfabric's verbs provider: what it finds, and messages over UD that its ofi_rxd makes reliable."""
import re

from harness import expect, free_port, story_of, wait_listening
from pairs import IB, ROCE

SIZES = ("64", "4096", "65536")


def found(session):
    result = session.run("fi_info", "-p", "verbs")
    expect(result.status == 0, f"status {result.status}\n{result.text()}")
    domains = re.findall(r"domain: (\S+)", result.out)
    expect({IB, ROCE, f"{IB}-dgram", f"{ROCE}-dgram"} <= set(domains), result.text())


# The other endpoints of the provider want rdma_cm.
def pingpong(device, mode, size):
    def run(session):
        port = str(free_port())
        argv = ["fi_pingpong", "-p", "verbs;ofi_rxd", "-e", "rdm", "-d", f"{device}-dgram", "-m", mode,
                "-S", size, "-I", "100", "-c"]
        server = session.background(*argv, "-B", port)
        wait_listening(int(port), server)
        client = session.background(*argv, "-P", port, "127.0.0.1")
        results = session.finish_all({"server": server, "client": client})
        expect(all(side.status == 0 and re.search(r"^\S+\s+100\s+=100\s", side.out, re.M)
                   for side in results.values()), story_of(results))
    return run


def cases():
    yield "fi_info", found
    for device, kind in ((IB, "ib"), (ROCE, "roce")):
        for mode in ("msg", "tagged"):
            for size in SIZES:
                yield f"fi_pingpong {kind} rxd {mode} {size}", pingpong(device, mode, size)
