#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the tests of a coverage build have reached in src/, summed over all its programs and libraries.

  report.py BUILD             the table by module, then by file
  report.py BUILD --unreached and each line, and each way of a branch, that nothing took
  report.py BUILD --reset     forgets the counts

A branch is a condition that can go two ways, each way counted. Needs llvm-cov and llvm-profdata of the compiler's own version.
"""
import argparse
import collections
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tool(build, name):
    """The llvm tool beside the build's own compiler: the raw profile's format is the version's."""
    with open(os.path.join(build, 'CMakeCache.txt')) as cache:
        compiler = re.search(r'^CMAKE_C_COMPILER:\w+=(.*)$', cache.read(), re.M).group(1)
    beside = os.path.join(os.path.dirname(os.path.realpath(shutil.which(compiler) or compiler)), name)
    return beside if os.path.exists(beside) else name


def images(build):
    """Each program and library with counters, once: tests leave copies."""
    seen = set()
    for folder, folders, names in os.walk(build):
        folders[:] = [f for f in folders if f != 'CMakeFiles']
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(('.o', '.a')) or os.path.islink(path) or not os.access(path, os.X_OK):
                continue
            with open(path, 'rb') as file:
                content = file.read()
            digest = hashlib.sha256(content).digest()
            if content.startswith(b'\x7fELF') and b'__llvm_covmap' in content and digest not in seen:
                seen.add(digest)
                yield path


def export(build, image, folder):
    """The lcov text and the JSON of one image."""
    raw, merged, link = (os.path.join(folder, name) for name in ('raw', 'merged', 'image'))
    environment = {'COVERAGE_WRITE': raw}
    os.symlink(os.path.abspath(image), link)  # the loader cuts LD_PRELOAD at spaces and colons
    is_library = '.so' in os.path.basename(image)
    if is_library:
        environment['LD_PRELOAD'] = link
    subprocess.run(['/bin/true'] if is_library else [link], env=environment, check=True)
    subprocess.run([tool(build, 'llvm-profdata'), 'merge', '-o', merged, raw], check=True)
    command = [tool(build, 'llvm-cov'), 'export', image, '-instr-profile=' + merged, '--skip-functions']
    run = [subprocess.run(command + ['-format=' + form], check=True, capture_output=True, text=True).stdout for form in ('lcov', 'text')]
    os.unlink(raw)
    os.unlink(link)
    return run[0], json.loads(run[1])


class File:
    def __init__(self):
        self.lines = collections.Counter()
        self.ways = collections.Counter()  # (line, column, end line, end column, is true) -> times


def of_src(path):
    path = os.path.relpath(path, ROOT)
    return path if path.startswith('src' + os.sep) else None


def read(build):
    files = collections.defaultdict(File)
    with tempfile.TemporaryDirectory() as folder:
        for image in images(build):
            lcov, exported = export(build, image, folder)
            name = None
            for line in lcov.splitlines():
                if line.startswith('SF:'):
                    name = of_src(line[3:])
                elif line.startswith('DA:') and name:
                    number, count = line[3:].split(',')[:2]
                    files[name].lines[int(number)] += int(count)
            for entry in exported['data'][0]['files']:
                name = of_src(entry['filename'])
                for branch in entry.get('branches', []) if name else []:
                    files[name].ways[(*branch[:4], True)] += branch[4]
                    files[name].ways[(*branch[:4], False)] += branch[5]
    return files


def reached(counts):
    return sum(1 for count in counts.values() if count), len(counts)


def print_table(title, rows):
    """rows: name -> files; three columns of each."""
    print(f'| {title} | lines | % | ways of branches | % |\n| --- | --- | --- | --- | --- |')
    for name, members in rows:
        text = f'| `{name}` |'
        for what in ('lines', 'ways'):
            hit, all_of = map(sum, zip(*(reached(getattr(member, what)) for member in members)))
            text += f' {hit} of {all_of} | {100 * hit / all_of:.1f} |' if all_of else ' - | - |'
        print(text)


def print_unreached(name, file):
    with open(os.path.join(ROOT, name)) as source:
        text = collections.defaultdict(str, enumerate(source.read().splitlines(), 1))  # it may have changed since
    missed = sorted(number for number in file.lines if not file.lines[number])
    ways = {}
    for line, column, end_line, end_column, way in sorted(file.ways):
        if not file.ways[(line, column, end_line, end_column, way)] and file.lines[line]:
            ways.setdefault((line, column, end_line, end_column), []).append('true' if way else 'false')
    for number in missed:
        print(f'{name}:{number}: not reached: {text[number].strip()}')
    for (line, column, end_line, end_column), never in ways.items():
        condition = text[line][column - 1:end_column - 1 if end_line == line else None]
        print(f'{name}:{line}:{column}: never {" nor ".join(never)}: {condition}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--unreached', action='store_true')
    parser.add_argument('--reset', action='store_true')
    options = parser.parse_args()
    if options.reset:
        counters = os.path.join(options.build, 'coverage')
        for name in os.listdir(counters):
            os.unlink(os.path.join(counters, name))
        return 0
    files = read(options.build)
    if not files:
        print('no counts: is it a build of the preset coverage?', file=sys.stderr)
        return 1
    modules = collections.defaultdict(list)
    for name, file in files.items():
        modules[os.path.dirname(name)].append(file)
    print_table('module', sorted(modules.items()) + [('src', list(files.values()))])
    print()
    print_table('file', [(name, [file]) for name, file in sorted(files.items())])
    if options.unreached:
        print()
        for name in sorted(files):
            print_unreached(name, files[name])
    return 0


if __name__ == '__main__':
    sys.exit(main())
