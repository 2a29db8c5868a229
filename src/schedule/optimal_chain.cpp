// SPDX-License-Identifier: MIT
#include "backsweep/schedule/optimal_chain.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/referee.hpp"
#include "schedule/block_schedule.hpp"
#include "schedule/chain_table.hpp"
#include "schedule/emit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace backsweep {
namespace {

using chain_table::Keep;
using chain_table::Links;
using chain_table::Rounding;
using chain_table::RowNeeds;
using chain_table::Table;
using chain_table::Tables;

/// Up to so many units a table of every unit is quicker than one of breakpoints.
constexpr Index few_units = 2048;
constexpr Index cells = 256;
constexpr Index first_units = 500;

/// The actions of the best plan, read off the tables from the whole chain downwards.
class Emission {
public:
    Emission(const Links& links, const Tables& tables)
        : links_(links),
          tables_(tables),
          state_slot_(static_cast<std::size_t>(links.last()) + 1, none),
          tape_slot_(state_slot_) {
        row(Table::plain, 0, links.last(), tables.memory(), true);
    }

    std::vector<Action> take() { return std::move(actions_); }

private:
    static constexpr std::int32_t none = -1;

    /// Reverses the links i ... l. `live`: x_i is the working state; else it lies in a slot or a tape.
    void row(Table table, Index i, Index l, Index m, bool live) {
        if (i == l) return leaf(table, i, live);
        if (!live) bring(i, false);
        if (state_of(i) == none && !in_tape(i)) {
            state_of(i) = free_slot();
            actions_.push_back(emit::save(i, ram(state_of(i))));
        }
        const Tables::Cut cut = tables_.best_cut(table, i, l, m);
        const Index e = cut.e;
        if (cut.keep == Keep::state) {
            actions_.push_back(emit::advance(i, e + 1));
            row(table, e + 1, l, m - cut.shift, true);
            row(Table::plain, i, e, m, false);
            return;
        }
        if (e > i) actions_.push_back(emit::advance(i, e));
        actions_.push_back(emit::record(e));
        // Between the turn and a reverse that follows it at once the tape need not leave the working tape.
        if (e > i || e + 1 < links_.last()) {
            tape_of(e) = free_slot();
            actions_.push_back(emit::stow(e, ram(tape_of(e))));
        }
        row(table, e + 1, l, m - cut.shift, true);
        row(Table::taped, i, e, m, false);
    }

    void leaf(Table table, Index i, bool live) {
        if (i == links_.last()) {
            actions_.push_back(emit::turn(i));
            return;
        }
        if (!live) bring(i, true);
        if (table == Table::plain) {
            actions_.push_back(emit::tape(i));
        } else if (tape_of(i) != none) {
            actions_.push_back(emit::fetch(i, ram(std::exchange(tape_of(i), none))));
        }
        actions_.push_back(emit::reverse(i));
    }

    /// x_i becomes the working state; `last`: nobody reads it again.
    void bring(Index i, bool last) {
        if (state_of(i) == none) {
            actions_.push_back(emit::restart(i, ram(tape_of(i - 1))));
        } else if (last) {
            actions_.push_back(emit::take(i, ram(std::exchange(state_of(i), none))));
        } else {
            actions_.push_back(emit::load(i, ram(state_of(i))));
        }
    }

    static Slot ram(std::int32_t index) { return {Tier::ram, index}; }
    std::int32_t& state_of(Index i) { return state_slot_[static_cast<std::size_t>(i)]; }
    std::int32_t& tape_of(Index i) { return tape_slot_[static_cast<std::size_t>(i)]; }
    bool in_tape(Index i) { return i > 0 && tape_of(i - 1) != none; }
    /// The lowest slot that holds neither a state nor a tape.
    std::int32_t free_slot() const {
        std::vector<bool> used(state_slot_.size() + tape_slot_.size());
        for (const std::vector<std::int32_t>* slots : {&state_slot_, &tape_slot_}) {
            for (const std::int32_t slot : *slots) {
                if (slot != none) used[static_cast<std::size_t>(slot)] = true;
            }
        }
        return static_cast<std::int32_t>(std::find(used.begin(), used.end(), false) - used.begin());
    }

    const Links& links_;
    const Tables& tables_;
    std::vector<std::int32_t> state_slot_, tape_slot_;
    std::vector<Action> actions_;
};

class Listed final : public BlockSchedule {
public:
    explicit Listed(std::vector<Action> actions) : actions_(std::move(actions)) { actions_.push_back(emit::done()); }

private:
    void begin() override { at_ = 0; }

    std::size_t generate(std::span<Action> out) override {
        const std::size_t count = std::min(out.size(), actions_.size() - at_);
        std::copy_n(actions_.begin() + static_cast<std::ptrdiff_t>(at_), count, out.begin());
        at_ = std::min(at_ + count, actions_.size() - 1);
        return count;
    }

