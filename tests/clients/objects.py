# SPDX-License-Identifier: BSD-2-Clause
"""What `softhca status` says of the objects of running programs."""
import contextlib
import json
import os
import signal

from harness import Skip, expect, within
from status import all_kinds, writing_programs


def programs_shown(session, *which):
    result = session.tool("status", "--json", *which)
    return json.loads(result.out)["programs"] if result.status == 0 else []


def shown_when(session, ready, *which):
    """The programs of the fabric, as soon as they are as wanted."""
    shown = []

    def looked():
        shown[:] = programs_shown(session, *which)
        return ready(shown)

    expect(within(30, looked), f"status shows {shown}")
    return shown


def both_write(programs):
    return len(programs) == 2 and all(
        [(q["state"], "peer" in q) for q in p["queue_pairs"]] == [("RTS", True)]
        for p in programs)


def behind(psn, other):
    """How far a PSN is from another, either way."""
    return min((psn - other) % 2**24, (other - psn) % 2**24)


def of_two_programs(session):
    """Queue pairs and completion queues of programs that write to each other, and stand still."""
    with writing_programs(session, "auto") as pids:
        first = shown_when(session, both_write)
        expect({p["pid"] for p in first} == set(pids), f"programs {first}")
        for program in first:
            expect(program["command"] == "ib_write_bw" and program["host"] == "host1" and
                   program["state"] == "running" and "trouble" not in program, program)
            qp, (cq,) = program["queue_pairs"][0], program["completion_queues"]
            peer = next(p for p in first if p is not program)
            expect(qp["peer"] == {"qpn": peer["queue_pairs"][0]["qpn"], "host": "host1",
                                  "device": "mlx5_0", "pid": peer["pid"]}, qp)
            expect(qp["transport"] == "RC" and qp["send_cq"] == cq["cqn"] and
                   not qp["failures"], qp)
            expect(cq["capacity"] >= 128 and not cq["overrun"], cq)
        was = {p["pid"]: p["queue_pairs"][0]["psn_next"] for p in first}
        shown_when(session, lambda now: both_write(now) and all(
            p["queue_pairs"][0]["psn_next"] != was[p["pid"]] for p in now))
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        shown_when(session, lambda now: {p["state"] for p in now} == {"stopped"})
        # that look may have begun before they stood still
        still = programs_shown(session)
        expect(still == programs_shown(session), "it changes although all stands still")
        qps = [p["queue_pairs"][0] for p in still]
        for one, other in (qps, qps[::-1]):
            # a program may have been stopped in the middle of a request, of 128 at most
            expect(behind(one["psn_next"], other["psn_expected"]) <= 128, f"PSNs {qps}")
        only = programs_shown(session, hex(qps[0]["qpn"]))
        expect([p["queue_pairs"] for p in only] == [[qps[0]]], only)
        expect(programs_shown(session, str(pids[1])) ==
               [p for p in still if p["pid"] == pids[1]], "of one process")
        text = session.tool("status").out
        expect(f"pid {pids[0]} ib_write_bw, host1, stopped" in text and
               f"0x{qps[0]['qpn']:06x}  RC " in text, text)


def of_nothing(session):
    """Nothing to show, and what is not there."""
    result = session.tool("status")
    expect(result.status and "not running" in result.err, result.text())
    session.tool("fabric", "up")
    try:
        result = session.tool("status")
        expect(result.status == 0 and "no program has a device" in result.out, result.text())
        expect(programs_shown(session) == [], "programs")
        for what, status, words in (("0x7777", 1, "no process or queue pair 30583 (0x7777)"),
                                    ("qp", 2, "'qp' is no number"),
                                    ("0x", 2, "is no number"), ("0", 2, "is no number")):
            result = session.tool("status", what)
            expect(result.status == status and words in result.err, result.text())
    finally:
        session.tool("fabric", "down")


@contextlib.contextmanager
def mistaken(session, mistake, *told):
    """A program that has made a mistake and been told of it."""
    program = session.background(str(session.build / "tests/tools/mistakes"), mistake, "stay")
    try:
        for line in told:
            expect(program.stdout.readline() == f"{line}\n", f"it is not told: {line}")
        yield
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()


