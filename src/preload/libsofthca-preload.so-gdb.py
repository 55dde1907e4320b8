# SPDX-License-Identifier: BSD-2-Clause
"""For gdb: faults that softhca's own handler answers are no faults of the program.

The device write-protects doorbells while it sleeps, so a store to one is a SIGBUS; and it touches
registered memory that the program may have unmapped.  gdb would stop at both.  A catchpoint takes
the two signals, and its condition asks whether the handler answers the fault at hand.  At every
other one gdb stops, or not, as `handle` says.

gdb loads this file with the library beside it if `auto-load safe-path` allows that, which
`softhca run` sees to for each gdb that it starts.
"""
import re

import gdb

SIGNALS = {7: "SIGBUS", 11: "SIGSEGV"}
TABLE = r"(0x[0-9a-f]+) - (0x[0-9a-f]+) is softhca_extable in "
DOORBELLS = "/memfd:uverbs"
DPA_THREAD = "softhca-dpa"
PAGE_MASK = ~4095
# A function of this name is in this file, so what stands before it is where the sources were.
LANDMARK = "doorbell_fault", "driver/doorbell/arm.c"
FOLDERS = ("*", "*/*", "*/*/*", "*/*/*/*")


def output(command):
    return gdb.execute(command, to_string=True)


def is_caught(number):
    """Ours is not installed any more when a fault is to end the process."""
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", output("info proc status"), re.MULTILINE)
    return not caught or int(caught.group(1), 16) >> (number - 1) & 1


def in_doorbells(address):
    for line in output("info proc mappings").splitlines():
        if DOORBELLS in line:
            start, end = (int(field, 16) for field in line.split()[:2])
            if start <= address < end:
                return True
    return False


def in_table(pc):
    """Is it one of the library's instructions that may fault?  An entry is two numbers, relative
    to their own places: that instruction, and where it goes on after a fault."""
    for start, end in re.findall(TABLE, output("info files")):
        start, end = int(start, 16), int(end, 16)
        memory = gdb.selected_inferior().read_memory(start, end - start)
        offsets = memoryview(bytes(memory)).cast("i")
        if any(start + 4 * i + offsets[i] == pc for i in range(0, len(offsets), 2)):
            return True
    return False


def in_guard(address):
    """usermem_guarded runs code of others, which is in no table.  Who called it need not show in the frames: assembler
    has no unwind information.  So this asks what the handler asks (usermem_guarded_fault)."""
    guard = gdb.lookup_static_symbol("guarded_stretch")
    here = guard and guard.value()
    if not here:
        return False
    for which in range(2):
        pages = here["list"][which]
        for i in range(int(pages["n"])):
            start, size = int(pages["run"][i]["addr"]), int(pages["run"][i]["len"])
            if size and start & PAGE_MASK <= address <= (start + size - 1) | ~PAGE_MASK:
                return True
    return False


def is_answered(info):
    number = int(info["si_signo"])
    if not is_caught(number):
        return False  # it is the end
    if int(info["si_code"]) <= 0:
        # Somebody has sent it: device code is stopped so, other threads are not.
        return gdb.selected_thread().name == DPA_THREAD
    address = int(info["_sifields"]["_sigfault"]["si_addr"])
    return (SIGNALS[number] == "SIGBUS" and in_doorbells(address)) \
        or in_table(gdb.newest_frame().pc()) or in_guard(address)


def announce(name, text):
    """In gdb's own words: of a catchpoint it says less."""
    thread = gdb.selected_thread()
    who = "Program"
    if thread.num > 1 or len(gdb.selected_inferior().threads()) > 1:
        who = f'Thread {thread.num} "{thread.name}"'
    gdb.write(f"\n{who} received signal {name}, {text}.\n")


class FaultForUser(gdb.Function):
    """$_softhca_fault_for_user(): does the user want gdb to stop for the signal that came?"""
    def __init__(self):
        super().__init__("_softhca_fault_for_user")

    def invoke(self):
        info = gdb.parse_and_eval("$_siginfo")
        try:
            if is_answered(info):
                return False
        except gdb.error:
            pass  # what cannot be looked up is the user's business
        # `handle` does not count for signals that a catchpoint takes.
        name = SIGNALS[int(info["si_signo"])]
        stop, show, _, text = output(f"info signals {name}").splitlines()[-1].split(None, 4)[1:]
        if show == "Yes":
            announce(name, text)
        return stop == "Yes"


class Catchpoint:
    def __init__(self):
        self.number = None
        self.install()
        # `delete` means the user's own; whoever wants none disables it.
        if hasattr(gdb.events, "breakpoint_deleted"):
            gdb.events.breakpoint_deleted.connect(self.deleted)

    def install(self):
        output("catch signal " + " ".join(SIGNALS.values()))
        self.number = int(gdb.parse_and_eval("$bpnum"))
        output(f"condition {self.number} $_softhca_fault_for_user()")

    def deleted(self, breakpoint):
        if breakpoint.number == self.number:
            gdb.post_event(self.install)


def skip_sources(objfile):
    """`step` goes through calls of libibverbs as if the library had no debugging information."""
    name, path = LANDMARK
    symbol = objfile.lookup_global_symbol(name)
    full = symbol.symtab.fullname() if symbol else ""
    if full.endswith(path):
        for folder in FOLDERS:
            output(f"skip -gfi {full[:-len(path)]}{folder}")


# gdb reads the file whenever a process loads the library.
if not hasattr(gdb, "softhca_catchpoint"):
    FaultForUser()
    gdb.softhca_catchpoint = Catchpoint()
if gdb.current_objfile() and not hasattr(gdb, "softhca_skips"):
    gdb.softhca_skips = True
    skip_sources(gdb.current_objfile())
