# SPDX-License-Identifier: BSD-2-Clause
"""softhca explain: every code that a program or a trace shows is explained."""
import ctypes
import pathlib
import re

from harness import expect

SOURCE = pathlib.Path(__file__).resolve().parents[2]
HEADER = pathlib.Path("/usr/include/infiniband/verbs.h")


def explained(session, *code):
    result = session.tool("explain", *code)
    expect(result.status == 0 and "\n  " in result.out and not result.err,
           f"explain {code}: {result.text()}")
    return result.out


def enumeration(name):
    """The names of an enumeration of libibverbs, in order."""
    body = re.search(r"enum %s \{(.*?)\};" % name, HEADER.read_text(), re.S)[1]
    return re.findall(r"^\s*(IBV_\w+)", body, re.M)


def library_text(function, value):
    call = getattr(ctypes.CDLL("libibverbs.so.1"), function)
    call.restype = ctypes.c_char_p
    return call(value).decode()


def statuses(session):
    """By number, by name and by the library's text, and all three lead to the same."""
    names = enumeration("ibv_wc_status")
    expect(len(names) == 24, f"{names}")
    for number, name in enumerate(names):
        by_name = explained(session, name)
        expect(by_name.startswith(f"{name} ({number}): "), by_name)
        expect(explained(session, str(number)) == by_name, by_name)
        words = library_text("ibv_wc_status_str", number).split()
        expect(by_name in explained(session, *words), by_name)
    expect(explained(session, "rem_access_err") == explained(session, "10"), "short name")


def events(session):
    for number, name in enumerate(enumeration("ibv_event_type")):
        by_name = explained(session, name)
        expect(by_name.startswith(name), by_name)
        expect(by_name in explained(session, library_text("ibv_event_type_str", number)), by_name)


def vendor_errors(session):
    for code, status in (("0x51", "IBV_WC_LOC_PROT_ERR"), ("0x81", "IBV_WC_RETRY_EXC_ERR"),
                         ("0x88", "IBV_WC_REM_ACCESS_ERR"), ("0x8a", "IBV_WC_REM_INV_REQ_ERR"),
                         ("0xf9", "IBV_WC_WR_FLUSH_ERR"), ("0XF9", "IBV_WC_WR_FLUSH_ERR"),
                         ("249", "IBV_WC_WR_FLUSH_ERR")):
        expect(status in explained(session, code), f"{code} does not lead to {status}")


def error_numbers(session):
    one = explained(session, "EINVAL", "of", "ibv_modify_qp")
    expect("GRH" in one and "ibv_reg_mr" not in one, one)
    expect(explained(session, "EINVAL ibv_modify_qp") == one, "one argument")
    expect(one in explained(session, "EINVAL") and one in explained(session, "ibv_modify_qp"), one)


def reasons_of_traces(session):
    """The words that the transport, the wire and the keys' verdicts print are all known."""
    words = set()
    for pattern in ("src/adapter/transport/res*.c", "src/adapter/transport/data*.c",
                    "src/adapter/transport/comp*.c", "src/wire/route.c", "src/wire/wire.c"):
        for path in SOURCE.glob(pattern):
            words |= set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', path.read_text()))
    for path, name in (("src/adapter/memory/mkey.h", "mkey_verdict_name"),
                       ("src/wire/pkt.c", "aeth_nak_name")):
        body = (SOURCE / path).read_text().split(name + "(")[1].split("};")[0]
        words |= set(re.findall(r'"([A-Z_]+)"', body))
    words -= {"OK", "SIGNED", "TOO_MANY_RUNS"}  # lead to other ways and are printed by none
    # The responder's states before it has decided are in one table with the refusals.
    words = {word for word in words if not word.startswith(("check-", "take-"))}
    expect(len(words) > 30, f"{words}")
    known = session.tool("explain").out
    missing = [word for word in sorted(words)
               if word not in known and session.tool("explain", word).status]
    expect(not missing, f"not explained: {missing}")


def unknown_code(session):
    for code in ("IBV_WC_NO_SUCH", "99", "0x1234", "x" * 300, ""):
        result = session.tool("explain", code)
        expect(result.status == 2 and "vendor_err" in result.err and not result.out, result.text())


def everything(session):
    listed = session.tool("explain").out
    for name in ("IBV_WC_REM_ACCESS_ERR", "IBV_EVENT_PORT_ERR", "ENOMEM ibv_post_send", "0x81",
                 "not-from-peer"):
        expect(name in listed, f"{name} is not listed")


def what_to_look_at(session):
    """What a running program can be asked for is pointed at."""
    for code in ("5", "10", "12", "13", "IBV_EVENT_CQ_ERR"):
        expect("softhca status" in explained(session, code).partition("Look at: ")[2], code)


def cases():
    tests = (statuses, events, vendor_errors, error_numbers, reasons_of_traces, unknown_code,
             everything, what_to_look_at)
    yield from (("explain: " + test.__name__.replace("_", " "), test) for test in tests)
