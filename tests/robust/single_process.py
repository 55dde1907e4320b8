# SPDX-License-Identifier: BSD-2-Clause
"""Fork, passive targets, many objects, silence, abuse."""
import pathlib
import platform
import subprocess
import tempfile
import time

from harness import Skip, all_ended_well, cpu_seconds, expect, free_port, wait_listening, within

HERE = pathlib.Path(__file__).resolve().parent
IDLE_SECONDS = 10
SKIPPED = 77  # a program's status when the case cannot be tried here
TICK = 0.0101  # what rounding may show
# Functions that set masks, and those that set handlers.
MASKS = ("sigprocmask", "pthread_sigmask", "sigblock", "sigsetmask", "sighold", "sigset(SIG_HOLD)",
         "pthread_attr_setsigmask_np", "swapcontext", "swapcontext, back twice", "setcontext",
         "siglongjmp", "sigsuspend", "__sigsuspend", "sigpause", "__xpg_sigpause", "__sigpause",
         "ppoll", "pselect", "epoll_pwait", "epoll_pwait2", "rt_sigprocmask by syscall",
         "rt_sigsuspend by syscall", "ppoll by syscall", "pselect6 by syscall", "epoll_pwait by syscall",
         "epoll_pwait2 by syscall", "exec", "posix_spawnattr_setsigmask")
HANDLERS = ("sigaction", "rt_sigaction by syscall", "signal", "bsd_signal", "ssignal", "sysv_signal", "__sysv_signal",
            "sigset", "sigignore", "siginterrupt")
# The least that the kernel takes, the least that holds its frame, what Rust takes, and what has room for a device.
ALTERNATE_STACKS = (2048, 4096, 8192, 262144)
# Functions that start a program.
STARTS = ("execve", "execv", "execvp", "execvpe", "execveat", "fexecve", "execl", "execlp", "execle", "posix_spawn",
          "posix_spawnp", "vfork", "system", "popen")
if tuple(map(int, platform.libc_ver()[1].split("."))) >= (2, 39):
    STARTS += ("pidfd_spawn", "pidfd_spawnp")
# How a descriptor of a device file becomes a plain file's.
LOSSES = ("fclose", "freopen", "close", "close_range", "closefrom", "dup2", "dup3", "a bare dup3",
          "a bare close", "a bare close_range", "a child that shares the table",
          "a vfork child that shares the table", "a vfork child", "posix_spawn")


def last_line(result):
    return (result.out.strip().splitlines() or [""])[-1]


def program(programs, name, *arguments, limit=60):
    def test(session):
        return last_line(session.run_ok(str(programs / name), *arguments, limit=limit))
    return test


def elsewhere(programs, device, how):
    def test(session):
        result = session.run(str(programs / "elsewhere"), device, how)
        if result.status == SKIPPED:
            raise Skip(last_line(result))
        expect(result.status == 0, f"status {result.status}\n{result.text()}")
    return test


def cancelled(programs, device):
    def test(session):
        # Lines are written wherever one can be.
        env = {**session.env, "SOFTHCA_LOG": "debug", "SOFTHCA_LOG_FILE": "/dev/null"}
        return last_line(session.run_ok(str(programs / "cancelled"), device, env=env))
    return test


def mapper(programs, device):
    def test(session):
        env = {**session.env, "LD_PRELOAD": str(programs / "behind.so")}
        return last_line(session.run_ok(str(programs / "mapper"), device, env=env))
    return test


def sanitized(programs, device):
    def test(session):
        # The preload library stands in front of the sanitizer's, which it would complain of.
        env = {**session.env, "ASAN_OPTIONS": "verify_asan_link_order=0"}
        return last_line(session.run_ok(str(programs / "sanitized"), device, env=env))
    return test


def two(programs, name, device, *arguments):
    def test(session):
        argv = [str(programs / name), device]
        port = free_port()
        target = session.background(*argv, "listen", str(port), *arguments)
        wait_listening(port, target)
        driver = session.background(*argv, "connect", str(port), *arguments)
        results = session.finish_all({"listen": target, "connect": driver})
        if results["listen"].status == SKIPPED:
            raise Skip(last_line(results["listen"]))
        all_ended_well(results)
        return last_line(results["connect"])
    return test


def idle(programs, device):
    """Neither the process nor the daemon uses the CPU while nothing happens."""
    def test(session):
        process = session.start([session.softhca, "run", "--", str(programs / "idle"), device],
                                stdin=subprocess.PIPE)
        expect(process.stdout.readline() == "idle\n", "it did not start")
        time.sleep(1)  # what the traffic left to do
        pids = list(session.processes())
        expect(len(pids) >= 2, f"only {len(pids)} processes")
        before = {pid: cpu_seconds(pid) for pid in pids}
        time.sleep(IDLE_SECONDS)
        used = {pid: cpu_seconds(pid) - before[pid] for pid in pids}
        result = session.finish(process, 10)  # ends its standard input
        expect(result.status == 0, f"status {result.status}\n{result.text()}")
        worst = max(used.values())
        expect(worst <= TICK, f"{worst:.2f} s of CPU in {IDLE_SECONDS} s")
        return f"{sum(used.values()):.2f} s in {IDLE_SECONDS} s by {len(pids)} processes"
    return test


