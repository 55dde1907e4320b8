# SPDX-License-Identifier: BSD-2-Clause
"""One script for device code and for a plain verbs program, on a port that is tied to a file: what the one
sends is byte for byte what the other sends, and says what was asked for."""
import collections
import os

import remote
import roce_frames
import ties

from harness import Skip, expect

UDP, IPV6 = 1, 2  # remote.h: FRAME_UDP, FRAME_IPV6
# The frame's bytes; how many data segments; inlined.
FRAMES = ((60, 1, 0), (61, 1, 0), (1514, 1, 0), (1514, 2, 0), (1501, 3, 0), (257, 4, 0),
          (60, 1, 1), (64, 1, 1), (55, 2, 1))
# Likewise of other forms.
FORMED = ((74, 1, 0), (75, 2, 0), (1514, 1, 0), (1513, 4, 0), (77, 1, 1))
# Segments of a large send: how many, each one's payload, the last one's; how many data segments; the form.
LARGE = ((1, 1000, 1000, 1, 0), (3, 1000, 1, 1, 0), (6, 1460, 777, 1, 0), (4, 500, 333, 4, 0),
         (1, 1000, 1000, 1, IPV6), (5, 1440, 778, 1, IPV6), (3, 501, 1, 4, IPV6))
# Requests of many frames: how many, their bytes.
ROWS = ((1, 60), (5, 200), (13, 99))


def frame_script():
    """Lines, and of each frame that comes of them whether it has checksums."""
    lines, frames = [], []

    def order(*words, count=1, sent=None):
        lines.append(" ".join(map(str, words)))
        lines.append(f"done {count}")
        frames.extend([bool(words[3])] * (sent or count))

    for checksums in (0, 1):
        for form, shapes in ((0, FRAMES), (UDP, FORMED), (IPV6, FORMED), (UDP | IPV6, FORMED)):
            for number, (size, pieces, inlined) in enumerate(shapes):
                lines.append(f"template 0 {size} {number} {form}")
                order("frame", 0, size, checksums, 0, 0, pieces, inlined)
        for count, size in ROWS:
            lines += [f"template {i * size} {size} {i} {i % 4 if size > 74 else 0}" for i in range(count)]
            order("row", 0, size, checksums, count, count=count)
    for segments, mss, last, pieces, form in LARGE:
        headers = 14 + (40 if form & IPV6 else 20) + 20
        size = headers + (segments - 1) * mss + last
        lines.append(f"template 0 {size} {segments} {form}")
        order("frame", 0, size, 1, headers, mss, pieces, sent=segments)
    return lines, frames


