# SPDX-License-Identifier: BSD-2-Clause
"""Programs that were built elsewhere.  The file programs.tsv has a line for each: a name, the command (run in the
directory), and texts that it must print, separated by tabs.  Each runs alone, often, and under valgrind."""
import concurrent.futures
import pathlib
import shlex
import shutil
import tempfile

from harness import Failure, Skip, expect

TIMES = 100
AT_A_TIME = 4
# memcheck's faults of every kind, and memory that is lost in any way or not freed.  What libibverbs and libmlx5
# allocate for their own lists they keep until the end, also without a device of ours.
KEPT = """
{
   lists of devices and drivers
   Memcheck:Leak
   match-leak-kinds: possible,reachable
   fun:*alloc
   obj:*/lib%s.so*
}
"""
VALGRIND = ("valgrind", "--leak-check=full", "--show-leak-kinds=all", "--errors-for-leak-kinds=all",
            "--error-exitcode=9")
VALGRIND_LIMIT = 600  # seconds


def environment(session):
    return {**session.env, "LD_LIBRARY_PATH": str(pathlib.Path(session.build).resolve() / "src/flexio")}


def printed(result, texts):
    expect(result.status == 0, f"status {result.status}\n{result.text()}")
    for text in texts:
        expect(text in result.out, f"'{text}' is not printed\n{result.text()}")


def once(where, command, texts):
    def test(session):
        printed(session.run(*command, cwd=where(session), env=environment(session)), texts)
    return test


def often(where, command, texts):
    def test(session):
        directory = where(session)

        def story(number):
            try:
                once(lambda _: directory, command, texts)(session)
            except Failure as failure:
                return f"number {number}: {failure}"
            return None

        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            bad = [found for found in pool.map(story, range(TIMES)) if found]
        expect(not bad, f"{len(bad)} of {TIMES} fail\n" + "\n".join(bad))
    return test


def in_valgrind(where, command, texts):
    def test(session):
        if not shutil.which("valgrind"):
            raise Skip("valgrind is not there")
        with tempfile.NamedTemporaryFile("w", suffix=".supp") as kept:
            kept.write("".join(KEPT % name for name in ("ibverbs", "mlx5")))
            kept.flush()
            result = session.run(*VALGRIND, f"--suppressions={kept.name}", *command, cwd=where(session),
                                 env=environment(session), limit=VALGRIND_LIMIT)
        printed(result, texts)
        expect("ERROR SUMMARY: 0 errors from 0 contexts" in result.err, result.err)
    return test


def three(name, where, command, texts):
    """Each program's tests; where(session) is the directory that it runs in."""
    yield name, once(where, command, texts)
    yield f"{name}: {TIMES} of {TIMES}, {AT_A_TIME} at a time", often(where, command, texts)
    yield f"{name}: valgrind finds no fault and nothing lost", in_valgrind(where, command, texts)


def cases(directory):
    table = directory / "programs.tsv"

    def skipped(_):
        raise Skip(f"{table} is not there")

    if not table.is_file():
        yield "programs that were built elsewhere", skipped
        return
    for line in table.read_text().splitlines():
        if line and not line.startswith("#"):
            name, command, *texts = line.split("\t")
            yield from three(name, lambda _: directory, shlex.split(command), texts)
