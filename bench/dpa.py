# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the DPA.  Device code is there twice: checked, and not."""
from table import Missing, Row

ROUNDS = 9  # of what takes turns with a peer in one program


def calls(bench):
    """Calls and activations beside what two threads need for the same, each where the kernel wants
    it; and beside code that is not checked, both in one program."""
    def of(name, program="dpa_calls"):
        def value():
            found = bench.unpinned(program)
            if name not in found:
                raise Missing(f"{program} says nothing of {name}: it needs two processors")
            return found[name]
        return value

    def row(key, what, unit, name, *rest, **more):
        return Row(f"dpa-{key}", f"DPA: {what}", unit, of(name), *rest, rounds=ROUNDS, **more)

    def asleep(key, what, name, peer, target=("<=", 1.5)):
        return row(key, what, "us", name, "two threads, futex", of(peer), target)

    def polled(key, what, name, words):
        return row(key, what, "ns", name, "two threads, a word", of(words), ("<=", 1000),
                   absolute=True)

    def checked(name, what, unit, target):
        return Row(f"dpa-{name.replace('_', '-')}", f"DPA: {what}, checked", unit,
                   of(name, "dpa_checked"), "unchecked", of(f"{name}_unchecked", "dpa_checked"),
                   target, rounds=ROUNDS)
    return [
        asleep("call-near", "a call, asleep, on one processor", "call_near", "futex_near"),
        asleep("call-far", "a call, asleep, on two", "call_far", "futex_far"),
        asleep("call-asleep", "a call, asleep, anywhere", "call_asleep", "futex_asleep", None),
        polled("call-polled", "a call, polled", "alone_polled", "words_polled"),
        polled("call-sleeper", "a call, polled, while a thread sleeps", "call_polled",
               "words_polled"),
        row("call-two", "calls of two threads", "k/s", "two_calls", "two pairs, futex",
            of("two_futex"), (">=", 0.67)),
        asleep("event-near", "an activation, asleep, on one processor", "event_near",
               "there_near"),
        asleep("event-far", "an activation, asleep, on two", "event_far", "there_far"),
        asleep("event-asleep", "an activation, asleep, anywhere", "event_anywhere",
               "there_anywhere", None),
        polled("event-polled", "an activation, polled", "event_polled", "words_there"),
        checked("call_rate", "calls, one by one", "k/s", (">=", 0.9)),
        checked("activation_rate", "activations, to the first instruction", "k/s", (">=", 0.9)),
        checked("event_rate", "activations, to what a handler writes to the host", "k/s", None),
        checked("tasks", "tasks of a command queue", "k/s", (">=", 0.9)),
        checked("loop", "loads and stores in a loop", "M/s", None),
    ]


def writes(bench):
    """RDMA writes to another process, in a loop of device code and in the same loop of verbs."""
    def of(name):
        return lambda: bench.unpinned("dpa_writes")[name]
    return [Row(f"dpa-{name.replace('_', '-')}", f"DPA: RDMA writes of 64 B, {what}", "k/s", of(name),
                "the same with verbs", of(f"{name}_verbs"), (">=", 0.9), rounds=ROUNDS)
            for name, what in (("write_one", "one by one"), ("write_list", "16 to a bell"))]


def streams(bench):
    def of(program, name):
        return lambda: bench.program(program)[name]
    return [Row(f"dpa-{name}", f"DPA: {what}, checked", "k/s", of("dpa_streams", name),
                "unchecked", of("dpa_streams_unchecked", name), (">=", 0.5), rounds=ROUNDS)
            for name, what in (("sync", "messages, synchronous"),
                               ("batch", "messages in batches"),
                               ("async", "messages, asynchronous, and a flush"),
                               ("trace", "trace records"))]


def frames(bench):
    """Frames that device code sends back, beside a thread of verbs that does the same."""
    def of(where, size, kind):
        return lambda: bench.program("dpa_reflect", where, device="mlx5_1")[f"reflect_{size}_{kind}"]

    def rows(where, words):
        for size in (64, 1500):
            yield Row(f"dpa-frame-{where}-{size}", f"DPA: reflector, {size} B, {words}, unchecked", "k/s",
                      of(where, size, "unchecked"), "a thread of verbs", of(where, size, "verbs"),
                      (">=", 0.9), rounds=ROUNDS)
            yield Row(f"dpa-frame-{where}-{size}-checked", f"DPA: reflector, {size} B, {words}, checked",
                      "k/s", of(where, size, "checked"), "unchecked", of(where, size, "unchecked"),
                      (">=", 0.5), rounds=ROUNDS)
    return [*rows("near", "one process"), *rows("far", "two processes")]
