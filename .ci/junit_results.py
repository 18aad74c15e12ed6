#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Results of a ctest run, from its JUnit file, as lines "STATUS<TAB>NAME<TAB>REASON"; for scripts/test.

STATUS is passed, failed or skipped. The reason of a skip is the last line the test printed, that of a failure the last lines."""
import sys
import xml.etree.ElementTree as ElementTree

FAILURE_LINES = 15


def main():
    for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        output = (case.findtext("system-out") or "").strip().splitlines()
        status = case.get("status")
        if status == "run":
            print("passed", case.get("name"), "", sep="\t")
        elif case.find("skipped") is not None and status != "fail":
            reason = output[-1].strip() if output else case.find("skipped").get("message", "")
            print("skipped", case.get("name"), reason.replace("\t", " "), sep="\t")
        else:
            failure = case.find("failure")
            message = failure.get("message", "") if failure is not None else status
            lines = [message] + output[-FAILURE_LINES:]
            print("failed", case.get("name"), "\\n".join(line.replace("\t", " ") for line in lines), sep="\t")


main()
