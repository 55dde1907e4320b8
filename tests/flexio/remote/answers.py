# SPDX-License-Identifier: BSD-2-Clause
"""Device code's queue pair, of each generation, and a plain verbs one are asked the same by somebody out of the fabric:
what the one answers is byte for byte what the other answers."""
import pathlib

import remote
import ties


def answers(session):
    """The one who asks is at the other end of a TAP interface, which needs a network namespace."""
    ties.inside(session, pathlib.Path(__file__).resolve().with_name("answers_inside.py"),
                remote.PROGRAMS.place(session))


def cases():
    return [("captured: answers of queue pairs, to requests that are good, doubled, early and forbidden, are those of "
             "verbs", answers)]
