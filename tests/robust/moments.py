# SPDX-License-Identifier: BSD-2-Clause
"""Signals at random moments, for two processes in the middle of what one does for the other."""

RINGING = ("interrupted", "jumped", "forking", "polled", "stopped", "killed-0", "killed-1")
READING = ("completed", "deregistered", "failed", "killed-0", "killed-1")


def moments(programs, name, device, how, seed):
    def test(session):
        session.run_ok(str(programs / name), device, how, str(seed % 2**32))
        return f"seed {seed}"
    return test


def cases(programs, seed):
    return [(f"{what}, {how} {device}", moments(programs, name, device, how, seed))
            for device in ("mlx5_0", "mlx5_1")
            for name, what, hows in (("ringing", "in place of the engine", RINGING),
                                     ("reading", "answers put in their places", READING))
            for how in hows]
