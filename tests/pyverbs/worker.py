# SPDX-License-Identifier: BSD-2-Clause
"""worker.py REPORT MODULE SEED OPTION...: one module of rdma-core's tests, in the directory above
"tests".  Writes a line per event to REPORT: outcome, test, reason.  OPTION is for the suite itself
(--dev, --gid)."""
import random
import sys
import unittest

report, module, seed = sys.argv[1:4]
sys.argv[1:] = sys.argv[4:]
sys.path[:0] = [".", "tests"]  # modules import each other as tests.X, and args_parser plainly


def reason_of(err):
    return f"{err[0].__name__}: {err[1]}"


class Recorder(unittest.TestResult):
    def __init__(self, file):
        super().__init__()
        self.file = file

    def note(self, outcome, test, reason=""):
        print(outcome, test.id(), " ".join(str(reason).split())[:300], sep="\t", file=self.file,
              flush=True)

    def startTest(self, test):
        super().startTest(test)
        random.seed(f"{seed} {test.id()}")  # the choices of one test do not depend on the others
        self.note("START", test)

    def addSuccess(self, test):
        self.note("PASS", test)

    def addSkip(self, test, reason):
        self.note("SKIP", test, reason)

    def addFailure(self, test, err):
        self.note("FAIL", test, reason_of(err))

    def addError(self, test, err):
        self.note("ERROR", test, reason_of(err))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note("FAIL", test, reason_of(err))


from args_parser import parser  # noqa: E402
from tests import utils  # noqa: E402

parser.parse_args()
# The suite asks devlink, which finds no device, which mode the switch is in and whether RoCE is on.  The answers would be
# "switchdev" and "true".
utils.eswitch_mode_check = lambda device: True
utils.is_roce_enabled = lambda device: True
with open(report, "a") as file:
    unittest.defaultTestLoader.loadTestsFromName(module).run(Recorder(file))