    std::vector<Action> actions_;
    std::size_t at_ = 0;
};

/// All sizes are multiples of it.
std::int64_t common_unit(const ChainCosts& chain) {
    std::int64_t unit = 0;
    for (const auto* sizes :
         {&chain.state_bytes, &chain.tape_bytes, &chain.forward_overhead, &chain.backward_overhead}) {
        for (const std::int64_t bytes : *sizes) unit = std::gcd(unit, bytes);
    }
    return std::max<std::int64_t>(unit, 1);
}

/// How the referee sees the chain.
Machine machine_of(const ChainCosts& chain) {
    const auto entry = [](const auto& values) {
        return [&values](Index i) { return values[static_cast<std::size_t>(i)]; };
    };
    Machine machine;
    machine.sizes.state = machine.sizes.adjoint = entry(chain.state_bytes);
    machine.sizes.tape = entry(chain.tape_bytes);
    machine.sizes.overhead = [&chain](Verb verb, Index link) {
        const auto& overhead = verb == Verb::reverse ? chain.backward_overhead : chain.forward_overhead;
        return overhead.empty() ? 0 : overhead[static_cast<std::size_t>(link)];
    };
    machine.sizes.tape_holds_state = true;
    machine.costs = {entry(chain.forward_time), entry(chain.forward_time), entry(chain.backward_time), {}, {}};
    machine.needs_state = true;
    return machine;
}

class Planner {
public:
    explicit Planner(const ChainOptions& options)
        : options_(options),
          bytes_(options.budget - options.chain.state_bytes.front()) {
        plan_.steps = options.chain.links();
        plan_.cost = std::numeric_limits<double>::infinity();
    }

    std::optional<ChainPlan> make() {
        if (Tables::bytes_of_rows(plan_.steps) > options_.table_limit) too_large("the tables take more");
        {
            const Links links(options_.chain, 1, Rounding::up);
            const RowNeeds needs(links, options_.second_table);
            if (bytes_ < needs.least(Table::plain, 0, links.last())) return std::nullopt;
            bytes_ = std::min(bytes_, needs.full(Table::plain, 0, links.last()));  // more than this changes nothing
        }
        if (options_.units > 0) {
            coarse(options_.units);
        } else if (!exact()) {
            Index units = first_units;
            while (coarse(units) && plan_.loss() > options_.loss) units *= 2;
        }
        if (plan_.actions.empty() && options_.units > 0) {
            throw NoPlan("optimal_chain: " + std::to_string(options_.units) +
                         " units find no plan within this budget, though there is one; give more units or more bytes");
        }
        if (plan_.actions.empty()) too_large("tables that are fine enough for this budget take more");
        plan_.peak = referee(*optimal_chain(plan_), plan_.steps, {}, machine_of(options_.chain)).peak_total;
        return std::move(plan_);
    }

private:
    bool exact() {
        const Links links(options_.chain, common_unit(options_.chain), Rounding::up);
        const Index memory = links.memory(bytes_);
        const Index cell = memory <= few_units ? 1 : (memory + cells - 1) / cells;
        const Tables tables(links, memory, options_.second_table, cell, options_.table_limit);
        if (!take(links, tables)) return false;
        plan_.lower_bound = plan_.cost;
        return true;
    }

    /// Sizes rounded down give a bound, rounded up a plan. False where the tables would be too large, or finer ones
    /// cannot help.
    bool coarse(Index units) {
        const std::int64_t unit = std::max<std::int64_t>(bytes_ / units + (bytes_ % units != 0 ? 1 : 0), 1);
        plan_.exact = false;
        if (unit > 1) {
            const Links links(options_.chain, unit, Rounding::down);
            const Tables tables(links, links.memory(bytes_), options_.second_table, 1, options_.table_limit);
            if (!tables.complete()) return false;
            const double bound = tables.time(Table::plain, 0, links.last(), tables.memory());
            plan_.lower_bound = std::max(plan_.lower_bound, bound);
        }
        const Links links(options_.chain, unit, Rounding::up);
        const Tables tables(links, links.memory(bytes_), options_.second_table, 1, options_.table_limit);
        if (!take(links, tables)) return false;
        if (unit > 1) return true;
        plan_.exact = true;
        plan_.lower_bound = plan_.cost;
        return false;
    }

    /// The plan of these tables if it is better than the one at hand; false if they were not filled.
    bool take(const Links& links, const Tables& tables) {
        plan_.table_bytes = std::max(plan_.table_bytes, tables.bytes());
        if (!tables.complete()) return false;
        const double cost = tables.time(Table::plain, 0, links.last(), tables.memory());
        if (cost < plan_.cost) {
            plan_.cost = cost;
            plan_.unit = links.unit();
            plan_.actions = Emission(links, tables).take();
        }
        return true;
    }

