# SPDX-License-Identifier: BSD-2-Clause
"""What a port counts when requests fail, and how long retries take (docs/fidelity.md)."""
from harness import expect

RETRY_EXC, RNR_RETRY_EXC, REM_ACCESS, REM_INVALID, LOC_PROT, FLUSH = 12, 13, 10, 9, 4, 5
EXCEEDED = {"req_cqe_error": 1, "req_transport_retries_exceeded": 1}
FAILED = {
    "rnr": (RNR_RETRY_EXC, {"req_cqe_error": 1, "rnr_nak_retry_err": 1,
                            "req_rnr_retries_exceeded": 1, "out_of_buffer": 1}),
    "write-key": (REM_ACCESS, {"req_cqe_error": 1, "req_remote_access_errors": 1,
                               "rx_write_requests": 1}),
    "write-right": (REM_INVALID, {"req_cqe_error": 1, "req_remote_invalid_request": 1}),
    "read-place": (LOC_PROT, {"req_cqe_error": 1, "rx_read_requests": 1}),
    "to-error": (FLUSH, {"req_cqe_error": 1, "req_cqe_flush_error": 1}),
}


def measured(session, arguments, timing="nominal"):
    """Status, milliseconds, and the counters that have moved."""
    program = str(session.build / "tests/clients/retries")
    done = session.tool("run", "--timing", timing, "--", program, *arguments)
    expect(done.status == 0, done.text())
    rows = dict(line.split() for line in done.out.splitlines())
    moved = {name: int(value) for name, value in rows.items()}
    return moved.pop("status"), moved.pop("ms"), moved


def failed(device, what):
    def case(session):
        status, wanted = FAILED[what]
        got, _, moved = measured(session, (device, what))
        expect((got, moved) == (status, wanted), f"{got} {moved}, expected {status} {wanted}")
    return case


def silence(device, timing, timeout, counters, least, most):
    def case(session):
        status, ms, moved = measured(session, (device, "silence", str(timeout), "7"), timing)
        expect(status == RETRY_EXC and moved == {**EXCEEDED, **counters}, f"{status} {moved}")
        # A machine that is busy adds to what the device waits.
        expect(least <= ms <= 2 * most + 1000, f"{ms} ms, expected {least} to {most}")
    return case


def cases():
    hardware = {"local_ack_timeout_err": 6, "roce_adp_retrans": 8}
    for device in ("mlx5_0", "mlx5_1"):
        for what in FAILED:
            yield f"counters {device} {what}", failed(device, what)
        yield (f"retries {device} nominal", silence(device, "nominal", 12,
                                                    {"local_ack_timeout_err": 8}, 134, 300))
        for timeout in (8, 16):
            yield (f"retries {device} hardware {timeout}",
                   silence(device, "hardware", timeout, hardware, 3500, 3760))