def failures_of(programs):
    return [(q["state"], q["failures"], q.get("last_error"))
            for p in programs for q in p["queue_pairs"]]


def of_failures(session):
    """Why queue pairs have failed, on the side that asked and on the one that refused."""
    with mistaken(session, "behind_region", "write: status 10 vendor 0x88"):
        shown_when(session, lambda now: failures_of(now) == [("ERR", 1, "REM_ACCESS"),
                                                             ("ERR", 1, "REMOTE_ACCESS")])
        text = session.tool("status").out
        expect("failed 1 times, last: REM_ACCESS" in text, text)
    with mistaken(session, "no_receive", "send: status 13 vendor 0x87"):
        shown_when(session, lambda now: failures_of(now) == [("ERR", 1, "RNR_RETRY_EXC"),
                                                             ("RTS", 0, None)])
    with mistaken(session, "completion_queue_small", "event: CQ error"):
        shown_when(session, lambda now: sum(c["overrun"] for p in now
                                            for c in p["completion_queues"]) == 1)


def of_all_kinds(session):
    """Each transport is listed under its name, also by a process that lays nothing else open."""
    transports = {"rc": "RC", "uc": "UC", "ud": "UD", "xrc-send": "XRC", "xrc-receive": "XRC",
                  "dc-initiator": "DC", "dc-target": "DC"}
    for memory in ("auto", "packets"):
        with all_kinds(session, memory) as (_, names):
            (program,) = programs_shown(session)
            found = {names[q["qpn"]]: q["transport"] for q in program["queue_pairs"]
                     if q["qpn"] in names}
            expect(found == transports, f"queue pairs: {found}")
            expect(program["shared_receive_queues"], program)


def of_keys(session):
    """Keys with their range, rights and way, those that only packets reach among them."""
    with all_kinds(session, "auto") as (names, _):
        (program,) = programs_shown(session)
        keys = {names[k["key"]]: k for k in program["keys"] if k["key"] in names}
        remote = ["local-write", "remote-write", "remote-read"]
        for name, way, rights in (("private", "kernel", remote), ("file", "mapped", remote),
                                  ("local", "packets", ["local-write"])):
            key = keys[name]
            expect((key["way"], key["length"], key["rights"]) == (way, 4096, rights) and
                   key["iova"] and key["pd"], f"{name}: {key}")
        expect("iova" not in keys["window"] and "iova" not in keys["list"], keys)
        text = session.tool("status", str(program["pid"])).out
        expect(f"0x{keys['file']['key']:08x}" in text and
               "local-write,remote-write,remote-read; memory that is shared already" in text, text)


@contextlib.contextmanager
def lying(session, way):
    """A program that writes into what it exposes; what it says of that."""
    program = session.background(str(session.build / "tests/clients/liar"), "mlx5_0", way)
    try:
        yield program.stdout.readline().strip()
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()


def of_a_liar(session):
    """Numbers that mean nothing neither crash the tool nor keep it, and reach no terminal."""
    with lying(session, "noise") as said:
        expect(said == "done", f"liar says: {said!r}")
        for command in (("status",), ("fabric", "status")):
            result = session.tool(*command, "--json")
            expect(result.status == 0 and result.text().isascii(), f"status {result.status}")
            expect(json.loads(result.out), command)
            result = session.tool(*command)
            expect(result.status == 0 and result.text().isascii() and "\x1b" not in result.out,
                   f"status {result.status}")


def of_who_waits(session):
    """Who holds up its readers is given up, and the others are shown."""
    with lying(session, "waits") as said, all_kinds(session, "auto"):
        if said != "done":
            raise Skip(said)
        shown = {p["command"]: p for p in programs_shown(session)}
        expect("holds up" in shown["liar"]["trouble"], shown["liar"])
        expect("trouble" not in shown["kinds"] and shown["kinds"]["queue_pairs"], "the other")


def cases():
    return [(f"objects: {test.__name__.replace('_', ' ')}", test) for test in (
        of_two_programs, of_nothing, of_failures, of_all_kinds, of_keys, of_a_liar, of_who_waits)]
