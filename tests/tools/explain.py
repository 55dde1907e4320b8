# SPDX-License-Identifier: BSD-2-Clause
"""A request that fails says why, on both sides: `softhca run --explain`."""
import re

from harness import expect

LINE = re.compile(r"softhca\[(\d+)/\d+\]: \d+\.\d{9} explain: (.+)")
SENT = r"host1/mlx5_0 QP 0x[0-9a-f]+ {} psn 0x(?:100[015]|ffb) to host1/mlx5_0 QP 0x[0-9a-f]+: "
TAKEN = r"host1/mlx5_0 QP 0x[0-9a-f]+ {} psn 0x(?:100[015]|ffb) from host1/mlx5_0 QP 0x[0-9a-f]+: "
ACCESS = r" \(address 0x[0-9a-f]+, \d+ bytes\)"
KEY = r"key 0x[0-9a-f]+ "
REFUSED = "completes with {}: the peer answered NAK {}; the peer's own line"
LOCAL = "completes with IBV_WC_LOC_PROT_ERR: "
DENIED = REFUSED.format("IBV_WC_REM_ACCESS_ERR", "remote access")
INVALID = REFUSED.format("IBV_WC_REM_INV_REQ_ERR", "invalid request")

# Mistake: operation, how it ends, what the requester says, what the peer says (None: nothing).
MISTAKES = {
    "local-key": ("RDMA_WRITE", "local protection", LOCAL + "l" + KEY + "is unknown", None),
    "local-stale": ("RDMA_WRITE", "local protection",
                    LOCAL + "l" + KEY + "is not valid; its index belongs to the MR of key "
                    "0x[0-9a-f]+, so it is wrong, or an earlier MR had it", None),
    "local-end": ("RDMA_WRITE", "local protection",
                  LOCAL + "the access ends 12 bytes behind the MR", None),
    "local-start": ("RDMA_WRITE", "local protection",
                    LOCAL + "the access begins 16 bytes before the MR", None),
    "local-gone": ("RDMA_WRITE", "local protection", LOCAL + "l" + KEY + "was deregistered", None),
    "local-write": ("RDMA_READ", "local protection",
                    LOCAL + ".*without IBV_ACCESS_LOCAL_WRITE; it has none", None),
    "remote-key": ("RDMA_WRITE", "remote access", DENIED,
                   "NAK remote access: r" + KEY + "is unknown.*" + ACCESS),
    "remote-end": ("RDMA_WRITE", "remote access", DENIED,
                   "NAK remote access: the access ends 12 bytes behind the MR"),
    "remote-right": ("RDMA_WRITE", "remote access", DENIED,
                     "NAK remote access: .*without IBV_ACCESS_REMOTE_WRITE"),
    "remote-read": ("RDMA_READ", "remote access", DENIED,
                    "NAK remote access: .*without IBV_ACCESS_REMOTE_READ"),
    "remote-qp": ("RDMA_WRITE", "remote invalid", INVALID,
                  "NAK invalid request: the QP was not given IBV_ACCESS_REMOTE_WRITE"),
    "remote-pd": ("RDMA_WRITE", "remote access", DENIED,
                  "NAK remote access: r" + KEY + r"belongs to PD \d+, the QP to PD \d+"),
    "remote-gone": ("RDMA_WRITE", "remote access", DENIED,
                    "NAK remote access: r" + KEY + "was deregistered"),
    "atomic-odd": ("(ATOMIC_FA|FETCH_ADD)", "remote invalid", INVALID, "is not a multiple of 8"),
    "read-depth": ("RDMA_READ", "remote invalid", INVALID, "its max_dest_rd_atomic is 0"),
    "short": ("SEND", "remote invalid", INVALID,
              "the receive is too short: it has room for 400 bytes, 512 have come so far, 112 too"),
    "receive-key": ("SEND", "remote operation",
                    REFUSED.format("IBV_WC_REM_OP_ERR", "remote operational error"),
                    "the receive completes with IBV_WC_LOC_PROT_ERR: l" + KEY + "belongs to PD"),
    "no-receive": ("SEND", "RNR retry",
                   r"IBV_WC_RNR_RETRY_EXC_ERR: .*not after 3 retries \(rnr_retry\)",
                   "RNR NAK: no receive is posted"),
    "peer-state": ("SEND", "transport retry", "packets arrive at the peer's process",
                   "dropped: the QP is in state INIT"),
    # the daemon may not have noticed yet
    "peer-ended": ("SEND", "transport retry",
                   "no process of the fabric has a QP|the peer's process has ended", None),
    "peer-number": ("SEND", "transport retry", "no process of the fabric has a QP", None),
    "psn-ahead": ("SEND", "transport retry", "connected to this one with the same PSN",
                  "NAK PSN sequence error: psn 0x1000 is expected, so 5 packets are missing"),
    "psn-behind": ("SEND", "transport retry", "connected to this one with the same PSN",
                   "psn 0x1000 is expected, so this one, 5 before it, counts as a repetition and "
                   "is acknowledged, not executed"),
    "psn-itself": ("SEND", "transport retry",
                   "this QP is connected to itself: if the peer is another program, that is in "
                   "another fabric", None),
    "ud-long": ("SEND", "local length", r"a datagram at most 4096, the largest MTU \(904 too many",
                None),
    "ud-qkey": ("SEND", "success", None,
                "Q_Key mismatch: the datagram has 0x11111112, the QP 0x11111111"),
    "ud-grh": ("SEND", "success", None, "552 with the 40 in front of the message"),
}


