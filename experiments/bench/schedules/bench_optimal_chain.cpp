// Chains of unequal links: time to plan and memory of the tables, in few units and in exact bytes.
// SPDX-License-Identifier: MIT
#include "backsweep/schedule/optimal_chain.hpp"
#include "rows.hpp"
#include "timing.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <random>
#include <string>

using namespace backsweep;

namespace {

void row(const std::string& what, const ChainOptions& options, const char* floor) {
    std::array<double, 3> runs{};
    std::optional<ChainPlan> plan;
    for (double& run : runs) {
        const double begin = seconds();
        plan = plan_optimal_chain(options);
        run = seconds() - begin;
    }
    std::sort(runs.begin(), runs.end());
    if (!plan) {
        std::printf("%-44s no plan fits\n", what.c_str());
        return;
    }
    std::printf("%-44s %7.3f s  %6.1f MB of tables  %s  %s\n", what.c_str(), runs[1],
                static_cast<double>(plan->table_bytes) / 1e6, plan->exact ? "exact" : "coarse", floor);
}

std::int64_t below(std::mt19937_64& random, std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
}

ChainCosts times(std::mt19937_64& random, Index links) {
    ChainCosts chain;
    for (Index i = 0; i < links; ++i) {
        chain.forward_time.push_back(1.0 + 1e-4 * static_cast<double>(below(random, 100000)));
        chain.backward_time.push_back(2.0 * chain.forward_time.back() +
                                      1e-3 * static_cast<double>(below(random, 1000)));
    }
    return chain;
}

/// All sizes differ; they are given in units of which the budget has 500.
ChainOptions in_units(Index links, double share) {
    std::mt19937_64 random(1);
    ChainOptions options;
    options.chain = times(random, links);
    std::int64_t all = 0;
    for (Index i = 0; i <= links; ++i) options.chain.state_bytes.push_back(64 * (1 + below(random, 1000)));
    for (std::size_t i = 1; i < options.chain.state_bytes.size(); ++i) {
        options.chain.tape_bytes.push_back(options.chain.state_bytes[i] + 64 * below(random, 3000));
        all += options.chain.tape_bytes.back();
    }
    options.budget = 500;
    const auto unit = static_cast<std::int64_t>(share * static_cast<double>(all) / 500.0) + 1;
    for (std::int64_t& bytes : options.chain.state_bytes) bytes = (bytes + unit - 1) / unit;
    for (std::int64_t& bytes : options.chain.tape_bytes) bytes = (bytes + unit - 1) / unit;
    return options;
}

/// At most 12 sizes, multiples of 64 bytes.
ChainOptions in_bytes(Index links, double share) {
    std::mt19937_64 random(1);
    ChainOptions options;
    options.chain = times(random, links);
    std::array<std::int64_t, 12> sizes{};
    for (std::int64_t& size : sizes) size = 64 * (1 + below(random, 16384));
    for (Index i = 0; i <= links; ++i) {
        options.chain.state_bytes.push_back(sizes[static_cast<std::size_t>(below(random, 6))]);
    }
    for (std::size_t i = 1; i < options.chain.state_bytes.size(); ++i) {
        options.chain.tape_bytes.push_back(
            std::max(options.chain.state_bytes[i], sizes[static_cast<std::size_t>(6 + below(random, 6))]));
    }
    options.budget = static_cast<std::int64_t>(share * static_cast<double>(full_chain_budget(options.chain)));
    return options;
}

std::string percent(double share) {
    return std::to_string(static_cast<int>(100.0 * share + 0.5)) + " %";
}

}  // namespace

void bench_optimal_chain() {
    std::puts("Chains of unequal links");
    for (const double share : {0.1, 0.3, 0.6}) {
        ChainOptions options = in_units(300, share);
        options.second_table = false;
        row("300 links, 500 units, first table, " + percent(share), options, "<= 1.5 s");
        options.second_table = true;
        row("300 links, 500 units, both tables, " + percent(share), options, "<= 6 s");
    }
    for (const double share : {0.1, 0.3, 0.5, 0.7, 0.9}) {
        ChainOptions options = in_bytes(200, share);
        options.second_table = false;
        row("200 links, bytes, first table, " + percent(share), options, share <= 0.3 ? "<= 2.5 s" : "<= 4 s");
    }
    row("200 links, bytes, both tables, 30 %", in_bytes(200, 0.3), "");
}
