// What an Execution costs beside the links: a chain whose links do next to nothing, forward and backward.
// Prints nanoseconds a step, process time: of the first run, and median and least of the later ones.
// SPDX-License-Identifier: MIT
#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/store_all.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace backsweep;

/// A range of any length is one assignment, so that what is left is the engine.
struct Nothing {
    using State = double;
    using Tape = double;
    using Adjoint = double;
    Index links;

    std::optional<Index> length() const { return links; }
    State initial() const { return 0.0; }
    Index advance(Range r, State& x) {
        x = static_cast<double>(r.last);
        return r.last;
    }
    Index record(Range r, State& x, Tape& tape) {
        tape = x;
        return advance(r, x);
    }
    void seed(const State& x, Adjoint& a) { a = x; }
    void reverse(Range, State&, Tape& tape, Adjoint& a) { a += tape; }
};

constexpr int runs = 41;

double now() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

void measure(const std::string& name, Index steps, std::unique_ptr<Schedule> schedule) {
    Nothing chain{steps};
    Execution run(chain, std::move(schedule));
    std::vector<double> first, again;
    for (int k = 0; k <= runs; ++k) {
        const double start = now();
        run.forward();
        run.backward();
        (k == 0 ? first : again).push_back((now() - start) / static_cast<double>(steps) * 1e9);
    }
    const double n = static_cast<double>(steps);
    if (run.adjoint() != n + n * (n - 1.0) / 2.0) {
        std::printf("%s: wrong gradient\n", name.c_str());
        std::exit(1);
    }
    std::sort(again.begin(), again.end());
    std::printf("%-24s %8.1f %8.1f %8.1f %12.2f\n", name.c_str(), first[0], again[runs / 2], again[0],
                static_cast<double>(run.counts().advances) / n);
}

}  // namespace

int main() {
    constexpr Index steps = 1'000'000;
    std::printf("ns a step, %lld steps\n%-24s %8s %8s %8s %12s\n", static_cast<long long>(steps), "", "first", "median",
                "least", "advances");
    for (const Index s : {3, 10, 20, 100, 10'000})
        measure("revolve, " + std::to_string(s) + " slots", steps, revolve(steps, s));
    measure("periodic, 1000", steps, periodic(steps, 1000));
    measure("store_all", steps, store_all(steps));
}
