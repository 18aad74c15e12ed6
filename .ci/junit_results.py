#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Results of a ctest run, from its JUnit file, as lines "STATUS<TAB>NAME<TAB>REASON"; for scripts/test.

STATUS is passed, failed or skipped. The reason of a skip is the last line the test printed, that of a failure the last lines.
A test that could not run (no such program, a fixture that failed) is in the file as one that was skipped; here it has failed."""
import sys
import xml.etree.ElementTree as ElementTree

FAILURE_LINES = 15


def was_skipped(case):
    """By the test's own word (SKIP_RETURN_CODE, SKIP_REGULAR_EXPRESSION) or by the build's (DISABLED)."""
    skipped = case.find("skipped")
    return case.get("status") == "disabled" or (skipped is not None and skipped.get("message", "").startswith("SKIP_"))


def message_of(case):
    for name in ("failure", "skipped"):
        if case.find(name) is not None:
            return case.find(name).get("message", "")
    return ""


def main():
    for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        output = (case.findtext("system-out") or "").strip().splitlines()
        status = case.get("status")
        if status == "run":
            print("passed", case.get("name"), "", sep="\t")
        elif was_skipped(case):
            reason = output[-1].strip() if output else message_of(case)
            print("skipped", case.get("name"), reason.replace("\t", " "), sep="\t")
        else:
            lines = [message_of(case) or status] + output[-FAILURE_LINES:]
            print("failed", case.get("name"), "\\n".join(line.replace("\t", " ") for line in lines), sep="\t")


main()
