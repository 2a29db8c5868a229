// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "cli/commands.hpp"
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

/// The schedules that keep at most `slots` states.
std::vector<ScheduleCounts> counts(Index steps, Index slots) {
    std::vector<ScheduleOptions> all{family("store_all")};
    if (slots > 0) {
        all.push_back(family("periodic"));
        all.back().period = (steps + slots) / (slots + 1);  // slots + 1 blocks, the last one behind the last state
        all.push_back(family("revolve"));
        all.back().slots = slots;
    }
    Workload w;
    w.steps = steps;
    w.chunk = 1;
    w.state = w.tape = 1;  // bytes are then counts
    std::vector<ScheduleCounts> rows;
    for (const ScheduleOptions& options : all) {
        const Plan plan = price(w, options);
        rows.push_back({plan.schedule, steps, plan.predicted[Kind::slots], plan.predicted[Kind::tape], plan.advances,
                        plan.recorded});
    }
    return rows;
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
        TrainOptions options = train_options(config, source->windows());
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
    if (!arguments.file.empty()) {
        if (arguments.steps != 0 || arguments.slots != 0)
            throw InvalidArgument("--steps and --slots have no effect with a configuration; leave one of them out");
        require_within("--measure", arguments.measure, 0, 1'000'000);
        return plan_file(arguments);
    }
    if (arguments.steps == 0) throw InvalidArgument("give a configuration, or --steps, the links of a chain");
    require_within("--steps", arguments.steps, 1, 1'000'000'000);
    require_within("--slots", arguments.slots, 0, 1'000'000'000);
    if (arguments.measure != 0 || !arguments.settings.empty())
        throw InvalidArgument("--measure and --set have no effect without a configuration; give one");
    const std::vector<ScheduleCounts> rows = counts(arguments.steps, arguments.slots);
    fmt::print("{}", arguments.json ? as_json(rows) : as_text(rows));
    return 0;
}

}  // namespace backsweep::cli
