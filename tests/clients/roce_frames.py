# SPDX-License-Identifier: BSD-2-Clause
"""Frames of RoCE by the specification, apart from the code that is tested: made, taken apart, and held against
what the headers say of each other."""
import dataclasses
import ipaddress
import struct
import zlib

from harness import expect

UDP_PORT = 4791
ETHERTYPES = {0x0800: "ipv4", 0x86dd: "ipv6", 0x8915: "v1"}
BTH, DETH, XRCETH, AETH = 12, 8, 4, 4

# Operations as IBTA table 38 has them (the low five bits), with what stands behind the BTH.
OPERATIONS = {
    0x00: ("SEND_FIRST", ()), 0x01: ("SEND_MIDDLE", ()), 0x02: ("SEND_LAST", ()),
    0x03: ("SEND_LAST_IMM", ("imm",)), 0x04: ("SEND_ONLY", ()), 0x05: ("SEND_ONLY_IMM", ("imm",)),
    0x06: ("WRITE_FIRST", ("reth",)), 0x07: ("WRITE_MIDDLE", ()), 0x08: ("WRITE_LAST", ()),
    0x09: ("WRITE_LAST_IMM", ("imm",)), 0x0a: ("WRITE_ONLY", ("reth",)),
    0x0b: ("WRITE_ONLY_IMM", ("reth", "imm")), 0x0c: ("READ_REQUEST", ("reth",)),
    0x0d: ("READ_FIRST", ("aeth",)), 0x0e: ("READ_MIDDLE", ()), 0x0f: ("READ_LAST", ("aeth",)),
    0x10: ("READ_ONLY", ("aeth",)), 0x11: ("ACK", ("aeth",)), 0x12: ("ATOMIC_ACK", ("aeth", "atomic_ack")),
    0x13: ("SWAP", ("atomic",)), 0x14: ("ADD", ("atomic",)),
}
ANSWERS = range(0x0d, 0x13)
NUMBERS = {name: number for number, (name, _) in OPERATIONS.items()}
TRANSPORTS = {0x00: "rc", 0x20: "uc", 0x60: "ud", 0xa0: "xrc"}
CODES = {name: code for code, name in TRANSPORTS.items()}
# Of the header: members of a frame, and how they are packed.
FORMS = {
    "imm": (">I", ("imm",)), "reth": (">QII", ("va", "rkey", "length")),
    "atomic": (">QIQQ", ("va", "rkey", "swap_add", "compare")), "atomic_ack": (">Q", ("original",)),
}


@dataclasses.dataclass
class Frame:
    """What a frame says; what its operation has no header for is 0."""
    kind: str = "ipv6"
    dmac: bytes = bytes(6)
    smac: bytes = bytes(6)
    sgid: bytes = bytes(16)
    dgid: bytes = bytes(16)
    traffic_class: int = 0
    flow_label: int = 0
    hops: int = 64
    sport: int = 0xc000
    transport: str = "rc"
    operation: str = "ACK"
    solicited: bool = False
    pkey: int = 0xffff
    qpn: int = 0
    ack: bool = False
    psn: int = 0
    qkey: int = 0
    from_qpn: int = 0
    srqn: int = 0
    va: int = 0
    rkey: int = 0
    length: int = 0
    swap_add: int = 0
    compare: int = 0
    syndrome: int = 0
    msn: int = 0
    original: int = 0
    imm: int = 0
    payload: bytes = b""


def invariant_crc(frame, kind):
    """Of the whole frame, whose last four bytes it is to be: IBTA A16.5.1 (v1), A17.3.3 (v2)."""
    data = bytearray(frame[14:-4])
    if kind == "ipv4":
        data[1] = data[8] = 0xff
        data[10:12] = data[26:28] = b"\xff\xff"
        bth = 28
    else:
        data[0] |= 0x0f
        data[1:4] = b"\xff\xff\xff"
        data[7] = 0xff
        bth = 40
        if kind == "ipv6":
            data[46:48] = b"\xff\xff"
            bth = 48
    data[bth + 4] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + data))


def ones_sum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def transport_headers(f):
    out = b""
    if f.transport == "ud":
        out += struct.pack(">II", f.qkey, f.from_qpn)
    if f.transport == "xrc" and NUMBERS[f.operation] not in ANSWERS:
        out += struct.pack(">I", f.srqn)
    for form in OPERATIONS[NUMBERS[f.operation]][1]:
        if form == "aeth":
            out += struct.pack(">I", f.syndrome << 24 | f.msn)
        else:
            pattern, members = FORMS[form]
            out += struct.pack(pattern, *(getattr(f, m) for m in members))
    return out