def objects(programs, device):
    def test(session):
        result = session.run(str(programs / "objects"), device, limit=120)
        # Times say nothing on a machine whose CPUs are taken: once more then.
        if result.status == 1:
            time.sleep(2)
            result = session.run(str(programs / "objects"), device, limit=120)
        expect(result.status == 0, f"status {result.status}\n{result.text()}")
        return last_line(result)
    return test


def loads(programs, way, library, devices, warning):
    """A library that is loaded so finds so many devices, or a warning says why not."""
    def test(session):
        library_path = library.replace("HERE", str(programs))
        result = session.run_ok(str(programs / "loader"), way, library_path)
        expect(int(result.out) == devices, f"{result.out.strip()} devices\n{result.text()}")
        warnings = [line.partition("warn: ")[2] for line in result.err.splitlines() if "warn: " in line]
        expect(warnings == ([f"no devices: {warning} is in a namespace of its own (dlmopen), where softhca cannot "
                             "reach it"] if warning else []), result.text())
    return test


def little_address_space():
    """A limit of the address space that leaves no room for a device is named, wherever it strikes."""
    def test(session):
        lacked = 0
        for mebibytes in range(20, 260, 20):
            result = session.run("sh", "-c", f"ulimit -v {mebibytes << 10}; exec ibv_devinfo -d mlx5_0")
            if result.status != 0:
                lacked += 1
                expect(f"the address space is limited to {mebibytes} MiB (ulimit -v)" in result.err,
                       f"{mebibytes} MiB, status {result.status}:\n{result.text()}")
        expect(3 < lacked < 12, f"{lacked} of 12 limits are too low")
        return f"{lacked} of 12 limits are too low"
    return test


def little_address_space_for_daemon(option, status):
    """A program starts the daemon with its limit, which the daemon lifts if it may."""
    def test(session):
        environment = session.tool("env").out
        expect(within(10, lambda: not session.daemons()), "the daemon stays")
        result = session.call("sh", "-c", f"{environment}\nulimit {option} -v {200 << 10}; exec ibv_devinfo -d mlx5_0")
        expect(bool(result.status) == bool(status) and
               ("the address space is limited to 200 MiB (ulimit -v)" in result.err) == bool(status),
               f"status {result.status}\n{result.text()}")
    return test


# Interposed functions that take no pointer, or none that the kernel looks at.
WITHOUT_POINTER = {"close", "close_range", "closefrom", "dup", "dup2", "dup3", "mlockall",
                   "get_current_dir_name", "rewind", "lseek", "lseek64", "fseek", "fseeko", "fseeko64",
                   "fdopendir", "closedir", "readdir", "readdir64", "rewinddir", "telldir", "seekdir",
                   "pthread_cancel", "signal", "bsd_signal", "ssignal", "sysv_signal",
                   "__sysv_signal", "sigset", "sigignore", "sigblock", "sigsetmask", "sighold",
                   "sigpause", "__sigpause", "socket", "__asan_default_options",
                   "__tsan_default_suppressions", "fchmod", "fchown", "ftruncate", "ftruncate64", "fallocate",
                   "fallocate64", "posix_fallocate", "posix_fallocate64"}


def interposed(session):
    """The names of the C library's functions that the preload library defines."""
    symbols = session.call("nm", "-D", "--defined-only",
                           str(session.build / "libsofthca-preload.so"))
    names = {line.split()[2] for line in symbols.out.splitlines() if line.split()[1] == "T"}
    return {name for name in names if not name.startswith(("ibv_", "mlx5dv_"))}


def bad_pointers(programs):
    """Each interposed function answers a bad pointer as it does without the library."""
    def test(session):
        program = str(programs / "bad_pointers")
        with tempfile.NamedTemporaryFile() as one, tempfile.NamedTemporaryFile() as other:
            alone, with_library = session.call(program, one.name), session.run_ok(program, other.name)
        expect(alone.status == 0, alone.text())
        untried = (interposed(session) - WITHOUT_POINTER -
                   {line.split()[0] for line in alone.out.splitlines()})
        expect(not untried, f"not tried: {', '.join(sorted(untried))}")
        lines = list(zip(alone.out.splitlines(), with_library.out.splitlines(), strict=True))
        wrong = [f"{mine}; without the library: {right}" for right, mine in lines if mine != right]
        expect(not wrong, f"{len(wrong)} of {len(lines)} answers differ\n" + "\n".join(wrong))
        return f"{len(lines)} calls"
    return test


def bad_pointers_of_device(programs, file):
    """No bad pointer ends the process if the descriptor is a device file's."""
    def test(session):
        program = str(programs / "bad_pointers")
        alone = session.call(program, "/dev/null").out.splitlines()
        device = session.run_ok(program, file).out.splitlines()
        died = [mine for right, mine in zip(alone, device, strict=True)
                if "killed" in mine and "killed" not in right]
        expect(not died, f"{len(died)} calls\n" + "\n".join(died))
        return f"{len(device)} calls"
    return test


