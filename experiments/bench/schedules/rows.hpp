// The rows of bench_schedules, a function for each family; each prints what, the figure, and the floor if there is one.
// SPDX-License-Identifier: MIT
#pragma once

void bench_graph();
void bench_mixed();
void bench_online();
void bench_optimal_chain();
void bench_tiers();
