# SPDX-License-Identifier: BSD-2-Clause
"""Calls of the preload library fail while a program walks through all kinds of objects."""
from harness import Failure, Skip, expect
import injector

HANG_LIMIT = 400  # seconds; the walk itself gives up after 90 without an answer
OBJECT = "libsofthca-preload"
WRONG_STATUS = {1: "wrong", 2: "no set-up", 3: "does not end"}


def status_text(status):
    if status < 0:
        return f"killed by signal {-status}"
    if status > 128:
        return f"killed by signal {status - 128}"
    return WRONG_STATUS.get(status, f"status {status}")


class Walk:
    """start: cold or warm, whether the first thing that the process does meets the faults."""

    def __init__(self, programs, device, start, mode):
        self.programs, self.device, self.start, self.mode = programs, device, start, mode
        self.name = f"library {device} {start} {mode}"
        self.stride = 42  # of the sample
        # Opening, where stock libraries bear little.
        self.always = 60 if start == "cold" and mode == "once" and device == "mlx5_0" else 0

    def walk(self, session, page, number):
        last = number if self.mode == "once" else injector.ENDLESS
        switches = injector.environment(page, OBJECT, number, last)
        page.hold(self.start == "warm")
        # In front of the library that `softhca run` preloads.
        shell = 'LD_PRELOAD="$0:$LD_PRELOAD" exec "$@"'
        return session.run("sh", "-c", shell, str(self.programs / "libinject.so"),
                           str(self.programs / "walk"), self.device, self.start,
                           env={**session.env, **switches}, limit=HANG_LIMIT)

    def count(self, session):
        with injector.report() as page:
            result = self.walk(session, page, 0)
            if "softhca: no such device" in result.text():
                raise Skip(f"no {self.device}")
            expect(result.status == 0, f"without faults: {status_text(result.status)}\n"
                   f"{result.text()}")
            expect(page.calls > 0, "the injector counts nothing")
            return page.calls

    def run(self, session, number):
        with injector.report() as page:
            try:
                result = self.walk(session, page, number)
            except Failure as failure:
                raise Failure(f"{page}: {failure}")
            if result.status != 0 or not result.out.endswith("done\n"):
                raise Failure(f"{status_text(result.status)}, {page}\n{result.text()}")
            session.expect_clean()


def kinds(programs):
    return [Walk(programs, device, start, mode) for device in ("mlx5_0", "mlx5_1")
            for start in ("cold", "warm") for mode in ("once", "on")]
