# SPDX-License-Identifier: BSD-2-Clause
"""One script for device code and for a plain verbs program, on a port that is tied to a file: what the one
sends is byte for byte what the other sends."""
import os

import remote
import ties

from harness import Skip, expect

FRAME_HEADERS = 54  # remote.h
# The frame's bytes; how many data segments; inlined.
FRAMES = ((60, 1, 0), (61, 1, 0), (1514, 1, 0), (1514, 2, 0), (1501, 3, 0), (257, 4, 0),
          (60, 1, 1), (64, 1, 1), (55, 2, 1))
# Segments of a large send: how many, each one's payload, the last one's; how many data segments.
LARGE = ((1, 1000, 1000, 1), (3, 1000, 1, 1), (6, 1460, 777, 1), (4, 500, 333, 4))
# Requests of many frames: how many, their bytes.
ROWS = ((1, 60), (5, 200), (13, 99))


def frame_script():
    """Lines, and how many frames come of them."""
    lines, frames = [], 0

    def order(*words, count):
        nonlocal frames
        lines.append(" ".join(map(str, words)))
        lines.append(f"done {count}")
        frames += count

    for checksums in (0, 1):
        for number, (size, pieces, inlined) in enumerate(FRAMES):
            lines.append(f"template 0 {size} {number}")
            order("frame", 0, size, checksums, 0, 0, pieces, inlined, count=1)
        for count, size in ROWS:
            lines += [f"template {i * size} {size} {i}" for i in range(count)]
            order("row", 0, size, checksums, count, count=count)
    for segments, mss, last, pieces in LARGE:
        size = FRAME_HEADERS + (segments - 1) * mss + last
        lines.append(f"template 0 {size} {segments}")
        order("frame", 0, size, 1, FRAME_HEADERS, mss, pieces, count=1)
        frames += segments - 1
    return lines, frames


def capture(session, script, frames, *program):
    """What the program sends of that script."""
    path, lines = session.runtime / "sent.pcap", session.runtime / "script"
    lines.write_text("\n".join(script) + "\n")
    ties.tie(session, "mlx5_0", f"out={path}")
    with lines.open() as stdin:
        session.run_ok(*map(str, program), stdin=stdin)
    ties.counted(session, out=frames, out_dropped=0)
    expect(session.tool("fabric", "untie", "mlx5_0").status == 0, "untie")
    sent = ties.frames_of(path)
    expect(len(sent) == frames, f"{len(sent)} frames, not {frames}")
    path.unlink()
    lines.unlink()
    return sent


def compare(ours, theirs):
    expect(len(ours) == len(theirs), f"{len(ours)} of the DPA, {len(theirs)} of verbs")
    for number, (our, their) in enumerate(zip(ours, theirs)):
        expect(our == their, f"packet {number} of the DPA {our.hex()}\nof verbs {their.hex()}")


def frames(session):
    if os.geteuid() != 0:
        raise Skip("raw packet queues need root")
    place = remote.PROGRAMS.place(session)
    script, count = frame_script()
    with ties.fabric(session):
        ours = capture(session, script, count, place / "host", "script_frames")
        theirs = capture(session, script, count, place / "peer", "eth", "raw")
    compare(ours, theirs)
    # Each kind of length is there, and not all frames are one.
    expect(len(set(ours)) > count // 2 and {60, 61, 1514} <= set(map(len, ours)), "poor captures")


def cases():
    return [("captured: frames of a send queue, inline, gathered, cut, in rows, are those of verbs J188 J189", frames)]
