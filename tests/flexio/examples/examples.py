# SPDX-License-Identifier: BSD-2-Clause
"""Each example: what it prints."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import ties
from harness import Skip, expect, only_long

ROOT = pathlib.Path(__file__).resolve().parents[3]
# The name, its end, and what it prints, a line each, of two streams.
EXAMPLES = (
    ("rpc", 0, ("9592 primes from 0 to 100000", "the DPA has found 9592 primes")),
    ("cmdq", 0, ("100 tasks wait, 0 primes are found", "4 workers have run 100 tasks and found 9592 primes")),
    ("window", 0, ("the sum of its bytes is 7112: right",)),
    ("stream", 0, ("the DPA says: hello", "synchronous: right", "batched: right", "asynchronous: right",
                   "levels: right", "tracer: right", "tracer by window: right")),
    ("ring", 0, ("100000 answers by rings of 64: right",)),
    ("rdma", 0, ("the DPA has written 1000 numbers", "1000 prime numbers have arrived: right")),
    ("events", 0, ("the DPA has taken      2000 messages, 250372 bytes of the sum 32041788",)),
)


def needs_dpa(session):
    if not (session.build / "dpacc").exists():
        raise Skip("dpacc is not built (see the configuration's message about the DPA)")


def says(result, status, lines):
    found = result.text().splitlines()
    expect(result.status == status and all(line in found for line in lines),
           f"wanted {lines} and status {status}; got {result.status}\n{result.text()}")


def built(name, status, lines):
    def run(session):
        needs_dpa(session)
        says(session.tool("run", "--", str(session.build / f"examples/flexio/flexio-{name}")), status, lines)
    return run


def two_programs(session, *sender_options):
    """The handler's program, and the sender on its own."""
    needs_dpa(session)
    place = session.build / "examples/flexio"
    receiver = session.background(str(place / "flexio-events"), "0")
    port = re.search(r"waiting for: send ADDRESS (\d+)", receiver.stdout.readline())
    expect(port, "no port is said")
    sender = session.tool("run", *sender_options, "--", str(place / "flexio-events-send"), "127.0.0.1", port[1])
    says(sender, 0, ("2000 messages have arrived",))
    says(session.finish(receiver), 0, EXAMPLES[-1][2])


def one_host(session):
    two_programs(session)


def two_hosts(session):
    two_programs(session, "--host", "host2")


def rdma_hosts(session):
    """The DPA writes into a program of another host."""
    needs_dpa(session)
    place = session.build / "examples/flexio"
    writer = session.background(str(place / "flexio-rdma"), "0")
    port = re.search(r"waiting for: take ADDRESS (\d+)", writer.stdout.readline())
    expect(port, "no port is said")
    taker = session.tool("run", "--host", "host2", "--", str(place / "flexio-rdma-take"), "127.0.0.1", port[1])
    says(taker, 0, ("1000 prime numbers have arrived: right",))
    says(session.finish(writer), 0, ("the DPA has written 1000 numbers",))


def crash(session):
    """Device code fails, which is reported with its line; the program goes on."""
    needs_dpa(session)
    source = (ROOT / "examples/flexio/crash/crash_dev.c").read_text().splitlines()
    (line,) = [number for number, text in enumerate(source, 1) if "node->number" in text]
    with tempfile.TemporaryDirectory(prefix="softhca-examples.") as place:
        result = session.run(str(session.build / "examples/flexio/flexio-crash"), cwd=place)
        says(result, 0, ["the program goes on: the sum of a whole list is 60"])
        (report,) = pathlib.Path(place).glob("list.*.crash")
        for words in ("has failed", "in sum_list+", f"crash_dev.c:{line}\n"):
            expect(words in report.read_text() and words in result.out, f"'{words}' is not said\n{result.text()}")
        expect(len(list(pathlib.Path(place).glob("list.*.core"))) == 1, "there is no core file")


def ping_file(session):
    """The packet processor answers requests that come from a file, into a file."""
    needs_dpa(session)
    ties.raw_packets()
    place = ROOT / "examples/flexio/ping"
    requests, answers = session.runtime / "requests.pcap", session.runtime / "answers.pcap"
    text = re.sub(r"#.*", "", (place / "requests.hex").read_text())
    requests.write_bytes(bytes.fromhex(text))
    arp, echo, odd, _ = ties.frames_of(requests)
    with ties.fabric(session):
        ties.tie(session, "mlx5_0", f"in={requests}", f"out={answers}", "pace=top", "loop=10")
        says(session.run(str(session.build / "examples/flexio/flexio-ping"), "mlx5_0", "192.0.2.2", "30"), 0,
             ("answering for 192.0.2.2 at mlx5_0",))
        ties.counted(session, out=30)
        session.tool("fabric", "untie", "mlx5_0")
    mac = bytes.fromhex("02005e000202")
    wanted = [arp[6:12] + mac + arp[12:20] + b"\0\2" + mac + arp[38:42] + arp[22:32]]
    for frame in (echo, odd):
        total = int.from_bytes(frame[36:38], "big") + 0x800
        total = (total & 0xffff) + (total >> 16)
        wanted.append(frame[6:12] + mac + frame[12:26] + frame[30:34] + frame[26:30] + b"\0\0" +
                      total.to_bytes(2, "big") + frame[38:])
    found = ties.frames_of(answers)
    expect(found == 10 * wanted, f"{len(found)} answers, the first {[f.hex() for f in found[:3]]}")
    requests.unlink()
    answers.unlink()


