# SPDX-License-Identifier: BSD-2-Clause
"""Cases of one host program, and perftest under the control of the example."""
import pathlib
import re
import shutil
import signal
import subprocess
import threading

from harness import Skip, all_ended_well, expect, free_port
from hosts import HostProgram, build_of

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ("host.c", "host_flows.c", "host_limit.c", "host_queue.c", "../../support/verbs_device.c")

CASES = (
    ("events", "what is sent is told: bytes, packets, flows C59 P291"),
    ("rates", "a rate that is set is the rate that is sent, and another one from then on P290"),
    ("probes", "round trips that are asked for"),
    ("refusals", "receivers that are not ready"),
    ("next_actions", "one event at a time, several, none"),
    ("refused", "what cannot be, and doorbells that nothing hears C59 M237"),
    ("ends", "a flow whose handler has gone is as fast as before"),
    ("two_rates", "two flows at a time, each at its own rate P290"),
    ("rate_ends", "the lowest rate and the highest P290"),
    ("counts_end", "numbers of 16 bits stop, those of 32 do not"),
    ("ring_full", "a full ring of events adds up what happens"),
    ("unreliable", "connections of UC are flows"),
    ("datagrams", "datagrams are none"),
    ("queue_pair", "a queue pair of device code is a flow: it is told of, and has the rate that is set"),
    ("frames", "frames of a send queue of device code are none"),
    ("of_program", "a program has 256 flows, and a queue pair beyond those is left alone until one goes"),
)
PROGRAMS = HostProgram(HERE, SOURCES)
TRIES = 5


def case(name):
    def run(session):
        session.run_ok(str(PROGRAMS.host(session)), name, env=session.env)
    return run


def controlled(session, megabytes, *more):
    """The example at work."""
    program = build_of(session) / "examples/flexio/flexio-congestion"
    if not shutil.which("ib_write_bw"):
        raise Skip("perftest is not installed")
    controller = session.background(str(program), str(megabytes), *more)
    expect("the flows of mlx5_1" in controller.stdout.readline(), "it does not begin")
    return controller


def written(session, bytes_of_message, count):
    """MB/s, as ib_write_bw says."""
    command = ("ib_write_bw", "-d", "mlx5_1", "-s", str(bytes_of_message), "-n", str(count), "-t", "8")
    server, client = session.pair(command, command)
    all_ended_well({"server": server, "client": client})
    (rate,) = re.findall(rf"^\s*{bytes_of_message}\s+\d+\s+[\d.]+\s+([\d.]+)", client.text(), re.M)
    return float(rate) * 1.048576


def perftest(session):
    """At no more than 20 MB/s; less where processors are busy.  A flow begins at the port's speed, so all is sent
    before a controller that has no processor at that time."""
    controller = controlled(session, 20)
    for _ in range(TRIES):
        rate = written(session, 16384, 1000)
        if rate < 21.5:
            break
    controller.send_signal(signal.SIGINT)
    result = session.finish(controller)
    expect(result.status == 0 and re.search(r"^[1-9]\d* flows", result.text(), re.M),
           f"status {result.status}\n{result.text()}")
    expect(0 < rate < 21.5, f"{rate} MB/s, where 20 were set\n{result.text()}")


def killed(session):
    """The sender goes on, as fast as it can: at the rate it would take half an hour."""
    controller = controlled(session, 1)
    command = ("ib_write_bw", "-d", "mlx5_1", "-s", "65536", "-n", "30000", "-t", "8")
    port = str(free_port())
    sender = session.background(*command, "-p", port)
    receiver = session.background("sh", "-c", f"until {' '.join(command)} -p {port} 127.0.0.1; do sleep 0.2; done")
    said = (controller.stdout.readline() for _ in range(60))  # a line each second
    expect(any(re.match(r"[1-9]\d* flows", line) for line in said), "the controller hears of no flow")
    controller.send_signal(signal.SIGKILL)
    all_ended_well(session.finish_all({"sender": sender, "receiver": receiver}))


def marked(session):
    """A congested receiver tells of it, and the handler slows the flow down."""
    controller = controlled(session, 1000, "0", "react")
    command = ("ib_write_bw", "-d", "mlx5_1", "-s", "16384", "-n", "4000", "-t", "8")
    port = str(free_port())
    env = {**session.env, "SOFTHCA_CONGESTION": "800M,32K"}
    sender = session.background(*command, "-p", port, env=env)
    receiver = session.background("sh", "-c", f"until {' '.join(command)} -p {port} 127.0.0.1; do sleep 0.2; done")
    all_ended_well(session.finish_all({"sender": sender, "receiver": receiver}))
    controller.send_signal(signal.SIGINT)
    result = session.finish(controller)
    told = re.findall(r"(\d+) notifications.*lowest (\d+)", result.text())
    expect(result.status == 0 and told and int(told[-1][0]) > 0 and int(told[-1][1]) < 1000 * 2**20 / 25000,
           f"status {result.status}\n{result.text()}")


def missed(session):
    """A link that is down for a moment loses packets of a flow; the receiver misses them, and the handler hears that."""
    host = str(PROGRAMS.host(session))
    expect(session.tool("fabric", "up").status == 0, "no fabric")
    try:
        flow = session.background(host, "sequence", stdin=subprocess.PIPE)
        expect(flow.stdout.readline() == "flows\n", "nothing flows")
        heard = threading.Thread(target=flow.stdout.readline)
        heard.start()
        while heard.is_alive():
            for state in ("down", "up"):
                expect(session.tool("fabric", "port", "host1/mlx5_1", state).status == 0, state)
            heard.join(1)
        flow.stdin.close()
        flow.stdin = None
        result = session.finish(flow)
        expect(result.status == 0, f"status {result.status}\n{result.text()}")
    finally:
        session.tool("fabric", "down")


def full(session):
    """Four programs have all flows of a table; a queue pair of a fifth one is a flow once they go."""
    def hear(process, word):
        heard = process.stdout.readline()
        expect(heard == f"{word}\n", f"{heard!r}, not {word}")

    def go_on(process):
        process.stdin.write("\n")
        process.stdin.flush()

    def end(process):
        result = session.finish(process)
        expect(result.status == 0, f"status {result.status}\n{result.text()}")

    host = str(PROGRAMS.host(session))
    controller = session.background(host, "of_table", stdin=subprocess.PIPE)
    hear(controller, "controls")
    programs = [session.background(host, "flows_kept", stdin=subprocess.PIPE) for _ in range(4)]
    for program in programs:
        hear(program, "flows")
    go_on(controller)
    hear(controller, "full")
    for program in programs:
        go_on(program)
        end(program)
    go_on(controller)
    end(controller)


def cases():
    yield from ((f"congestion: {title}", case(name)) for name, title in CASES)
    yield "congestion: flows of other programs have the rate that the handler sets", perftest
    yield "congestion: a program that controls flows is killed", killed
    yield "congestion: notifications slow a flow down", marked
    yield "congestion: a table has 1024 flows, and queue pairs beyond those are left alone until there is room", full
    yield "congestion: the handler hears of packets that a receiver misses", missed
