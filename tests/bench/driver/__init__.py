# SPDX-License-Identifier: MIT
"""Driver of the benchmarks: subjects x workloads, interleaved rounds, tables, verdicts. scripts/bench is its command."""
