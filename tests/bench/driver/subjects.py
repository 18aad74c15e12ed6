# SPDX-License-Identifier: MIT
"""What is measured: the plain program, the floor, heapprof at several rates, and the peers that are installed.

A subject is a name and the environment a program gets. `reference` is the subject its ratio is taken against: an allocator
that brings its own malloc is compared with itself without its profiler, not with glibc.
"""
import os
from dataclasses import dataclass, field

LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
HEAPTRACK = ("/usr/lib/heaptrack/libheaptrack_preload.so", "/usr/lib/x86_64-linux-gnu/heaptrack/libheaptrack_preload.so")
JEMALLOC_PROF = "prof:true,prof_accum:true,lg_prof_sample:19"


@dataclass(frozen=True)
class Subject:
    name: str
    env: dict = field(hash=False)  # {tmp} in a value: the folder for what the subject writes
    reference: str = "null"
    group: str = "peer"  # base, heapprof, peer, over
    is_every_call: bool = False  # records each call: fewer iterations and rounds do
    is_whole_run: bool = False  # differs only in what happens at the end: not for programs that time a loop inside
    is_crawling: bool = False  # tens of microseconds a call: pair and depth only


def find_library(name):
    for folder in LIBRARY_FOLDERS:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    return None


def heapprof_env(library, rate, behind=None, **more):
    env = {"LD_PRELOAD": library + (":" + behind if behind else ""), "HEAPPROF_SAMPLE_RATE": rate,
           "HEAPPROF_OUT": "{tmp}/"}
    env.update(more)
    return env


def all_subjects(null, library):
    """Every subject that can run here. `library` may be None: then heapprof is left out."""
    jemalloc, tcmalloc = find_library("libjemalloc.so.2"), find_library("libtcmalloc.so.4")
    heaptrack = next((path for path in HEAPTRACK if os.path.exists(path)), None)
    found = [Subject("plain", {}, "plain", "base"), Subject("plain again", {}, "plain", "base"),
             Subject("null", {"LD_PRELOAD": null}, "plain", "base")]
    if library:
        found += [Subject("heapprof " + rate, heapprof_env(library, rate), "null", "heapprof", is_every_call=rate == "1")
                  for rate in ("512k", "64k", "32k", "4k", "1")]
        found.append(Subject("heapprof 512k without exit dump", heapprof_env(library, "512k", HEAPPROF_EXIT_DUMP="0"), "null",
                             "heapprof", is_whole_run=True))
    if heaptrack:
        env = {"LD_PRELOAD": heaptrack, "DUMP_HEAPTRACK_OUTPUT": "/dev/null"}
        found.append(Subject("heaptrack", env, "plain", "peer", is_every_call=True))
    if jemalloc:
        found += [Subject("jemalloc", {"LD_PRELOAD": jemalloc}, "plain", "peer"),
                  Subject("jemalloc prof", {"LD_PRELOAD": jemalloc, "MALLOC_CONF": JEMALLOC_PROF}, "jemalloc", "peer"),
                  Subject("null over jemalloc", {"LD_PRELOAD": null + ":" + jemalloc}, "jemalloc", "over")]
    if tcmalloc:
        found += [Subject("tcmalloc", {"LD_PRELOAD": tcmalloc}, "plain", "peer"),
                  Subject("tcmalloc sampling", {"LD_PRELOAD": tcmalloc, "TCMALLOC_SAMPLE_PARAMETER": "524288"}, "tcmalloc"),
                  Subject("tcmalloc heap profiler", {"LD_PRELOAD": tcmalloc, "HEAPPROFILE": "{tmp}/tcmalloc",
                                                     "HEAP_PROFILE_ALLOCATION_INTERVAL": "0",
                                                     "HEAP_PROFILE_INUSE_INTERVAL": "0"}, "tcmalloc",
                          is_every_call=True, is_crawling=True)]
    for behind, path in (("jemalloc", jemalloc), ("tcmalloc", tcmalloc)):
        if library and path:
            found += [Subject(f"heapprof {rate} over {behind}", heapprof_env(library, rate, path), behind, "over")
                      for rate in ("512k", "32k")]
    return found


def sweep_subjects(library):
    """{profiler: {rate in bytes: Subject}} for the cost of one sample; the first rate is the base line."""
    rates = (524288, 8192, 4096, 2048, 1024, 512)
    jemalloc, tcmalloc = find_library("libjemalloc.so.2"), find_library("libtcmalloc.so.4")
    sweeps = {}
    if library:
        sweeps["heapprof"] = {rate: Subject(f"heapprof {rate}", heapprof_env(library, str(rate))) for rate in rates}
    if jemalloc:
        conf = "prof:true,prof_accum:true,lg_prof_sample:"
        sweeps["jemalloc"] = {rate: Subject(f"jemalloc {rate}", {"LD_PRELOAD": jemalloc,
                                                               "MALLOC_CONF": conf + str(rate.bit_length() - 1)})
                              for rate in rates}
    if tcmalloc:
        sweeps["tcmalloc"] = {rate: Subject(f"tcmalloc {rate}", {"LD_PRELOAD": tcmalloc,
                                                               "TCMALLOC_SAMPLE_PARAMETER": str(rate)})
                              for rate in rates}
    return sweeps
