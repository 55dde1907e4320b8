# SPDX-License-Identifier: BSD-2-Clause
"""A suite of named tests: each gets the session, and nothing may stay behind after any."""
import argparse
import fnmatch
import pathlib
import signal
import time

from harness import Failure, Session, Skip

HERE = pathlib.Path(__file__).resolve().parent


def reason_of(text):
    """The line that says most; where a program in Python broke off, that is the last."""
    lines = text.strip().splitlines() or [""]
    return lines[-1 if lines[0].startswith("Traceback ") else 0]


def one_test(session, test):
    """Outcome, reason, and the whole story of a failure."""
    try:
        test(session)
        session.expect_clean()
    except Skip as skip:
        return "SKIP", str(skip), ""
    except Failure as failure:
        text = str(failure)
        return "FAIL", reason_of(text), text
    except Exception as error:  # a test that breaks is a failed test, not the end of the rest
        return "FAIL", f"{type(error).__name__}: {error}".splitlines()[0], repr(error)
    finally:
        session.kill_strays()
    return "PASS", "", ""


def parse(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("pattern", nargs="*", help="run only tests whose name matches (glob)")
    parser.add_argument("--build", default=HERE.parents[1] / "build")
    parser.add_argument("--results", help="file to append rows to")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--long", action="store_true", help="also the tests that take long and differ little from others")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each test's time")
    return parser.parse_args()


def main(suite, description, modules):
    """Runs the cases of all modules, or those that the command line selects; the exit status."""
    options = parse(description)
    tests = [case for module in modules for case in module.cases()
             if not options.pattern
             or any(fnmatch.fnmatch(case[0], f"*{p}*") for p in options.pattern)]
    names = [name for name, _ in tests]
    if options.list:
        print("\n".join(names))
        return 0
    assert len(names) == len(set(names)), "two tests of one name"
    if not options.pattern and not options.long:
        tests = [(name, test) for name, test in tests if not getattr(test, "only_long", False)]

    failed = 0
    # A shell starts what it runs in the background with SIGINT ignored, and our programs would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    session = Session(options.build)
    try:
        for name, test in tests:
            start = time.monotonic()
            outcome, reason, story = one_test(session, test)
            failed += outcome == "FAIL"
            if options.verbose or outcome != "PASS":
                print(f"        {outcome} {name} ({time.monotonic() - start:.1f} s) {reason}",
                      flush=True)
            if story:
                print("\n".join("          " + line for line in story.splitlines()[:60]))
            if options.results:
                with open(options.results, "a") as results:
                    reason = reason.replace("\t", " ")
                    print(suite, name, outcome, reason, sep="\t", file=results)
    finally:
        session.close()
    return 1 if failed else 0