def ping_tap(session):
    """The kernel's own ping and ARP reach it by a TAP interface, without root."""
    needs_dpa(session)
    probe = session.call("unshare", "-rn", "true")
    if probe.status or not os.path.exists("/dev/net/tun") or not shutil.which("ping"):
        raise Skip("no ping, no /dev/net/tun, or no network namespace: " + probe.err.strip())
    inside = f"""set -e
        softhca={session.softhca}
        $softhca fabric up --link-types eth,eth
        trap '$softhca fabric down' EXIT
        $softhca fabric tie mlx5_0 tap=soft0
        ip addr add 192.0.2.1/24 dev soft0
        $softhca run -- {session.build}/examples/flexio/flexio-ping mlx5_0 192.0.2.2 &
        for i in $(seq 300); do ping -c 1 -W 1 192.0.2.2 >/dev/null && break; done
        ping -c 5 -i 0.01 -W 30 192.0.2.2
        ping -c 3 -i 0.01 -W 30 -s 1472 -M do 192.0.2.2
        ip neigh show dev soft0
        if which arping >/dev/null; then arping -c 1 -w 30 -I soft0 192.0.2.2 || arping -c 1 -i soft0 192.0.2.2; fi
        kill $!
        wait $!"""
    result = session.call("unshare", "-rn", "bash", "-c", inside)
    expect(result.status == 0 and " 5 received" in result.out and " 3 received" in result.out and
           "192.0.2.2 lladdr 02:00:5e:00:02:02" in result.out and " 0 errors" in result.out, result.text())


def spread(session):
    """Flows from a file stick to queues, each with a handler of its own, and come back into a file."""
    needs_dpa(session)
    ties.raw_packets()
    flows, back = session.runtime / "flows.pcap", session.runtime / "back.pcap"
    made = subprocess.run(["perl", ROOT / "examples/flexio/spread/flows.pl"], stdout=subprocess.PIPE, check=True)
    flows.write_bytes(made.stdout)
    sent = ties.frames_of(flows)
    with ties.fabric(session):
        ties.tie(session, "mlx5_0", f"in={flows}", f"out={back}", "pace=top")
        result = session.run(str(session.build / "examples/flexio/flexio-spread"), "mlx5_0", str(len(sent)))
        says(result, 0, ("64 flows, each at one handler: right",))
        ties.counted(session, out=len(sent))
        session.tool("fabric", "untie", "mlx5_0")
    shares = [int(frames) for frames in re.findall(r"handler \d: (\d+) frames of \d+ flows, 0 errors", result.out)]
    expect(len(shares) == 4 and sum(shares) == len(sent) and min(shares) >= len(sent) // 10, f"{shares}")
    # The order is that of each flow, whichever handler was first.
    found, wanted = {}, {}
    for frame in sent:
        wanted.setdefault(frame[34:36], []).append(frame[6:12] + frame[0:6] + frame[12:])
    for frame in ties.frames_of(back):
        found.setdefault(frame[34:36], []).append(frame)
    expect(len(wanted) == 64 and found == wanted, "other frames came back")
    flows.unlink()
    back.unlink()


def host_rings(session):
    """Rings of queues in memory of the host; frames go round by the port's own rule."""
    needs_dpa(session)
    ties.raw_packets()
    says(session.tool("run", "--", str(session.build / "examples/flexio/flexio-hostrings")), 0,
         ("8 frames made 1000 trips each by rings in memory of the host: right",))


def congestion(session):
    """With nobody who sends."""
    needs_dpa(session)
    result = session.run(str(session.build / "examples/flexio/flexio-congestion"), "100", "1")
    says(result, 0, ["the flows of mlx5_1 get 100 MB/s"])
    expect("\n0 flows, 0.0 MB in this second" in result.out, result.text())


def good(session, *argv, **options):
    result = session.call(*map(str, argv), **options)
    expect(result.status == 0, f"status {result.status} of {argv}\n{result.text()}")


def by_make(*names):
    """As a stranger would, who has only what is installed."""
    return lambda session: made(session, names)


def made(session, names):
    needs_dpa(session)
    with tempfile.TemporaryDirectory(prefix="softhca-examples.") as place:
        root = pathlib.Path(place) / "root"
        good(session, "meson", "install", "-C", session.build, "--destdir", root, "--no-rebuild", "--quiet")
        found = sorted(root.rglob("libflexio.pc"))
        programs = next(root.rglob("bin/dpacc")).parent
        # Headers of the host lie beside ours, as in /usr/include; the device has others.
        for header in ("stdint.h", "string.h"):
            (programs.parent / "include" / header).write_text(
                f"#ifdef __riscv\n#error the header of the host\n#endif\n#include_next <{header}>\n")
        libraries = found[0].parents[1]
        env = {**session.env, "PATH": f"{programs}:{os.environ['PATH']}", "PKG_CONFIG_PATH": str(found[0].parent),
               "PKG_CONFIG_SYSROOT_DIR": str(root), "LD_LIBRARY_PATH": str(libraries)}
        for name in names:
            copy = pathlib.Path(place) / name
            shutil.copytree(ROOT / "examples/flexio" / name, copy)
            good(session, "make", "-C", copy, "check", env=env)


def cases():
    yield from ((f"examples: {name}", built(name, status, lines)) for name, status, lines in EXAMPLES)
    yield "examples: events of another program", one_host
    yield "examples: events of another host", two_hosts
    yield "examples: rdma to another host", rdma_hosts
    yield "examples: crash", crash
    yield "examples: ping from a file", ping_file
    yield "examples: ping by a TAP interface", ping_tap
    yield "examples: spread", spread
    yield "examples: rings in memory of the host", host_rings
    yield "examples: congestion", congestion
    names = [name for name, _, _ in EXAMPLES] + ["congestion", "crash", "hostrings", "ping", "spread"]
    yield "examples: two by their own Makefiles, from what is installed", by_make(names[0], "crash")
    yield "examples: all by their own Makefiles, from what is installed", only_long(by_make(*names))
