# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the table that bench/run prints: how they are measured, judged and shown."""
import dataclasses
import statistics
import subprocess
import typing

from harness import Failure


class Missing(Exception):
    """What the measurement needs is not on this machine, a program or time."""


@dataclasses.dataclass
class Row:
    key: str
    what: str
    unit: str
    ours: typing.Callable
    peer_name: str
    peer: typing.Callable  # None: the target is a figure, not a ratio
    # ("<=" or ">=", number), of the ratio, or of the figure itself: see absolute; None: only printed
    target: tuple
    note: typing.Callable = None  # a line of further figures of the last round
    rounds: int = 5
    absolute: bool = False  # the peer is there for comparison

    def met(self, mine, ratio):
        figure = ratio if self.relative() and ratio else mine
        return figure <= self.target[1] if self.target[0] == "<=" else figure >= self.target[1]

    def relative(self):
        return self.peer and not self.absolute

    def target_text(self):
        if not self.target:
            return "-"
        return f"{self.target[0]} {self.target[1]:g}{' x' if self.relative() else ''}"


# ---- measuring ----

@dataclasses.dataclass
class Samples:
    ours: list = dataclasses.field(default_factory=list)
    peer: list = dataclasses.field(default_factory=list)
    trouble: Exception = None
    peer_trouble: Exception = None


def sample(measure, into):
    """What is in the way of a measurement, or None."""
    try:
        into.append(measure())
    except (Failure, Missing, subprocess.TimeoutExpired, LookupError, OSError) as error:
        return error
    return None


def measure_group(benches, rows, rounds):
    """Subject and peer in turn, so that a disturbance of the machine meets both.  rounds: None: as
    many as the rows want."""
    found = {row.key: Samples() for row in rows}
    for _ in range(rounds or max((row.rounds for row in rows), default=0)):
        for bench in benches:
            bench.shared = {}
        for row in rows:
            s = found[row.key]
            if not s.trouble:
                s.trouble = sample(row.ours, s.ours)
            if row.peer and not s.trouble and not s.peer_trouble:
                s.peer_trouble = sample(row.peer, s.peer)
    return found


def first_line(error):
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def show(row, s):
    """Prints the row; False if a measurement did not work at all."""
    if s.trouble:
        word = "not measured" if isinstance(s.trouble, Missing) else "failed"
        print(f"{row.what:48} {word}: {first_line(s.trouble)}", flush=True)
        return word != "failed"
    mine = statistics.median(s.ours)
    theirs = statistics.median(s.peer) if s.peer else None
    judged = row.target and (theirs or not row.relative())
    # Round by round: the machine is the same for the two of a round, more or less.
    ratio = statistics.median(a / b for a, b in zip(s.ours, s.peer)) if s.peer else None
    mark = ("met" if row.met(mine, ratio) else "MISSED") if judged else "-"
    print(f"{row.what:48} {mine:10.2f} {f'{theirs:.2f}' if theirs else '-':>10} {row.unit:7}"
          f"{f'{ratio:.2f}' if ratio else '-':>7}  {row.target_text():>9} {mark:7}"
          f"{row.peer_name if row.peer else 'no peer'}".rstrip(), flush=True)
    if s.peer_trouble:
        print(f"    peer not measured: {first_line(s.peer_trouble)}")
    if row.note:
        print(f"    {row.note()}")
    return not s.peer_trouble or isinstance(s.peer_trouble, Missing)
