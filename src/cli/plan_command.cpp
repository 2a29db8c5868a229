// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "cli/chain_plan.hpp"
#include "cli/commands.hpp"
#include "cli/graph_plan.hpp"
#include "cli/report.hpp"
#include "cli/task.hpp"
#include "cli/toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace backsweep::cli {

namespace {

ScheduleOptions family(const char* name) {
    ScheduleOptions o;
    o.family = name;
    return o;
}

bool fits(const Plan& plan, const Budget& budget) {
    return (budget.ram == Budget::unlimited || plan.predicted.total() <= budget.ram) &&
           (budget.time_axis == Budget::unlimited || plan.predicted.time_axis() <= budget.time_axis);
}

bool same(const ScheduleOptions& a, const ScheduleOptions& b) {
    return a.family == b.family && a.slots == b.slots && a.period == b.period && a.rule == b.rule;
}

/// Cheapest first: what the planner chooses among, what is configured or pinned, and store_all for comparison.
template <class Real>
std::vector<Candidate> candidates_of(const Config& config, const Workload& workload, const TrainOptions& options) {
    std::vector<Plan> plans = candidates(workload, options.budget);
    std::vector<ScheduleOptions> others{family("store_all")};
    std::optional<ScheduleOptions> chosen;
    if (config.pinned())
        chosen = config.plan.schedule;
    else if (options.schedule.family != "auto")
        chosen = options.schedule;
    else if (!plans.empty())
        chosen = plans.front().schedule;
    if (chosen) others.push_back(*chosen);
    for (const ScheduleOptions& other : others)
        if (std::none_of(plans.begin(), plans.end(), [&](const Plan& p) { return same(p.schedule, other); }))
            plans.push_back(price(workload, other));
    std::stable_sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) { return a.cost < b.cost; });
    std::vector<Candidate> all;
    for (Plan& plan : plans) {
        const bool is_chosen = chosen && same(plan.schedule, *chosen), does_fit = fits(plan, options.budget);
        all.push_back({.plan = std::move(plan), .fits = does_fit, .chosen = is_chosen});
    }
    return all;
}

/// Runs `updates` of them, after one that warms up, under this candidate.
template <class Real>
void measure(Candidate& candidate, const Network<Real>& network, const Source<Real>& source,
             const TrainOptions& options, Index updates) {
    using Clock = std::chrono::steady_clock;
    Trainer<Real> trainer(network, source, options, candidate.plan);
    trainer.update();
    const Clock::time_point from = Clock::now();
    for (Index k = 0; k < updates; ++k) trainer.update();
    candidate.seconds = std::chrono::duration<double>(Clock::now() - from).count() / static_cast<double>(updates);
    candidate.measured = trainer.measured();
}

int plan_file(const PlanArguments& arguments) {
    Config config = configure_with(read_toml(arguments.file), arguments.settings).config;
    const Data data = open_data(config.data);
    return with_precision(config.train.precision, [&](auto real) {
        using Real = decltype(real);
        const auto source = make_source<Real>(config.data, data, "train");
        const Network<Real> network = build<Real>(model_spec(config, data), config.train.device);
        TrainOptions options = train_options(config, source->windows(), network.parameters());
        const Workload load = workload(network, *source, options);
        std::vector<Candidate> all = candidates_of<Real>(config, load, options);
        for (Candidate& candidate : all)
            if (arguments.measure > 0) measure(candidate, network, *source, options, arguments.measure);
        fmt::print(
            "{}", arguments.json ? as_json(all, load.steps, options.budget) : as_text(all, load.steps, options.budget));
        if (std::none_of(all.begin(), all.end(), [](const Candidate& c) { return c.fits; }))
            static_cast<void>(make_plan(load, options.budget));  // says what is missing
        return 0;
    });
}

}  // namespace

int plan(const PlanArguments& arguments) {
    const ChainArguments& chain = arguments.chain;
    const bool of_chain = chain != ChainArguments{};
    if (!arguments.file.empty()) {
        if (of_chain || !arguments.graph.empty())
            throw InvalidArgument(
                "a configuration says all about its chain: of the options beside it only --set, --measure and --json "
                "have an effect; leave the others out");
        require_within("--measure", arguments.measure, 0, 1'000'000);
        return plan_file(arguments);
    }
    if (arguments.measure != 0 || !arguments.settings.empty())
        throw InvalidArgument("--measure and --set have no effect without a configuration; give one");
    if (!arguments.graph.empty()) return plan_graph_file(arguments.graph, chain, arguments.json);
    if (chain.steps == 0) throw InvalidArgument("give a configuration, --graph, or --steps, the links of a chain");
    return plan_chain(chain, arguments.json);
}

}  // namespace backsweep::cli
