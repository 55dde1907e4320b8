# SPDX-License-Identifier: BSD-2-Clause
"""Sanitizers and valgrind: the program finds its device, the checker finds the program's faults,
and none of the device's."""
import contextlib
import itertools
import pathlib
import shutil
import subprocess
import tempfile

from harness import Skip, expect

HELLO = pathlib.Path(__file__).resolve().parents[2] / "examples/hello/hello.c"
SANITIZERS = ("address", "undefined", "leak", "thread")
SAYS = "hello by RDMA"
FOUND = 9  # the status with which valgrind ends a program that has a fault

# For each checker a fault, and what it says of it.
FAULTS = {
    "address": ("char *volatile p = malloc(8); free(p); return *(volatile char *)p;",
                "heap-use-after-free"),
    "undefined": ("volatile int sum = 0x7fffffff; sum = sum + 1; return sum > 0;", "signed integer overflow"),
    # A block counts as leaked unless a word on a stack or in a register happens to be its address still, so
    # there are several.
    "leak": ("char *volatile p; for (int i = 0; i < 64; i++) p = malloc(8); p = 0; return p != 0;",
             "detected memory leaks"),
    # clang's run-time library overlooks one such race in some hundreds, so there are several.
    "thread": ("for (int i = 0; i < 8; i++) {"
               "  pthread_t t; pthread_create(&t, 0, add, 0); shared++; pthread_join(t, 0); } return shared > 0;",
               "data race"),
    "valgrind": ("char *volatile p = malloc(8); free(p); return *(volatile char *)p;",
                 "Invalid read"),
}
BEFORE_MAIN = """#include <pthread.h>
#include <stdlib.h>
static int shared;
static void *add(void *unused)
{
	shared++;
	return unused;
}
static int fault(void)
{
	(void)add;
	%s
}
"""


@contextlib.contextmanager
def built(compiler, *options, fault=None, change=None, libraries=()):
    """The program, with a fault at its end if there is one to be, or otherwise changed.  Skip: the
    compiler or a library of it is not there."""
    if not shutil.which(compiler):
        raise Skip(f"{compiler} is not there")
    text = HELLO.read_text()
    if fault:
        text = BEFORE_MAIN % fault + text.replace("\treturn 0;\n}", "\treturn fault() ? 0 : 0;\n}")
    if change:
        text = change(text)
    with tempfile.TemporaryDirectory(prefix="softhca-test.") as directory:
        source = pathlib.Path(directory) / "program.c"
        source.write_text(text)
        program = source.with_suffix("")
        made = subprocess.run([compiler, "-g", *options, str(source), "-o", str(program),
                               *libraries, "-libverbs", "-pthread"], capture_output=True, text=True, check=False)
        if made.returncode and "cannot find" in made.stderr:
            raise Skip(f"{compiler} {' '.join(options)}: {made.stderr.splitlines()[0]}")
        expect(made.returncode == 0, made.stderr)
        yield str(program)


def says_hello(session, program, env=None):
    result = session.run(program, env={**session.env, **(env or {})}, limit=300)
    expect(result.status == 0 and SAYS in result.out, f"status {result.status}\n{result.text()}")


def finds_fault(session, kind, *command):
    """A program with a fault of its own: the checker still says so."""
    result = session.run(*command, limit=300)
    expect(result.status != 0 and FAULTS[kind][1] in result.err,
           f"the fault is not found, status {result.status}\n{result.text()}")


def sanitizer(compiler, kind, *options):
    def test(session):
        with built(compiler, f"-fsanitize={kind}", *options) as program:
            says_hello(session, program)
        with built(compiler, f"-fsanitize={kind}", *options, "-O0", "-fno-sanitize-recover=all",
                   fault=FAULTS[kind][0]) as program:
            finds_fault(session, kind, program)
    return test


# Threads open and close devices side by side, so descriptors and mutexes of one are soon another's.
OPENERS = r"""#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static void *opener(void *arg)
{
	for (int i = 0; i < 12; i++) {
		struct ibv_device **list = ibv_get_device_list(NULL);
		struct ibv_context *context = ibv_open_device(list[0]);
		struct ibv_pd *pd = ibv_alloc_pd(context);

		ibv_free_device_list(list);
		if (ibv_dealloc_pd(pd) || ibv_close_device(context))
			return NULL;
	}
	return arg;
}
int main(void)
{
	pthread_t thread[3];
	void *ok = thread;
	int status;

	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, opener, thread);
	for (int i = 0; i < 3; i++) {
		void *one;

		pthread_join(thread[i], &one);
		ok = one ? ok : NULL;
	}
	if (!fork())
		_exit(!opener(thread));
	wait(&status);
	if (ok && !status)
		puts("%s");
	return !ok || status;
}
""" % SAYS


