// What optimal_chain gains over the best equal spacing in the same bytes: on random stacks, a Transformer and an LSTM.
// SPDX-License-Identifier: MIT
#include "backsweep/schedule/optimal_chain.hpp"
#include "backsweep/schedule/referee.hpp"
#include "support/chain_machine.hpp"
#include "support/script.hpp"
#include "support/stacks.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;

namespace {

constexpr double nothing_fits = std::numeric_limits<double>::infinity();

/// Segments of every length, and every number of segments with the rest in the last one, as PyTorch's
/// checkpoint_sequential cuts; `shifted`: also of every length with a first segment of any shorter one.
class EqualSpacing {
public:
    EqualSpacing(const ChainCosts& chain, bool shifted) {
        const Index n = chain.links();
        const Machine machine = test::chain_machine(chain);
        const auto add = [&](const std::vector<Index>& starts) {
            test::Script script(test::segments_on_tapes(n, starts));
            const Play play = referee(script, n, {}, machine);
            priced_.emplace_back(play.peak_total, play.cost);
        };
        for (Index k = 1; k <= n; ++k) {
            for (Index first = shifted ? 1 : k; first <= k; ++first) add(test::equal_segments(k, first, n));
            std::vector<Index> starts;
            for (Index s = 0; s < k; ++s) starts.push_back(s * (n / k));
            add(starts);
        }
    }

    /// The least time within `budget`.
    double time(std::int64_t budget) const {
        double best = nothing_fits;
        for (const auto& [peak, cost] : priced_)
            if (peak <= budget) best = std::min(best, cost);
        return best;
    }

private:
    std::vector<std::pair<std::int64_t, double>> priced_;
};

double optimal_time(const ChainCosts& chain, std::int64_t budget) {
    ChainOptions options;
    options.chain = chain;
    options.budget = budget;
    const std::optional<ChainPlan> plan = plan_optimal_chain(options);
    return plan ? plan->cost : nothing_fits;
}

/// Time with every link run once.
double least_time(const ChainCosts& chain) {
    return std::accumulate(chain.forward_time.begin(), chain.forward_time.end(), 0.0) +
           std::accumulate(chain.backward_time.begin(), chain.backward_time.end(), 0.0);
}

std::int64_t budget_at(const ChainCosts& chain, int percent) {
    const std::int64_t least = least_chain_budget(chain);
    return least + (full_chain_budget(chain) - least) * percent / 100;
}

/// In percent.
double share(double part, double whole) {
    return 100.0 * part / whole;
}

double quantile(std::vector<double>& values, double at) {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(at * static_cast<double>(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), place, values.end());
    return *place;
}

void random_stacks(int count) {
    std::printf(
        "%d random stacks\n\n"
        "| budget | equal spacing fits | time saved: lower quartile | median | upper quartile | largest | "
        "median against shifted | extra time, medians: optimal | equal | shifted |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n",
        count);
    struct Row {
        int percent;
        std::vector<double> saved{}, saved_shifted{}, extra{}, extra_equal{}, extra_shifted{};
    };
    std::array<Row, 6> rows{{{5}, {10}, {25}, {50}, {75}, {90}}};
    for (int k = 0; k < count; ++k) {
        const ChainCosts chain = test::random_stack(static_cast<std::uint64_t>(k));
        const EqualSpacing equal(chain, false), shifted(chain, true);
        const double once = least_time(chain);
        for (Row& row : rows) {
            const std::int64_t budget = budget_at(chain, row.percent);
            const double equal_time = equal.time(budget), shifted_time = shifted.time(budget);
            if (equal_time == nothing_fits) continue;
            const double time = optimal_time(chain, budget);
            row.saved.push_back(share(equal_time - time, equal_time));
            row.saved_shifted.push_back(share(shifted_time - time, shifted_time));
            row.extra.push_back(share(time - once, once));
            row.extra_equal.push_back(share(equal_time - once, once));
            row.extra_shifted.push_back(share(shifted_time - once, once));
        }
    }
    for (Row& row : rows) {
        std::printf("| %d %% | %zu |", row.percent, row.saved.size());
        if (!row.saved.empty()) {
            for (const double at : {0.25, 0.5, 0.75, 1.0}) std::printf(" %.1f %% |", quantile(row.saved, at));
            for (auto* values : {&row.saved_shifted, &row.extra, &row.extra_equal, &row.extra_shifted})
                std::printf(" %.1f %% |", quantile(*values, 0.5));
        }
        std::puts("");
    }
}

/// A link is a layer with what surrounds it; times are floating-point operations of the products.
class Stack {
public:
    explicit Stack(std::int64_t input_bytes) { chain_.state_bytes.push_back(input_bytes); }