def make(f):
    pad = -len(f.payload) % 4
    bth = struct.pack(">BBHII", CODES[f.transport] | NUMBERS[f.operation],
                      0x80 * f.solicited | 0x40 | pad << 4, f.pkey, f.qpn, f.ack << 31 | f.psn)
    behind = bth + transport_headers(f) + f.payload + bytes(pad) + bytes(4)
    if f.kind != "v1":
        behind = struct.pack(">HHHH", f.sport, UDP_PORT, 8 + len(behind), 0) + behind
    if f.kind == "ipv4":
        head = struct.pack(">BBHHHBBH", 0x45, f.traffic_class, 20 + len(behind), 0, 0x4000, f.hops, 17, 0)
        head += f.sgid[12:] + f.dgid[12:]
        head = head[:10] + struct.pack(">H", 0xffff - ones_sum(head)) + head[12:]
    else:
        head = struct.pack(">IHBB", 6 << 28 | f.traffic_class << 20 | f.flow_label, len(behind),
                           0x1b if f.kind == "v1" else 17, f.hops) + f.sgid + f.dgid
    ethertype = next(n for n, kind in ETHERTYPES.items() if kind == f.kind)
    frame = f.dmac + f.smac + struct.pack(">H", ethertype) + head + behind
    return frame[:-4] + invariant_crc(frame, f.kind)


def is_roce(data):
    kind = ETHERTYPES.get(int.from_bytes(data[12:14], "big"))
    if kind == "v1":
        return True
    at = {"ipv4": 14 + 9, "ipv6": 14 + 6}.get(kind)
    udp = {"ipv4": 34, "ipv6": 54}.get(kind)
    return bool(at) and len(data) > udp + 4 and data[at] == 17 and \
        int.from_bytes(data[udp + 2:udp + 4], "big") == UDP_PORT


def take_routing(data, f):
    """The frame's own length is that of its headers: nobody has filled it up."""
    if f.kind == "ipv4":
        expect(data[14] == 0x45 and data[23] == 17 and ones_sum(data[14:34]) == 0xffff, "IPv4: its header")
        expect(data[18:22] == b"\0\0\x40\0", "IPv4: to be cut nowhere")
        expect(int.from_bytes(data[16:18], "big") == len(data) - 14, "IPv4: its length")
        f.traffic_class, f.hops = data[15], data[22]
        f.sgid, f.dgid = (bytes(10) + b"\xff\xff" + data[at:at + 4] for at in (26, 30))
        at = 34
    else:
        expect(data[14] >> 4 == 6 and data[20] == (0x1b if f.kind == "v1" else 17), "GRH, IPv6: what is next")
        expect(int.from_bytes(data[18:20], "big") == len(data) - 54, "GRH, IPv6: its length")
        word = int.from_bytes(data[14:18], "big")
        f.traffic_class, f.flow_label, f.hops = word >> 20 & 0xff, word & 0xfffff, data[21]
        f.sgid, f.dgid = data[22:38], data[38:54]
        at = 54
    if f.kind != "v1":
        f.sport, port, length, checksum = struct.unpack_from(">HHHH", data, at)
        expect(port == UDP_PORT and length == len(data) - at and not checksum, "UDP: its header")
        at += 8
    return at


def take(data):
    """Of a frame that is_roce; fails if anything in it is not as it has to be."""
    f = Frame(kind=ETHERTYPES[int.from_bytes(data[12:14], "big")], dmac=data[:6], smac=data[6:12])
    at = take_routing(data, f)
    opcode, bits, f.pkey, qpn, psn = struct.unpack_from(">BBHII", data, at)
    f.transport = TRANSPORTS.get(opcode & 0xe0)
    f.operation, forms = OPERATIONS.get(opcode & 0x1f, (None, ()))
    expect(f.transport and f.operation, f"an opcode 0x{opcode:02x}")
    expect(not bits & 0x0f and not qpn >> 24 and not psn >> 24 & 0x7f, "BTH: version and what is reserved")
    f.solicited, f.qpn, f.ack, f.psn = bool(bits & 0x80), qpn, bool(psn >> 31), psn & 0xffffff
    at += BTH
    if f.transport == "ud":
        f.qkey, f.from_qpn = struct.unpack_from(">II", data, at)
        at += DETH
    if f.transport == "xrc" and opcode & 0x1f not in ANSWERS:
        f.srqn = int.from_bytes(data[at:at + 4], "big")
        at += XRCETH
    for form in forms:
        if form == "aeth":
            word = int.from_bytes(data[at:at + 4], "big")
            f.syndrome, f.msn = word >> 24, word & 0xffffff
            at += AETH
            continue
        pattern, members = FORMS[form]
        for member, value in zip(members, struct.unpack_from(pattern, data, at)):
            setattr(f, member, value)
        at += struct.calcsize(pattern)
    pad = bits >> 4 & 3
    end = len(data) - 4 - pad
    expect(at <= end and not (end - at + pad) % 4 and not any(data[end:-4]), "padding")
    f.payload = data[at:end]
    expect(data[-4:] == invariant_crc(data, f.kind), f"the CRC of {data.hex()}")
    return f


def mapped(address):
    """The GID of an address of IPv4 or IPv6."""
    a = ipaddress.ip_address(address)
    return bytes(10) + b"\xff\xff" + a.packed if a.version == 4 else a.packed


def link_local(mac):
    return b"\xfe\x80" + bytes(6) + bytes((mac[0] ^ 2,)) + mac[1:3] + b"\xff\xfe" + mac[3:]
