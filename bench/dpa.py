# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the DPA.  Each program is there twice: with device code that is checked, and that is not."""
from table import Row

ROUNDS = 9  # of what takes turns with a peer in one program


def calls(bench):
    """Calls and activations beside what two threads need for the same, and beside code that is not
    checked.  The program has two threads that take turns, each where the kernel wants it."""
    def of(name, program="dpa_calls"):
        return lambda: bench.unpinned(program)[name]

    def row(key, what, unit, name, *rest, **more):
        return Row(f"dpa-{key}", f"DPA: {what}", unit, of(name), *rest, rounds=ROUNDS, **more)

    def checked(name, what, unit, target):
        return row(name.replace("_", "-"), f"{what}, checked", unit, name, "unchecked",
                   of(name, "dpa_calls_unchecked"), target)
    return [
        row("call-asleep", "a call and its answer, asleep", "us", "call_asleep",
            "two threads, futex", of("futex_asleep"), ("<=", 1.5)),
        row("call-polled", "a call and its answer, polled", "ns", "call_polled",
            "two threads, a word", of("words_polled"), ("<=", 1000), absolute=True),
        row("event-asleep", "message to first instruction, asleep", "us", "event_asleep",
            "a thread, futex", of("futex_there"), ("<=", 1.5)),
        row("event-polled", "message to first instruction, polled", "ns", "event_polled",
            "a thread, a word", of("words_there"), ("<=", 1000), absolute=True),
        checked("call_rate", "calls, one by one", "k/s", (">=", 0.9)),
        checked("event_rate", "activations, one by one", "k/s", (">=", 0.9)),
        checked("tasks", "tasks of a command queue", "k/s", (">=", 0.9)),
        checked("loop", "loads and stores in a loop", "M/s", None),
    ]


def streams(bench):
    def of(program, name):
        return lambda: bench.program(program)[name]
    return [Row(f"dpa-{name}", f"DPA: {what}, checked", "k/s", of("dpa_streams", name),
                "unchecked", of("dpa_streams_unchecked", name), (">=", 0.5), rounds=ROUNDS)
            for name, what in (("sync", "messages, synchronous"),
                               ("batch", "messages in batches"),
                               ("async", "messages, asynchronous, and a flush"),
                               ("trace", "trace records"))]