    [[noreturn]] void too_large(const char* what) const {
        throw NoPlan("optimal_chain: " + std::to_string(plan_.steps) + " links: " + what + " than table_limit, " +
                     std::to_string(options_.table_limit) + " bytes; raise it, or cut the chain into fewer links");
    }

    const ChainOptions& options_;
    std::int64_t bytes_;  // the memory beside x_0
    ChainPlan plan_;
};

std::string at(const char* name, std::size_t i) {
    return std::string(name) + "[" + std::to_string(i) + "]";
}

/// What is wrong with a list of times or sizes of one link each.
template <class T>
std::string list_problem(const char* name, const std::vector<T>& values, std::size_t size) {
    if (values.size() != size) {
        return std::string(name) + " must have " + std::to_string(size) + " entries, has " +
               std::to_string(values.size()) + "; give one for every link (state_bytes: one more)";
    }
    for (std::size_t i = 0; i < size; ++i) {
        if (!(values[i] >= T{}) || values[i] > std::numeric_limits<T>::max()) {
            return at(name, i) + " must be a finite number of 0 or more, came " + std::to_string(values[i]);
        }
    }
    return {};
}

}  // namespace

std::string ChainCosts::problem() const {
    const std::size_t n = forward_time.size();
    const std::string wrong = [&]() -> std::string {
        for (std::string each :
             {list_problem("forward_time", forward_time, n), list_problem("backward_time", backward_time, n),
              list_problem("state_bytes", state_bytes, n + 1), list_problem("tape_bytes", tape_bytes, n),
              list_problem("forward_overhead", forward_overhead, forward_overhead.empty() ? 0 : n),
              list_problem("backward_overhead", backward_overhead, backward_overhead.empty() ? 0 : n)}) {
            if (!each.empty()) return each;
        }
        for (std::size_t i = 0; i < n; ++i) {
            if (tape_bytes[i] < state_bytes[i + 1]) {
                return at("tape_bytes", i) + " must count " + at("state_bytes", i + 1) + " = " +
                       std::to_string(state_bytes[i + 1]) + ", which the tape holds, came " +
                       std::to_string(tape_bytes[i]);
            }
        }
        double time = 0.0;
        for (std::size_t i = 0; i < n; ++i) time += forward_time[i] * static_cast<double>(n) + backward_time[i];
        if (!std::isfinite(time)) return "the times must have a finite sum; give them in a larger unit";
        constexpr std::int64_t most = std::int64_t{1} << 60;  // any sum that is made of these stays below 2^63
        std::int64_t sum = 0;
        for (const auto* sizes : {&state_bytes, &tape_bytes, &forward_overhead, &backward_overhead}) {
            for (const std::int64_t bytes : *sizes) {
                if (bytes > most - sum)
                    return "all sizes together must stay within 2^60 bytes; give them in a larger unit";
                sum += bytes;
            }
        }
        return {};
    }();
    return wrong.empty() ? wrong : "optimal_chain: " + wrong;
}

std::string ChainOptions::problem() const {
    if (std::string wrong = chain.problem(); !wrong.empty()) return wrong;
    if (budget < 0) return "optimal_chain: budget must be 0 bytes or more, came " + std::to_string(budget);
    if (units < 0) {
        return "optimal_chain: units must be 0 (as exact as the tables may be) or more, came " + std::to_string(units);
    }
    if (!(loss >= 0.0)) return "optimal_chain: loss must be a share of 0 or more, came " + std::to_string(loss);
    return {};
}

std::int64_t least_chain_budget(const ChainCosts& chain, bool second_table) {
    if (const std::string problem = chain.problem(); !problem.empty()) throw InvalidArgument(problem);
    const Links links(chain, 1, Rounding::up);
    return chain.state_bytes.front() + RowNeeds(links, second_table).least(Table::plain, 0, links.last());
}

std::int64_t full_chain_budget(const ChainCosts& chain) {
    if (const std::string problem = chain.problem(); !problem.empty()) throw InvalidArgument(problem);
    const Links links(chain, 1, Rounding::up);
    return chain.state_bytes.front() + RowNeeds(links, false).full(Table::plain, 0, links.last());
}

std::optional<ChainPlan> plan_optimal_chain(const ChainOptions& options) {
    if (const std::string problem = options.problem(); !problem.empty()) throw InvalidArgument(problem);
    return Planner(options).make();
}

std::unique_ptr<Schedule> optimal_chain(ChainPlan plan) {
    return std::make_unique<Listed>(std::move(plan.actions));
}

std::unique_ptr<Schedule> optimal_chain(const ChainOptions& options) {
    std::optional<ChainPlan> plan = plan_optimal_chain(options);
    if (!plan) {
        throw NoPlan("optimal_chain: this chain needs a budget of " +
                     std::to_string(least_chain_budget(options.chain, options.second_table)) + " bytes or more, " +
                     std::to_string(options.budget) + " were offered; raise it, or make links shorter");
    }
    return optimal_chain(std::move(*plan));
}

}  // namespace backsweep