def cases(programs, long):
    devices = ("mlx5_0", "mlx5_1")

    def in_turn(hows):
        """What concerns the library more than the device: each on one of the devices, and on both in the long form."""
        return [(how, d) for n, how in enumerate(hows) for d in (devices if long else (devices[n % 2],))]

    return [
        *((f"fork under traffic {d}", program(programs, "forked", d)) for d in devices),
        *((f"peer stopped, {how} {d}", program(programs, "stopped", d, how)) for d in devices
          for how in ("retries", "error", "reset", "destroy", "dereg", "datagrams")),
        *((f"no new threads {d}", program(programs, "confined", d)) for d in devices),
        *((f"threads that are cancelled {d}", cancelled(programs, d)) for d in devices),
        *((f"all unknown descriptors closed by {how}", program(programs, "tidy", "mlx5_0", how))
          for how in ("close", "close_range", "closefrom", "syscall")),
        ("files at numbers of the program's choice", program(programs, "numbered", "mlx5_0")),
        ("memory with marks keeps them", program(programs, "marked", "mlx5_0")),
        *((f"passive target {d}", two(programs, "passive", d)) for d in devices),
        *((f"shared memory of a stopped target {d}", two(programs, "shared", d)) for d in devices),
        *((f"memory that serves its faults, {when} {d}", two(programs, "served", d, when))
          for d in devices for when in ("before", "after", "unseen")),
        *((f"a reader of a channel, {how} {d}", two(programs, "reader", d, how))
          for how, d in in_turn(("restarted", "interrupted", "jumped", "cancelled", "polled", "crowded", "forking",
                                 "replaced"))),
        *((f"descriptors and a channel, {how} {d}", two(programs, "waiter", d, how))
          for how, d in in_turn(("poll", "ppoll", "select", "pselect", "epoll", "epoll-edge", "epoll-once",
                                 "epoll_pwait", "epoll_pwait2", "epoll-dup", "epoll-nested", "crowded",
                                 "beside", "jumped", "cancelled", "forking"))),
        *((f"descriptors and a channel, odd calls {d}", program(programs, "odd_waits", d))
          for d in devices),
        *((f"a wait and messages that tell nothing, {how} {d}", two(programs, "spurious_wakeups", d, how))
          for how, d in in_turn(("poll", "select", "epoll"))),
        *((f"keys that are not the connection's {d}", program(programs, "foreign_keys", d, other))
          for d, other in (devices, devices[::-1])),
        *((f"calls that the kernel refuses {d}", program(programs, "refused", d)) for d in devices),
        *((f"a device closes while a peer begins to send to it {d}", program(programs, "leaving", d)) for d in devices),
        *((f"mappings reach who is behind {d}", mapper(programs, d)) for d in devices),
        *((f"communication established {d}", program(programs, "established", d))
          for d in devices),
        *((f"many objects {d}", objects(programs, d)) for d in devices),
        *((f"idle CPU {d}", idle(programs, d)) for d in devices),
        *((f"program under AddressSanitizer {d}", sanitized(programs, d)) for d in devices),
        *((f"modifications of queue pairs {d}",
           program(programs, "modified", d, str(HERE / "modify_qp.tsv"))) for d in devices),
        *((f"{what} {d}", elsewhere(programs, d, how)) for d in devices
          for how, what in (("leader", "main thread has ended"),
                            ("high", "descriptors from 65536 on"))),
        *((f"another preloaded library by {way}", program(programs, "started", way)) for way in STARTS),
        *((f"a library loaded with {way}, {library}", loads(programs, way, library, devices, warning))
          for way, library, devices, warning in (
              ("deepbind", "libibverbs.so.1", 2, None), ("deepbind", "librobust-loaded.so", 2, None),
              ("namespace", "libibverbs.so.1", 0, "libibverbs.so.1"),
              ("namespace", "HERE/librobust-loaded.so", 0, "libibverbs.so.1"),
              ("namespace", "librobust-loaded.so", 0, None), ("namespace", "libm.so.6", 0, None))),
        ("little address space", little_address_space()),
        ("little address space for the daemon, soft limit", little_address_space_for_daemon("-S", 0)),
        ("little address space for the daemon, hard limit", little_address_space_for_daemon("", 1)),
        *((f"descriptors lost by {way}", program(programs, "lost", way)) for way in LOSSES),
        *((f"masks and handlers, {way} {d}", program(programs, "masked", d, way))
          for way, d in in_turn(MASKS + HANDLERS)),
        *((f"an alternate stack of {size} bytes {d}", program(programs, "small_stacks", d, "alternate", str(size)))
          for size, d in in_turn(ALTERNATE_STACKS)),
        *((f"a stack of {size} bytes {d}", program(programs, "small_stacks", d, "thread", str(size)))
          for d in devices for size in (16384,)),
        ("bad pointers", bad_pointers(programs)),
        *((f"bad pointers {name}", bad_pointers_of_device(programs, f"/dev/infiniband/{name}"))
          for name in ("uverbs0", "umad0")),
        *((f"malformed calls uverbs{i}",
           program(programs, "abuse", f"/dev/infiniband/uverbs{i}")) for i in range(2)),
    ]