def explained(session, mistake, *options):
    """How the requests ended, and the sentences."""
    result = session.tool("run", *(options or ("--explain",)), "--",
                          str(session.build / "tests/tools/explained"), mistake)
    expect(result.status == 0, result.text())
    lines = result.err.splitlines()
    expect(all(LINE.fullmatch(line) for line in lines if "explain: " in line), result.err)
    return result.out.splitlines(), LINE.findall(result.err)


def says(lines, head, what, name):
    """One process says it; which."""
    pids = [pid for pid, text in lines if re.match(head, text) and re.search(what, text)]
    told = "\n".join(text for _, text in lines)
    expect(pids, f"{name}: nobody says '{head}...{what}' but\n{told}")
    return pids[0]


def mistakes(names, *options):
    def test(session):
        for name in names:
            operation, status, requester, peer = MISTAKES[name]
            outcome, lines = explained(session, name, *options)
            expect(status in outcome[0], f"{name} ends with {outcome}")
            sent = SENT.replace(" to host1/mlx5_0 QP 0x[0-9a-f]+", "") if "ud" in name else SENT
            pids = set()
            if requester:
                pids.add(says(lines, sent.format(operation), requester, name))
            if peer:
                pids.add(says(lines, TAKEN.format(operation), peer, name))
            expect(len(pids) == bool(requester) + bool(peer), f"{name}: one process says all")
    return test


def silent(session):
    """Nothing is said of success, nor without the option."""
    expect(explained(session, "nothing") == (["success"], []), "of success")
    expect(not explained(session, "remote-key", "--memory", "auto")[1], "without --explain")


REFUSALS = (
    r"MODIFY_QP .*EINVAL.* from state RESET to INIT: attr_mask lacks IBV_QP_ACCESS_FLAGS$",
    r"MODIFY_QP .*EINVAL.* port_num is 3",
    r"MODIFY_QP .*EINVAL.* attr_mask has IBV_QP_SQ_PSN, which cannot be set here",
    r"MODIFY_QP .*EINVAL.* cannot go from state INIT to RTS; from INIT it can go to RESET, INIT, RTR, ERR$",
    r"MODIFY_QP .*EINVAL.* ah_attr.is_global is 0, and RoCE needs a GRH",
    r"MODIFY_QP .*ENETUNREACH.* ah_attr.grh.dgid is the GID of no port",
    r"MODIFY_QP .*EINVAL.* ah_attr.grh.sgid_index is 20",
    r"MODIFY_QP .*EINVAL.* path_mtu is 9",
    r"REG_MR .*EINVAL.* without IBV_ACCESS_LOCAL_WRITE",
    r"REG_MR .*EFAULT.* memory at 0x1000, 4096 bytes in whole pages, is not mapped",
)


def refused(session):
    """Control operations name the attribute, in the order in which the program tries them."""
    result = session.tool("run", "--explain", "--", str(session.build / "tests/tools/refuse"))
    expect(result.status == 0, result.text())
    lines = [text for _, text in LINE.findall(result.err)]
    expect(len(lines) == len(REFUSALS) and
           all(re.match(wanted, text) for wanted, text in zip(REFUSALS, lines)), "\n".join(lines))


POSTS = (
    (r"QP 0x\w+ ibv_post_recv: EINVAL: the QP is in state RESET", "Invalid argument"),
    (r"QP 0x\w+ ibv_post_recv: EINVAL: the request has 64 pieces .* max_recv_sge \d+$",
     "Invalid argument"),
    (r"QP 0x\w+ ibv_post_recv: ENOMEM: the receive queue is full \(max_recv_wr 4\)",
     "Cannot allocate memory"),
    (r"QP 0x\w+ ibv_post_recv: ENOMEM: .* its receives are those of its SRQ",
     "Cannot allocate memory"),
    (r"SRQ 0x\w+ ibv_post_srq_recv: EINVAL: the request has 64 pieces .* max_sge \d+$",
     "Invalid argument"),
    (r"SRQ 0x\w+ ibv_post_srq_recv: ENOMEM: the shared receive queue is full \(max_wr \d+\)",
     "Cannot allocate memory"),
    (r"QP 0x\w+ ibv_wr_complete: ENOMEM: the send queue is full \(max_send_wr 4\)",
     "Cannot allocate memory"),
)


def refused_posts(session):
    """What libmlx5 refuses before the device hears of it."""
    program = str(session.build / "tests/tools/posts")
    result = session.tool("run", "--explain", "--", program)
    expect(result.status == 0 and result.out.splitlines() == [told for _, told in POSTS],
           result.text())
    lines = [text for _, text in LINE.findall(result.err)]
    expect(len(lines) == len(POSTS) and
           all(re.match(wanted, text) for (wanted, _), text in zip(POSTS, lines)),
           "\n".join(lines))
    expect("explain: " not in session.tool("run", "--", program).err, "without --explain")


def limited(session):
    """Lines that are like each other are counted."""
    _, lines = explained(session, "flush")
    flushed = [text for _, text in lines if "flushed (IBV_WC_WR_FLUSH_ERR)" in text]
    more = [int(n) for text in flushed for n in re.findall(r"^\.\.\. (\d+) more like it", text)]
    expect(more and len(flushed) - len(more) + sum(more) == 19, "\n".join(flushed))


def cases():
    yield "explain: nothing to say", silent
    for memory in ("kernel", "packets"):
        yield (f"explain: access to memory, {memory}",
               mistakes([n for n in MISTAKES if n.startswith("remote")], "--explain", "--memory",
                        memory))
    yield ("explain: local errors, receives, peers",
           mistakes([n for n in MISTAKES if not n.startswith("remote")]))
    yield "explain: control operations", refused
    yield "explain: posts that the library refuses", refused_posts
    yield "explain: lines are limited", limited
