#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The documents against the code: every variable, function, verb and relative link that one of them names exists, and the other
way round. Run from the top of the tree; prints what is missing and exits 1."""
import glob
import os
import re
import sys

faults = []


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def expect(path, words, what):
    if not os.path.exists(path):
        return
    text = read(path)
    for word in sorted(words):
        if word not in text:
            faults.append(f"{path}: {what} {word} is not there")


def code_variables():
    return set(re.findall(r'"(HEAPPROF_(?!TEST|OWNER)[A-Z_]+)"', read("src/control/config.c")))


def header_functions():
    return set(re.findall(r"inline int (heapprof_\w+[a-z])\(", read("include/heapprof.h")))


def command_verbs():
    return {os.path.basename(path)[4:-2] for path in glob.glob("src/cli/cmd_*.c")}


def check_links():
    for path in glob.glob("*.md") + glob.glob("docs/*.md") + glob.glob("*/README.md") + glob.glob("tests/*/README.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(path)):
            if not os.path.exists(os.path.join(os.path.dirname(path), target)):
                faults.append(f"{path}: link to {target}, which is not there")


def check_unknown_variables(variables):
    allowed = variables | {"HEAPPROF_WERROR", "HEAPPROF_BUILD_CLI", "HEAPPROF_BUILD_TESTS", "HEAPPROF_SANITIZE", "HEAPPROF_FUZZ",
                           "HEAPPROF_TESTING", "HEAPPROF_OWNER", "HEAPPROF_TEST_JOBS", "HEAPPROF_READ_LIMIT", "HEAPPROF_LIB", "HEAPPROF_H"}
    for path in ["README.md"] + glob.glob("docs/*.[137]"):
        for name in sorted(set(re.findall(r"HEAPPROF_[A-Z_]*[A-Z]", read(path)))):
            if name not in allowed and not name.startswith("HEAPPROF_VERSION"):
                faults.append(f"{path}: {name} is no variable of the library")


def named_files(text):
    """`record/labels.[ch]`, `walk_rule.c`: the paths that may end so."""
    for name in re.findall(r"`([\w./-]+\.(?:\[ch\]|[ch]|cc|py|map|cmake|txt|proto))`", text):
        yield from ([name[:-4] + "c", name[:-4] + "h"] if name.endswith(".[ch]") else [name])


def check_named_files():
    files = ["/" + os.path.join(folder, name)[2:] for folder, _, names in os.walk(".") if "/build" not in folder for name in names]
    for path in ["docs/architecture.md", "src/README.md", "CONTRIBUTING.md"]:
        for name in sorted(set(named_files(read(path)))):
            if not any(file.endswith("/" + name) for file in files):
                faults.append(f"{path}: {name} is no file")


def check_map():
    """The words of the map in src/README.md are files of that folder, * stands for any letters."""
    folder = None
    for line in read("src/README.md").split("```")[1].splitlines():
        if not line.strip():
            continue
        folder = line.split("/")[0] if line[0] != " " else folder
        words = re.sub(r"\([^)]*\)|<\w+>", lambda m: "*" if m[0][0] == "<" else "", line[58:])
        for word in re.split(r"[\s,]+", words.strip()):
            if not glob.glob(f"src/{folder}/{word}.[ch]"):
                faults.append(f"src/README.md: src/{folder} has no {word}")


def main():
    variables, functions, verbs = code_variables(), header_functions(), command_verbs()
    expect("README.md", variables, "variable")
    expect("docs/libheapprof.7", variables, "variable")
    expect("docs/heapprof.h.3", functions, "function")
    expect("README.md", {f"heapprof {verb}" for verb in verbs}, "verb")
    check_unknown_variables(variables)
    check_links()
    check_named_files()
    check_map()
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


main()
