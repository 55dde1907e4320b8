# SPDX-License-Identifier: BSD-2-Clause
"""What `softhca status` says of the objects of running programs."""
import json
import os
import signal

from harness import expect, within
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
        still = shown_when(session, lambda now: {p["state"] for p in now} == {"stopped"})
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


def cases():
    return [(f"objects: {test.__name__.replace('_', ' ')}", test) for test in (
        of_two_programs, of_nothing, of_all_kinds)]