def thread_options(session, compiler):
    """Into a program of clang's the run-time library is linked, and only its user can tell it."""
    file = session.build / "libsofthca-preload.so.tsan"
    return {"TSAN_OPTIONS": f"suppressions={file}"} if compiler == "clang" else {}


def opened_by_threads(compiler):
    def test(session):
        with built(compiler, "-fsanitize=thread", change=lambda text: OPENERS) as program:
            for _ in range(3):
                says_hello(session, program, thread_options(session, compiler))
    return test


# A call with more arguments than the record that both sides share has room for, and a second process.
CALLEE = """#include <libflexio-dev/flexio_dev.h>
#include <dpaintrin.h>
#include <stdint.h>
__dpa_rpc__ uint64_t add(%s)
{
	return %s;
}
"""
CALLER = """#include <infiniband/verbs.h>
#include <libflexio/flexio.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
extern struct flexio_app *called;
extern flexio_func_t add;
static int calls(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(list[0]);
	struct flexio_process *process;
	uint64_t result = 0;

	ibv_free_device_list(list);
	if (flexio_process_create(context, called, NULL, &process))
		return 1;
	for (int i = 0; i < 50; i++)
		if (flexio_process_call(process, add, &result, %s) || result != %d)
			return 2;
	return flexio_process_destroy(process) || ibv_close_device(context);
}
int main(void)
{
	int status;

	if (!fork())
		_exit(calls());
	wait(&status);
	if (!status && !calls())
		puts("%s");
	return status;
}
"""
ARGUMENTS = 24


def device_code(compiler):
    """A program for the DPA, whose calls threads of the device answer."""
    def test(session):
        library = session.build / "src/flexio"
        if not (session.build / "dpacc").exists():
            raise Skip("programs for the DPA are not built")
        names = [f"a{i}" for i in range(ARGUMENTS)]
        values = [f"(uint64_t){i}" for i in range(ARGUMENTS)]
        caller = CALLER % (", ".join(values), sum(range(ARGUMENTS)), SAYS)
        with tempfile.TemporaryDirectory(prefix="softhca-test.") as directory:
            source, archive = pathlib.Path(directory) / "called.c", pathlib.Path(directory) / "called.a"
            source.write_text(CALLEE % (", ".join(f"uint64_t {n}" for n in names), " + ".join(names)))
            subprocess.run([session.build / "dpacc", source, "-o", archive, "-hostcc=gcc", "--app-name=called",
                            "--devicecc-options=-O2"], check=True)
            with built(compiler, "-fsanitize=thread", f"-I{HELLO.parents[2] / 'include'}", change=lambda text: caller,
                       libraries=(str(archive), f"-L{library}", f"-Wl,-rpath,{library}", "-lflexio",
                                  "-lmlx5")) as program:
                says_hello(session, program, thread_options(session, compiler))
    return test


def library_preloaded(session):
    """The run-time library before a program that was built without it."""
    with built("gcc") as program:
        library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True,
                                 text=True, check=True).stdout.strip()
        if "/" not in library:
            raise Skip("libasan is not there")
        says_hello(session, program, {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"})


def options_of_user(session):
    """The user's own ASAN_OPTIONS stand beside ours."""
    with built("gcc", "-fsanitize=address") as program:
        says_hello(session, program, {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1"})


def valgrind(device):
    def test(session):
        if not shutil.which("valgrind"):
            raise Skip("valgrind is not there")
        program = str(session.build / "tests/traffic/verify")
        address = ("--gid-index", "0") if device == "mlx5_1" else ()
        result = session.run("valgrind", "-q", f"--error-exitcode={FOUND}", program, "--device",
                             device, *address, "--ops", "60", limit=600)
        expect(result.status == 0, f"status {result.status}\n{result.text()}")
        # There it says which system calls it does not know, too.
        expect("==" not in result.err and "--" not in result.err, result.err)
    return test


def valgrind_finds_fault(session):
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not there")
    with built("gcc", "-O0", fault=FAULTS["valgrind"][0]) as program:
        finds_fault(session, "valgrind", "valgrind", "-q", f"--error-exitcode={FOUND}", program)


def cases():
    yield from ((f"{compiler} {kind}", sanitizer(compiler, kind))
                for compiler, kind in itertools.product(("gcc", "clang"), SANITIZERS))
    for compiler in ("gcc", "clang"):
        yield f"{compiler} thread, devices opened by threads", opened_by_threads(compiler)
        yield f"{compiler} thread, device code", device_code(compiler)
    yield "gcc address, static", sanitizer("gcc", "address", "-static-libasan")
    yield "libasan preloaded", library_preloaded
    yield "ASAN_OPTIONS of the user", options_of_user
    yield from ((f"valgrind {device}", valgrind(device)) for device in ("mlx5_0", "mlx5_1"))
    yield "valgrind finds a fault", valgrind_finds_fault
