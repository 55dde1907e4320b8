# SPDX-License-Identifier: BSD-2-Clause
"""Cases of one host program, each a run of it under softhca."""
import pathlib

from hosts import HostProgram

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ("host.c", "host_queue.c", "host_handler.c", "host_thread.c", "host_key.c", "host_busy.c", "host_eq.c",
           "host_places.c", "peer.c", "../../support/verbs_device.c")

CASES = (
    ("peer", "completions of messages of a verbs program in the process F92 F95 F97 F98 F101 H136 H139 H145"),
    ("other_process", "completions of messages of a verbs program in another process F97 F98 H138 H139"),
    ("rearm", "arming after the last look, and before the end, loses nothing F99 F100 H151"),
    ("arming", "queues that are armed, not armed, always armed, by calls H144 H145 H146 E90"),
    ("passes", "owner bits and consumer index over several passes, all depths H138 H150 H154"),
    ("collapsed", "collapsed queues, and overrun H147 H148 H149"),
    ("not_dpa", "queues that activate nobody, rings in memory of the host H152 H153"),
    ("moderation", "moderation H155 H156 H157"),
    ("event_queue", "event queues of the program's own: entries, arming, vectors, overrun"),
    ("event_queue_device", "an event queue whose entries the DPA consumes"),
    ("event_queue_types", "events that are no completions, and what cannot be"),
    ("event_queue_host", "events of an event queue of the host's go to who subscribed H136"),
    ("event_queue_messages", "messages and bells in turns give events of a queue of the program's own"),
    ("msix", "a handler raises a vector of the host's by a queue in its memory"),
    ("page", "a queue that the host arms in its page, and pages that cannot be"),
    ("refused", "attributes that cannot be H158 H161"),
    ("places", "rings, records and UARs that a card would not take are named in the log"),
    ("in_use", "what is in use stays F113 H159 M231"),
    ("handlers", "handlers, their numbers and storage F93 F94 F96 F111 F112 F115 F118 F119 F120 F122"),
    ("groups", "handlers of a group share its units F121"),
    ("two_queues", "one handler of two queues, and a finished one F103 F104 F116"),
    ("yields", "a handler that yields goes on behind the call, if it may F107 F108"),
    ("ends", "nothing comes behind an end F109"),
    ("one_thread", "a queue activates one handler F117"),
    ("other_context", "a queue of another context in memory of the process H137"),
    ("aliases", "what is made by an alias outlives the process"),
    ("beside", "calls return while a handler is at work on messages E89"),
    ("watched", "an entry is whole when its owner changes H143"),
    ("odd_bells", "bells that nothing hears do no harm P290 P291"),
    ("keys", "keys of DPA memory in requests of queue pairs: rights and domains C48 D72 D75 D76"),
    ("other_domains", "keys and windows of domains of another context H137"),
    ("window_lists", "windows copy from and to keys of many pieces L218 L221 L222"),
    ("outboxes", "UARs and outboxes M231 M232 M233 M234 M236"),
    ("extended", "a UAR of another device M235"),
    ("busy_ends", "everything at once"),
    ("busy_exits", "a program exits while device code runs"),
    ("busy_execs", "a program becomes another one while device code runs"),
    ("busy_forks", "children come and go while device code runs"),
    ("left", "a process goes with all that it has F114 C53"),
)


PROGRAMS = HostProgram(HERE, SOURCES)


def case(name):
    def run(session):
        session.run_ok(str(PROGRAMS.host(session)), name, env={**session.env, "SOFTHCA_DPA_GROUPS": "3=20,30"})
    return run


def cases():
    return [(f"queues: {title}", case(name)) for name, title in CASES]
