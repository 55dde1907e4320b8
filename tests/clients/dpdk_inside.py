#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The inside of the case of DPDK: run in a user and network namespace of its own.

Testpmd gives its frames UDP port 9, so one rule of the receiver takes all of them, and another one none.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from harness import Session, expect, within

SECONDS = 2  # of traffic
PROMPT_LIMIT = 120


class Testpmd:
    """Testpmd of a host, by its commands."""

    def __init__(self, session, host, mode, *options):
        self.session = session
        function = session.tool("run", "--host", host, "--", "readlink", "-f",
                                "/sys/class/infiniband/mlx5_1/device").out.strip()
        self.process = session.background(
            "stdbuf", "-oL", "dpdk-testpmd", "--no-huge", "--no-shconf", "-m", "256", "--no-telemetry", "-l", "0,1",
            "-a", os.path.basename(function), "--", "-i", f"--forward-mode={mode}",
            "--total-num-mbufs=8192", *options, run_options=("--host", host), stdin=subprocess.PIPE)
        self.ask("show config fwd", "packet forwarding")

    def ask(self, command, wanted):
        """Gives what testpmd prints up to the line that has the wanted text."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        text = ""
        for line in self.process.stdout:
            text += line
            if re.search(wanted, line):
                return text
        result = self.session.finish(self.process, PROMPT_LIMIT)
        raise AssertionError(f"testpmd ended with status {result.status}: {text}{result.text()}")

    def statistics(self):
        text = self.ask("show port stats 0", "Tx-pps")
        return {name: int(value) for name, value in re.findall(r"([RT]X-[a-z]+): +(\d+)", text)}

    def hits(self, rule):
        return int(re.search(r"hits: (\d+)", self.ask(f"flow query 0 {rule} count", r"\bbytes: ")).group(1))

    def end(self):
        """All that testpmd has to say, after it ended by itself."""
        self.process.stdin.write("quit\n")
        result = self.session.finish(self.process, PROMPT_LIMIT)
        expect(result.status == 0, result.text())

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


def rule(receiver, port):
    text = receiver.ask(f"flow create 0 ingress pattern eth / ipv4 / udp dst is {port} / end "
                        "actions count / queue index 0 / end", "Flow rule #|error|Bad")
    expect("Flow rule #" in text, text)


def traffic(sender, receiver):
    rule(receiver, 9)
    rule(receiver, 10)
    receiver.ask("start", "RS bit threshold")
    sender.ask("start", "RS bit threshold")
    time.sleep(SECONDS)
    sender.ask("stop", "^Done")
    sent = sender.statistics()
    expect(sent["TX-packets"] > 1000 and sent["TX-errors"] == 0, sent)

    def arrived():
        got = receiver.statistics()
        return got["RX-packets"] + got["RX-missed"] == sent["TX-packets"]

    expect(within(30, arrived), f"{sent}\n{receiver.statistics()}")
    got = receiver.statistics()
    expect(got["RX-packets"] > 1000 and got["RX-errors"] == 0 and got["RX-nombuf"] == 0, got)
    expect(got["RX-bytes"] == 64 * got["RX-packets"], got)
    # A rule counts what it takes, also if the queue has no room for it.
    expect(within(10, lambda: receiver.hits(0) == sent["TX-packets"]), f"{receiver.hits(0)} hits of {sent}")
    expect(receiver.hits(1) == 0, "a rule that no frame matches")


def main():
    session = Session(pathlib.Path(sys.argv[1]))
    open_ends = []
    signal.alarm(PROMPT_LIMIT)
    try:
        ip("link", "set", "lo", "up")
        ip("link", "add", "v1", "type", "veth", "peer", "name", "v2")
        for name in ("v1", "v2"):
            ip("link", "set", name, "up")
        result = session.tool("fabric", "up", "--link-types", "eth,eth",
                              "--netdev", "host1/mlx5_1=v1,host2/mlx5_1=v2")
        expect(result.status == 0, result.text())
        mac = re.search(r"link/ether (\S+)", ip("-o", "link", "show", "v2")).group(1)
        open_ends.append(Testpmd(session, "host2", "rxonly"))
        open_ends.append(Testpmd(session, "host1", "txonly", f"--eth-peer=0,{mac}"))
        traffic(open_ends[1], open_ends[0])
        for end in open_ends:
            end.end()
        session.tool("fabric", "down")
        session.expect_clean()
    finally:
        for end in open_ends:
            end.kill()
        session.close()
    print("done")


main()
