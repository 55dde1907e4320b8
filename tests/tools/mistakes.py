# SPDX-License-Identifier: BSD-2-Clause
"""The mistakes of docs/mistakes.md: what a program is told is what the hardware says, and the
explanation names the cause."""
import pathlib
import re

from harness import expect

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/mistakes.md"
PEER_SAYS = "the peer's own line says what was wrong"

PARTS = ("setting up", "keys and memory", "messages", "connections", "queues and events")

# What the program is told, and what its explanation has to say.
MISTAKES = {
    # setting up
    "rtr_without_grh": (["ibv_modify_qp: EINVAL"], ["is refused .EINVAL.: .*is_global is 0, and RoCE needs a GRH"]),
    "gid_index_missing": (["ibv_modify_qp: EINVAL"], ["sgid_index is 200"]),
    "attribute_missing": (["ibv_modify_qp: EINVAL"], ["from state INIT to RTR: attr_mask lacks IBV_QP_MIN_RNR_TIMER"]),
    "state_skipped": (["ibv_modify_qp: EINVAL"], ["cannot go from state RESET to RTR"]),
    "mtu_too_large": (["ibv_modify_qp: EINVAL"], ["path_mtu is 6"]),
    "address_handle_without_grh": (["ibv_create_ah: EINVAL"],
                                   []),  # libmlx5 refuses it without asking the device
    "region_without_local_write": (["ibv_reg_mr: EINVAL"],
                                   ["without IBV_ACCESS_LOCAL_WRITE"]),
    "region_of_constants": (["ibv_reg_mr: EFAULT"], ["cannot be written"]),
    "domain_in_use": (["ibv_dealloc_pd: EBUSY"], ["EBUSY", "they have to be destroyed first"]),
    # keys and memory
    "rkey_in_wrong_order": (["write: status 10 vendor 0x88",
                             "event: local access violation work queue error"],
                            ["wrong byte order", PEER_SAYS]),
    "behind_region": (["write: status 10 vendor 0x88"], ["ends 32 bytes behind the MR"]),
    "address_is_offset": (["write: status 10 vendor 0x88"], ["bytes before the MR",
                                                              "address 0x40"]),
    "region_without_remote_write": (["write: status 10 vendor 0x88"],
                                    ["registered without IBV_ACCESS_REMOTE_WRITE"]),
    "queue_pair_without_access": (["write: status 9 vendor 0x8a"],
                                  ["not given IBV_ACCESS_REMOTE_WRITE", "qp_access_flags"]),
    "region_of_other_domain": (["write: status 10 vendor 0x88"],
                               [r"rkey 0x\w+ belongs to PD 1, the QP to PD 2"]),
    "peer_region_deregistered": (["write: status 10 vendor 0x88"],
                                 [r"rkey 0x\w+ was deregistered"]),
    "own_region_deregistered": (["send: status 4 vendor 0x52"], [r"lkey 0x\w+ was deregistered"]),
    "lkey_of_other_domain": (["send: status 4 vendor 0x51"],
                             [r"lkey 0x\w+ belongs to PD 2, the QP to PD 1"]),
    "lkey_not_set": (["send: status 4 vendor 0x52"], ["lkey 0x0 is unknown"]),
    "buffer_unmapped": (["send: status 4 vendor 0x51"], ["not mapped any more"]),
    "receive_without_local_write": (["send: status 11 vendor 0x89",
                                     "receive: status 4 vendor 0x00"],
                                    ["registered without IBV_ACCESS_LOCAL_WRITE", PEER_SAYS]),
    # messages
    "no_receive": (["send: status 13 vendor 0x87"], ["no receive is posted", "rnr_retry"]),
    "receive_too_short": (["send: status 9 vendor 0x8a", "receive: status 1 vendor 0x00"],
                          ["too short: it has room for 40 bytes", "24 too many"]),
    "datagram_without_room_for_grh": (["send: success", "receive: 0 completions"],
                                      ["40 in front of the message", "GRH"]),
    "datagram_over_mtu": (["send: status 1 vendor 0x00"],
                          ["5000 bytes, and a datagram at most 4096"]),
    "datagram_of_other_qkey": (["send: success", "receive: 0 completions"],
                               ["Q_Key mismatch: the datagram has 0x0, the QP 0x11223344"]),
    "reads_not_allowed": (["read: status 9 vendor 0x8a"], ["max_dest_rd_atomic is 0"]),
    "atomic_not_aligned": (["atomic: status 9 vendor 0x8a"], ["not a multiple of 8"]),
    # connections
    "psn_of_other": (["send: status 12 vendor 0x81"],
                     ["psn 0x1005 is expected", "sq_psn of the peer is not rq_psn"]),
    "number_of_nobody": (["send: status 12 vendor 0x81"],
                         ["no process of the fabric has a QP of that number"]),
    "gid_of_nobody": (["send: status 12 vendor 0x81"], ["its address belongs to no port"]),
    "port_of_other_link_type": (["send: status 12 vendor 0x81"],
                                ["mlx5_1 has an Ethernet port and is given the address of host1/mlx5_0, an InfiniBand port",
                                 "InfiniBand and Ethernet .RoCE. do not reach each other"]),
    "peer_not_connected": (["send: status 12 vendor 0x81"],
                           ["the QP is in state RESET; it takes requests from RTR on"]),
    "peer_destroyed": (["send: status 12 vendor 0x81"], ["there is no QP of this number"]),
    "timeout_zero": (["send: 0 completions", "send: status 5 vendor 0xf5"],
                     ["there is no QP of this number"]),
    "posted_after_error": (["write: status 10 vendor 0x88", "second write: status 5 vendor 0xf9",
                            "receive: status 5 vendor 0xf9"],
                           [r"flushed \(IBV_WC_WR_FLUSH_ERR\): the QP is in state ERR"]),
    # queues
    "not_in_rts": (["ibv_post_send: ENOMEM"], ["ibv_post_send: ENOMEM", "state RTR"]),
    "send_queue_full": (["ibv_post_send: ENOMEM"],
                        ["the send queue is full", "IBV_SEND_SIGNALED"]),
    "inline_too_long": (["ibv_post_send: ENOMEM"], ["4000 bytes inline", "max_inline_data"]),
    "too_many_pieces": (["ibv_post_send: ENOMEM"], ["64 pieces", "max_send_sge"]),
    "completion_queue_small": (["event: CQ error"], ["CQ 0x\\w+: overrun",
                                r"explain: host1/mlx5_0 CQ 0x\w+ of mistakes: overrun: .* none of "
                                r"the \d+ that fill it; .* posted to QP 0x\w+ completes"]),
    "armed_once": (["first: success", "events: 0", "ibv_get_cq_event: EAGAIN", "second: success"],
                   []),
    "child_uses_device": (["ibv_reg_mr of the child: EIO", "write of the parent: success"],
                          ["EIO", "opened before fork"]),
}


