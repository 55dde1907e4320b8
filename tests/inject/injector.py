# SPDX-License-Identifier: BSD-2-Clause
"""The injector's switches and its report; see inject.h."""
import contextlib
import mmap
import struct
import tempfile

FORMAT = struct.Struct("=QQIIQ24s")  # struct inject_report
ENDLESS = 0  # no last call: all that follow fail


class Report:
    """A page that the injector writes and whose switch it obeys."""

    def __init__(self):
        self.file = tempfile.NamedTemporaryFile(prefix="softhca-inject.")
        self.file.truncate(mmap.PAGESIZE)
        self.page = mmap.mmap(self.file.fileno(), mmap.PAGESIZE)

    def close(self):
        self.page.close()
        self.file.close()

    def fields(self):
        return FORMAT.unpack_from(self.page)

    @property
    def calls(self):
        return self.fields()[0]

    @property
    def failed(self):
        return self.fields()[1]

    def hold(self, on):
        struct.pack_into("=I", self.page, 16, on)

    def __str__(self):
        _, failed, _, _, offset, name = self.fields()
        if not failed:
            return "no call failed"
        return f"{failed} failed, the first: {name.rstrip(bytes(1)).decode()} at {offset:#x}"


@contextlib.contextmanager
def report():
    page = Report()
    try:
        yield page
    finally:
        page.close()


def environment(page, into, first, last):
    """first 0: nothing fails."""
    return {"INJECT_INTO": into, "INJECT_FIRST": str(first), "INJECT_LAST": str(last),
            "INJECT_REPORT": page.file.name}
