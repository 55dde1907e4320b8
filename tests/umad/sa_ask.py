#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A client of subnet administration by libibumad.  Each line of the file that is named is a request as
JSON: method, attribute, mask, modifier, key (of the SM), pkey_index and data (hexadecimal).  Each line of the output is
its answer: status and records (hexadecimal), or null if there is none."""
import ctypes
import json
import pathlib
import sys

DEVICE = pathlib.Path("/sys/class/infiniband")
CLASS, VERSION = 3, 2
AT_KEY, AT_OFFSET, AT_MASK, AT_DATA = 36, 44, 48, 56
TIMEOUT_MS = 500  # how long silence is listened to, and a busy SA waited for
RETRIES = 3
MOST = 64 << 20  # bytes of an answer

umad = ctypes.CDLL("libibumad.so.3")
umad.umad_get_mad.restype = ctypes.c_void_p


class Client:
    def __init__(self):
        umad.umad_init()
        (name,) = [path.name for path in DEVICE.iterdir()]
        port = int((DEVICE / name / "node_type").read_text()[0] != "2")
        files = DEVICE / name / "ports" / str(port)
        self.sm = int((files / "sm_lid").read_text(), 0)
        self.fd = umad.umad_open_port(name.encode(), port)
        assert self.fd >= 0, "umad_open_port"
        self.agent = umad.umad_register(self.fd, CLASS, VERSION, 1, None)
        assert self.agent >= 0, "umad_register"
        self.header = umad.umad_size()
        self.tid = 0

    def send(self, request):
        mad = bytearray(256)
        mad[:4] = 1, CLASS, VERSION, request["method"]
        self.tid += 1
        mad[8:16] = self.tid.to_bytes(8, "big")
        mad[16:18] = request["attribute"].to_bytes(2, "big")
        mad[20:24] = request.get("modifier", 0).to_bytes(4, "big")
        mad[AT_KEY:AT_OFFSET] = request.get("key", 0).to_bytes(8, "big")
        mad[AT_MASK:AT_DATA] = request.get("mask", 0).to_bytes(8, "big")
        data = bytes.fromhex(request.get("data", ""))
        mad[AT_DATA:AT_DATA + len(data)] = data
        letter = ctypes.create_string_buffer(bytes(self.header) + bytes(mad))
        assert umad.umad_set_addr(letter, self.sm, 1, 0, 0x80010000) == 0
        assert umad.umad_set_pkey(letter, request.get("pkey_index", 0)) == 0
        assert umad.umad_send(self.fd, self.agent, letter, 256, TIMEOUT_MS, RETRIES) == 0, "umad_send"

    def receive(self):
        """The MAD, or None if the request ended without an answer."""
        room = 256
        while True:
            length = ctypes.c_int(room)
            letter = ctypes.create_string_buffer(self.header + room)
            if umad.umad_recv(self.fd, letter, ctypes.byref(length), -1) >= 0:
                break
            assert room < length.value <= MOST, f"umad_recv: {length.value} bytes"
            room = length.value
        if umad.umad_status(letter):
            return None
        return letter.raw[self.header:self.header + length.value]

    def ask(self, request):
        self.send(request)
        mad = self.receive()
        if mad is None:
            return None
        each = int.from_bytes(mad[AT_OFFSET:AT_OFFSET + 2], "big") * 8
        table = mad[24] == 1 and mad[26] & 1
        data = mad[AT_DATA:] if table else mad[AT_DATA:AT_DATA + each]
        return {"status": int.from_bytes(mad[4:6], "big"),
                "records": [data[at:at + each].hex() for at in range(0, len(data), each)] if each else []}


def main():
    client = Client()
    for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
        print(json.dumps(client.ask(json.loads(line))), flush=True)


main()