def wrong_with(session, name):
    """What is not as it should be, or None."""
    told, explained = MISTAKES[name]
    program = str(session.build / "tests/tools/mistakes")
    result = session.tool("run", "--explain", "--", program, name)
    if result.status or result.out.splitlines() != told:
        return f"{name}: status {result.status}, expected {told}\n{result.text()}"
    missing = [words for words in explained if not re.search(words, result.err)]
    return f"{name}: no {missing} in the explanation:\n{result.err}" if missing else None


def part(names):
    """Several on one fabric: its start would take longer than they do."""
    def test(session):
        session.tool("fabric", "up")
        try:
            wrong = [text for text in (wrong_with(session, name) for name in names) if text]
        finally:
            session.tool("fabric", "down")
        expect(not wrong, "\n".join(wrong))
    return test


def all_have_a_row(session):
    """The page, the program and this table name the same mistakes."""
    program = session.call(str(session.build / "tests/tools/mistakes")).out.split()
    page = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.M)
    expect(sorted(program) == sorted(MISTAKES), f"{set(program) ^ set(MISTAKES)}")
    expect(sorted(page) == sorted(MISTAKES), f"{set(page) ^ set(MISTAKES)}")


def cases():
    yield "mistakes: all have a row", all_have_a_row
    names = list(MISTAKES)
    firsts = ("rtr_without_grh", "rkey_in_wrong_order", "no_receive", "psn_of_other", "not_in_rts")
    starts = [names.index(first) for first in firsts] + [len(names)]
    for title, start, end in zip(PARTS, starts, starts[1:]):
        yield f"mistakes: {title}", part(names[start:end])
