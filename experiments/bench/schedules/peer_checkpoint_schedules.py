#!/usr/bin/env python3
# What an action of Python's checkpoint_schedules costs, beside the rows of bench_schedules. Nothing here depends on it:
#     python3 -m venv build/peer && build/peer/bin/pip install checkpoint_schedules
#     build/peer/bin/python experiments/bench/schedules/peer_checkpoint_schedules.py
# SPDX-License-Identifier: MIT
import importlib.metadata
import statistics
import time

from checkpoint_schedules import EndReverse, MultistageCheckpointSchedule, Revolve


def emit(make):
    """Process seconds until the schedule is made and until its last action, and how many actions there are."""
    begin = time.process_time()
    schedule = make()
    made = time.process_time()
    count = 0
    for action in schedule:
        count += 1
        if isinstance(action, EndReverse):
            break
    return made - begin, time.process_time() - begin, count


def row(name, steps, slots, make, runs=3):
    results = [emit(lambda: make(steps, slots)) for _ in range(runs)]
    plan, whole = (statistics.median(each[k] for each in results) for k in (0, 1))
    count = results[0][2]
    print(f"{name:<12} {steps:>8} steps, {slots:>4} slots  {1e3 * whole:10.1f} ms, {1e3 * plan:9.1f} to plan  "
          f"{1e9 * whole / count:10.0f} ns/action  {count / steps:6.3f} actions/step", flush=True)


print("checkpoint_schedules", importlib.metadata.version("checkpoint_schedules"))
for slots in (3, 10, 20, 100):
    row("Multistage", 10_000, slots, lambda n, s: MultistageCheckpointSchedule(n, s, 0, trajectory="revolve"))
for slots in (10, 100):
    row("Multistage", 1_000_000, slots, lambda n, s: MultistageCheckpointSchedule(n, s, 0, trajectory="revolve"), 1)
for steps, slots in ((200, 3), (200, 10), (1000, 10)):
    row("Revolve", steps, slots, Revolve, 1)
