// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "backsweep/train/durable_file.hpp"
#include "backsweep/train/plan_json.hpp"
#include "cli/chain_plan.hpp"
#include "cli/commands.hpp"
#include "cli/front_plot.hpp"
#include "cli/graph_plan.hpp"
#include "cli/planning.hpp"
#include "cli/report.hpp"
#include "cli/task.hpp"
#include "cli/toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace backsweep::cli {

namespace {

/// Whether two plans run alike.
bool same(const Plan& a, const Plan& b) {
    return to_json(a) == to_json(b);
}

/// Cheapest first: plans that no other beats in both bytes and cost, what is chosen or pinned, and what keeps every tape.
template <class Real>
std::vector<Candidate> candidates_of(const Config& config, const Planning<Real>& planning) {
    const Budget& budget = planning.options().budget;
    Budget none;
    none.disk = budget.disk;
    std::vector<Plan> plans = planning.planner().front();
    std::optional<Plan> chosen;
    try {
        chosen = planning.plan(config);
    } catch (const NoPlan&) {  // said at the end
    }
    const auto add = [&](const Plan& plan) {
        if (std::none_of(plans.begin(), plans.end(), [&](const Plan& p) { return same(p, plan); })) plans.push_back(plan);
    };
    if (chosen) add(*chosen);
    add(planning.planner().best(none));
    std::stable_sort(plans.begin(), plans.end(), cheaper);
    std::vector<Candidate> all;
    for (Plan& plan : plans) {
        const bool is_chosen = chosen && same(plan, *chosen), does_fit = fits(plan, budget);
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

/// The largest window or batch under which something fits.
template <class Real>
int fit(Config config, const Data& data, const std::string& what, bool json) {
    const bool steps = what == "T";
    Index& size = steps ? config.data.window : config.data.batch;
    const Index now = size;
    constexpr Index most = Index{1} << 40;
    enum class Answer { fits, does_not, no_such_data };
    const auto ask = [&](Index value) {
        size = value;
        try {
            const auto source = make_source<Real>(config.data, data, "train");
            static_cast<void>(Planning<Real>(config, data, *source).planner().best());
            return Answer::fits;
        } catch (const NoPlan&) {
            return Answer::does_not;
        } catch (const InvalidArgument&) {  // shorter than the task or longer than the data, or more than is counted
            if (value == now) throw;
            return Answer::no_such_data;
        }
    };
    static_cast<void>(ask(now));  // refuses what has nothing to do with the size
    Index least = 1;
    while (least < now && ask(least) == Answer::no_such_data) ++least;
    const Index largest = largest_that_fits(least, most, [&](Index value) { return ask(value) == Answer::fits; });
    if (largest == 0) {
        size = least;
        const auto source = make_source<Real>(config.data, data, "train");
        static_cast<void>(Planning<Real>(config, data, *source).planner().best());  // says what is missing
    }
    fmt::print("{}", fit_report(steps ? "data.window" : "data.batch", largest, now, json));
    return 0;
}

int plan_file(const PlanArguments& arguments) {
    std::vector<std::string> settings = arguments.settings;
    if (!arguments.chain.memory.empty()) settings.push_back("memory.limit=\"" + arguments.chain.memory + "\"");
    if (!arguments.chain.disk.empty()) settings.push_back("memory.disk=\"" + arguments.chain.disk + "\"");
    if (arguments.calibrate) settings.push_back("schedule.calibrate=true");
    Config config = configure_with(read_toml(arguments.file), settings).config;
    const Data data = open_data(config.data);
    return with_precision(config.train.precision, [&](auto real) {
        using Real = decltype(real);
        if (!arguments.fit.empty()) return fit<Real>(config, data, arguments.fit, arguments.json);
        const auto source = make_source<Real>(config.data, data, "train");
        const Planning<Real> planning(config, data, *source);
        const TrainOptions& options = planning.options();
        std::vector<Candidate> all = candidates_of<Real>(config, planning);
        for (Candidate& candidate : all)
            if (arguments.measure > 0)
                measure(candidate, planning.network(candidate.plan), *source, options, arguments.measure);
        const Index steps = source->window() + options.look_back;
        if (!arguments.chain.plot.empty()) {
            const double least = all.front().plan.least_cost;
            const auto envelope = [&](std::int64_t bytes) {
                return all.front().plan.measured ? 1.0 : planning.planner().lower_bound(bytes) / least;
            };
            write_durable(arguments.chain.plot, plot_front(all, options.budget, envelope, arguments.file.stem().string()));
        }
        fmt::print("{}", arguments.json ? as_json(all, steps, options.budget) : as_text(all, steps, options.budget));
        if (std::none_of(all.begin(), all.end(), [](const Candidate& c) { return c.chosen; }))
            static_cast<void>(planning.plan(config));  // says what is missing
        return 0;
    });
}

}  // namespace

int plan(const PlanArguments& arguments) {
    if (arguments.graph) return plan_graph(arguments);
    const ChainArguments& chain = arguments.chain;
    if (!arguments.file.empty()) {
        ChainArguments others = chain;
        others.memory.clear();
        others.disk.clear();
        others.plot.clear();
        if (others != ChainArguments{})
            throw InvalidArgument(
                "a configuration says all about its chain: of the options beside it only --set, --memory, --disk, "
                "--calibrate, --fit, --measure, --plot and --json have an effect; leave the others out");
        if (!arguments.fit.empty() && (arguments.measure > 0 || !chain.plot.empty()))
            throw InvalidArgument("--fit answers with one number: --measure and --plot have no effect beside it; leave them out");
        require_within("--measure", arguments.measure, 0, 1'000'000);
        return plan_file(arguments);
    }
    if (arguments.measure != 0 || !arguments.settings.empty() || !arguments.fit.empty() || arguments.calibrate)
        throw InvalidArgument("--measure, --fit, --calibrate and --set have no effect without a configuration; give one");
    if (chain.steps == 0) throw InvalidArgument("give a configuration, --graph, or --steps, the links of a chain");
    return plan_chain(chain, arguments.json);
}

}  // namespace backsweep::cli