def has_checksums(frame):
    """Those of IP and of what it carries are right, which the sums of all that they are of say."""
    if frame[12:14] == b"\x86\xdd":
        addresses, protocol, data = frame[22:54], frame[20], frame[54:]
    else:
        addresses, protocol, data = frame[26:34], frame[23], frame[34:14 + int.from_bytes(frame[16:18], "big")]
        if roce_frames.ones_sum(frame[14:34]) != 0xffff:
            return False
    pseudo = addresses + bytes((0, protocol)) + len(data).to_bytes(2, "big")
    return roce_frames.ones_sum(pseudo + data + bytes(len(data) % 2)) == 0xffff


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
    script, asked = frame_script()
    count = len(asked)
    with ties.fabric(session):
        ours = capture(session, script, count, place / "host", "script_frames")
        theirs = capture(session, script, count, place / "peer", "eth", "raw")
    compare(ours, theirs)
    for number, (frame, checksums) in enumerate(zip(ours, asked)):
        expect(has_checksums(frame) == checksums, f"checksums of frame {number}: {frame.hex()}")
    # Each kind of length is there, and not all frames are one.
    expect(len(set(ours)) > count // 2 and {60, 61, 1514} <= set(map(len, ours)), "poor captures")


# ---- packets of queue pairs, to somebody out of the fabric who never answers ----

STATION = bytes((2, 0, 0, 0, 5, 5))
QPN, FIRST_PSN, MTU = 0x123456, 0xfffffd, 1024  # numbers begin again
REMOTE, KEY, IMM, SWAP, COMPARE = 0x7f0011223344, 0xcafe0100, 0x01020304, 0x1122334455667788, 0x99aabbccddeeff00
WRITE, WRITE_IMM, SEND, SEND_IMM, READ, SWAPS, ADDS = range(7)  # enum ibv_wr_opcode
NAMES = {WRITE: "WRITE", WRITE_IMM: "WRITE", SEND: "SEND", SEND_IMM: "SEND"}
# Opcode and bytes of messages.
MESSAGES = {
    "rc": ((SEND, 1), (SEND_IMM, 3000), (WRITE, 1025), (WRITE_IMM, 2), (READ, 4000), (SWAPS, 8), (ADDS, 8),
           (SEND_IMM, 1024)),
    "uc": ((SEND_IMM, 7), (SEND, 2049), (WRITE, 1024), (WRITE, 3333), (WRITE_IMM, 2), (WRITE_IMM, 4096)),
    "ud": ((SEND, 1), (SEND, 1024), (SEND_IMM, 999), (SEND, 3), (SEND_IMM, 1)),
}
# Index of the own address, the other one's, and the UDP port that is asked for.
V1 = (0, roce_frames.link_local(STATION), 0)
V2 = (1, roce_frames.link_local(STATION), 0xc123)
ANY_PORT = (1, roce_frames.link_local(STATION), 0)
LABEL = 0xabcde
LABELLED = (1, roce_frames.link_local(STATION), 0, LABEL)
IPV4 = (3, roce_frames.mapped("203.0.113.9"), 0xffff)  # no ARP, as the program says the MAC


def port_of_label(label):
    """As the kernel's rdma_get_udp_sport."""
    return 0xc000 | label & 0x3fff ^ label >> 14


# The port of an address that verbs makes is that of its label, which a request of device code says itself.
LABELLED_PORT = (*V2[:2], port_of_label(LABEL), LABEL)


def packet_script(transport, gid_index, dgid, port, label=0):
    lines = ["fill 0 8192 3", f"from {gid_index} {port} 0 {label}", f"connect {QPN} 0 {dgid.hex()} 3 0 {FIRST_PSN} 4"]
    for opcode, size in MESSAGES[transport]:
        compare = COMPARE if opcode == SWAPS else 0
        lines.append(f"post {opcode} {size % 5} {size} {REMOTE} {KEY} {IMM} {SWAP} {compare}")
    lines.append(f"{'lost' if transport == 'rc' else 'done'} {len(MESSAGES[transport])}")
    return lines


def packets_of(transport, opcode, size):
    """Operations of a message and what each carries; how many numbers it takes."""
    if opcode == READ:
        return [("READ_REQUEST", b"")], -(-size // MTU)
    if opcode in (SWAPS, ADDS):
        return [("SWAP" if opcode == SWAPS else "ADD", b"")], 1
    data = bytes((3 + 7 * i) & 0xff for i in range(8192))[size % 5:][:size]
    parts = [data[i:i + MTU] for i in range(0, size, MTU)] or [b""]
    names = ["FIRST", *["MIDDLE"] * (len(parts) - 2), "LAST"] if len(parts) > 1 else ["ONLY"]
    if opcode in (WRITE_IMM, SEND_IMM):
        names[-1] += "_IMM"
    return [(f"{NAMES[opcode]}_{name}", part) for name, part in zip(names, parts)], len(parts)


def expected(transport):
    """What is to be sent, by numbers."""
    packets, psn = {}, FIRST_PSN
    for opcode, size in MESSAGES[transport]:
        parts, numbers = packets_of(transport, opcode, size)
        for i, (operation, payload) in enumerate(parts):
            packets[(psn + i) & 0xffffff] = operation, payload, size
        psn += numbers
    return packets


def first_of_each(sent):
    """What is not answered is sent again: the first of each number."""
    frames = collections.OrderedDict()
    for data in sent:
        if roce_frames.is_roce(data):
            frames.setdefault(roce_frames.take(data).psn, data)
    return frames


def look_at(data, transport, way, want, own, own_qpn):
    """A frame says what was posted, what was asked for and, if it is a datagram, who sends it."""
    gid_index, dgid, port, label = *way, *[0] * (4 - len(way))
    f, (operation, payload, size) = roce_frames.take(data), want
    expect(f.kind == ("v1" if gid_index == 0 else "ipv4" if gid_index == 3 else "ipv6"), f"its kind {f}")
    expect((f.transport, f.operation, f.qpn, f.payload) == (transport, operation, QPN, payload), f"{f}, not {want}")
    expect((f.sgid, f.dgid, f.hops) == (own, dgid, 64), f"its addresses {f}")
    expect(f.flow_label == label, f"its label {f}")
    expect(f.from_qpn == (own_qpn if transport == "ud" else 0), f"who sends it {f}")
    if f.kind != "v1":
        wanted = port or (label and port_of_label(label))
        expect(f.sport == wanted if wanted else f.sport >= 0xc000, f"its port {f}")
    forms = roce_frames.OPERATIONS[roce_frames.NUMBERS[operation]][1]
    if "reth" in forms:
        expect((f.va, f.rkey, f.length) == (REMOTE, KEY, size), f"what it is for {f}")
    if "atomic" in forms:
        values = (SWAP, COMPARE) if operation == "SWAP" else (SWAP, 0)
        expect((f.va, f.rkey) == (REMOTE, KEY) and f.swap_add == values[0], f"an atomic {f}")
        expect(operation == "ADD" or f.compare == COMPARE, f"an atomic {f}")
    expect(f.imm == (IMM if "imm" in forms else 0), f"immediate data {f}")


def frames_sent(session, script, count, program):
    """At least so many, and the number of the queue pair that the program has."""
    path, lines = session.runtime / "sent.pcap", session.runtime / "script"
    lines.write_text("\n".join(script) + "\n")
    ties.tie(session, "mlx5_0", f"out={path}")
    with lines.open() as stdin:
        words = session.run_ok(*map(str, program), stdin=stdin).out.split()
    expect(words[:1] == ["peer"], f"the program does not say who it is, but {words}")
    ties.counted_at_least(session, "out", count)
    expect(session.tool("fabric", "untie", "mlx5_0").status == 0, "untie")
    sent = ties.frames_of(path)
    path.unlink()
    lines.unlink()
    return sent, int(words[1])


def packets_sent(session, transport, way, program):
    wanted = expected(transport)
    sent, own_qpn = frames_sent(session, packet_script(transport, *way), len(wanted), program)
    frames = first_of_each(sent)
    own = bytes.fromhex(ties.port_of(session)["gids"][way[0]]["gid"].replace(":", ""))
    expect(list(frames) == list(wanted), f"numbers {[hex(n) for n in frames]}")
    for psn, want in wanted.items():
        look_at(frames[psn], transport, way, want, own, own_qpn)
    return frames, own_qpn


def in_the_name_of(data, qpn):
    """A datagram says who sends it: the same one of that queue pair."""
    f = roce_frames.take(data)
    expect(roce_frames.make(f) == data, f"made anew it differs: {data.hex()}")
    f.from_qpn = qpn
    return roce_frames.make(f)


def packets(session):
    """Of RC, UC and UD, for kinds of addresses and UDP ports: what is posted, and the same as of verbs."""
    place = remote.PROGRAMS.place(session)
    with ties.fabric(session):
        for transport, way, verbs_way in (("rc", V1, V1), ("rc", V2, V2), ("uc", V2, V2), ("ud", V1, V1),
                                          ("ud", LABELLED_PORT, LABELLED)):
            theirs, qpn = packets_sent(session, transport, verbs_way, (place / "peer", "eth", transport))
            for generation in ("host", "later"):
                ours, _ = packets_sent(session, transport, way, (place / generation, f"script_{transport}"))
                sent = list(ours.values())
                if transport == "ud":
                    sent = [in_the_name_of(data, qpn) for data in sent]
                compare(sent, list(theirs.values()))
        packets_sent(session, "ud", V2, (place / "host", "script_ud"))
        packets_sent(session, "uc", LABELLED, (place / "peer", "eth", "uc"))
        for way in (ANY_PORT, IPV4):
            packets_sent(session, "uc", way, (place / "host", "script_uc"))


def retries(session):
    """What nobody answers goes once, and again as often as was asked for."""
    place = remote.PROGRAMS.place(session)
    gid_index, dgid, port = V2
    with ties.fabric(session):
        for count in (0, 1, 3):
            script = (f"from {gid_index} {port} {count}", f"connect {QPN} 0 {dgid.hex()} 3 0 {FIRST_PSN} 4",
                      f"post {SEND} 0 100", "lost 1")
            sent, _ = frames_sent(session, script, count + 1, (place / "host", "script_rc"))
            numbers = [roce_frames.take(data).psn for data in sent if roce_frames.is_roce(data)]
            expect(numbers == [FIRST_PSN] * (count + 1), f"{len(numbers)} packets for {count} retries: {numbers}")


def cases():
    return [("captured: frames of a send queue, inline, gathered, cut, in rows, are those of verbs J188 J189", frames),
            ("captured: packets of queue pairs, by address, UDP port and operation, are those of verbs K204", packets),
            ("captured: retries, as many as were asked for K213", retries)]