    /// `kept` bytes on the tape beside the output; `working` bytes while it is reversed.
    void add(double forward, double backward, std::int64_t output, std::int64_t kept, std::int64_t working) {
        chain_.forward_time.push_back(forward);
        chain_.backward_time.push_back(backward);
        chain_.state_bytes.push_back(output);
        chain_.tape_bytes.push_back(kept + output);
        chain_.forward_overhead.push_back(0);
        chain_.backward_overhead.push_back(working);
    }

    const ChainCosts& chain() const { return chain_; }

private:
    ChainCosts chain_;
};

constexpr std::int64_t steps = 512, batch = 8, width = 512, heads = 8, vocabulary = 10000, real = 4;
constexpr std::int64_t positions = steps * batch;
constexpr std::int64_t activation = positions * width * real;

double product(std::int64_t inputs, std::int64_t outputs) {
    return 2.0 * static_cast<double>(positions) * static_cast<double>(inputs) * static_cast<double>(outputs);
}

void add_embedding(Stack& stack) {
    const double copy = static_cast<double>(positions * width);
    stack.add(copy, copy, activation, 0, 0);
}

/// Output product, softmax and cross-entropy: the probabilities are kept.
void add_head(Stack& stack) {
    const double forward = product(width, vocabulary);
    stack.add(forward, 2.0 * forward, real, positions * vocabulary * real, 0);
}

/// Twelve pre-norm blocks; attention is causal and keeps no scores but their logarithmic sums.
ChainCosts transformer() {
    Stack stack(positions * real);
    add_embedding(stack);
    for (int block = 0; block < 12; ++block) {
        const double projections = 4.0 * product(width, width);
        const double scores = product(width, steps);  // two products, half of each hidden
        const std::int64_t sums = positions * (heads + 1) * real;
        stack.add(projections + scores, 2.0 * projections + 2.5 * scores, activation, 5 * activation + sums,
                  4 * activation);
        const double forward = 2.0 * product(width, 4 * width);
        stack.add(forward, 2.0 * forward, activation, 9 * activation + positions * real, 4 * activation);
    }
    add_head(stack);
    return stack.chain();
}

/// Four layers with dropout between them, whose masks are drawn anew.
ChainCosts lstm() {
    Stack stack(positions * real);
    add_embedding(stack);
    for (int layer = 0; layer < 4; ++layer) {
        const double forward = product(2 * width, 4 * width);
        stack.add(forward, 2.0 * forward, activation, 5 * activation, 0);
        const double draw = 10.0 * static_cast<double>(positions * width);
        stack.add(draw, draw, activation, 0, 0);
    }
    add_head(stack);
    return stack.chain();
}

void one_stack(const char* name, const ChainCosts& chain) {
    constexpr double mebibyte = 1024.0 * 1024.0;
    const EqualSpacing equal(chain, false), shifted(chain, true);
    const double once = least_time(chain);
    for (const int percent : {0, 5, 10, 25, 50, 75, 90}) {
        const std::int64_t budget = budget_at(chain, percent);
        const double time = optimal_time(chain, budget), equal_time = equal.time(budget);
        std::printf("| %s | %d %% | %.0f | %.1f %% |", name, percent, static_cast<double>(budget) / mebibyte,
                    share(time - once, once));
        for (const double other : {equal_time, shifted.time(budget)}) {
            if (other == nothing_fits)
                std::printf(" does not fit |");
            else
                std::printf(" %.1f %% |", share(other - once, once));
        }
        if (equal_time != nothing_fits) std::printf(" %.1f %%", share(equal_time - time, equal_time));
        std::puts(" |");
    }
}

}  // namespace

int main(int argc, char** argv) {
    random_stacks(argc > 1 ? std::atoi(argv[1]) : 1000);
    std::puts(
        "\n| stack | budget | MiB | extra time: optimal | equal | shifted | time saved "
        "|\n|---|---|---|---|---|---|---|");
    one_stack("Transformer", transformer());
    one_stack("LSTM", lstm());
}
