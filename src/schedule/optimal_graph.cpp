// SPDX-License-Identifier: MIT
#include "backsweep/schedule/optimal_graph.hpp"

#include "backsweep/base/error.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <queue>

namespace backsweep {
namespace {

/// Node i of the topological order is bit i.
using Set = std::uint64_t;

constexpr Set only(int node) {
    return Set{1} << node;
}

constexpr std::uint64_t mix(Set set) {
    set *= 0x9E3779B97F4A7C15u;
    return set ^ (set >> 32);
}

/// The graph in topological order, its sets in machine words.
class Values {
public:
    explicit Values(const Graph& graph) : original(topological_order(graph)) {
        std::vector<int> place(original.size());
        for (std::size_t i = 0; i < original.size(); ++i) place[original[i]] = static_cast<int>(i);
        for (const Index node : original) {
            preds.push_back(0);
            for (const Index pred : graph.nodes[node].preds) preds.back() |= only(place[pred]);
            time.push_back(graph.nodes[node].time);
            bytes.push_back(graph.nodes[node].bytes);
            if (bytes.back() > 0) heavy |= only(static_cast<int>(bytes.size()) - 1);
        }
    }

    int count() const { return static_cast<int>(original.size()); }
    Set goal() const { return only(count() - 1); }

    std::int64_t bytes_of(Set set) const {
        std::int64_t sum = 0;
        for (; set; set &= set - 1) sum += bytes[std::countr_zero(set)];
        return sum;
    }

    /// The time of all nodes that the goal still needs when `resident` is there: the goal, and every pred of such a
    /// node that is not resident. Each must be computed at least once, so no plan goes on from here for less
    /// (admissible). Computing a node v changes it by at most time[v], because the preds of v are resident and add
    /// nothing through v; dropping never lowers it (consistent): the first time that the search reaches a set for
    /// expansion, it has reached it at its least cost.
    double still_needed(Set resident) const {
        Set needed = goal() & ~resident;
        double sum = 0.0;
        for (Set open = needed; open;) {
            const int node = 63 - std::countl_zero(open);
            sum += time[node];
            const Set more = preds[node] & ~resident & ~needed;
            needed |= more;
            open = (open & ~only(node)) | more;
        }
        return sum;
    }

    /// Sums of the same times in another order differ in their last bits: no reason to look at a set again.
    double slack() const { return 1e-13 * still_needed(0); }

    std::vector<Index> original;
    std::vector<Set> preds;
    std::vector<double> time;
    std::vector<std::int64_t> bytes;
    Set heavy = 0;  ///< the nodes of more than 0 bytes
};

/// The sets met so far, each with the best price of reaching it and the set before. Open addressing.
template <class Price>
class Met {
public:
    struct State {
        Set set;
        Price price;
        std::uint32_t from;
    };

    Met() : places_(1024, none) {}

    std::uint32_t size() const { return static_cast<std::uint32_t>(states_.size()); }
    const State& operator[](std::uint32_t number) const { return states_[number]; }

    /// Notes a way to `set`; true if it is the first or cheaper by more than `slack`.
    std::pair<std::uint32_t, bool> reach(const State& way, Price slack) {
        std::size_t place = hash(way.set);
        for (; places_[place] != none; place = (place + 1) & (places_.size() - 1)) {
            State& known = states_[places_[place]];
            if (known.set != way.set) continue;
            if (way.price >= known.price - slack) return {places_[place], false};
            known = way;
            return {places_[place], true};
        }
        places_[place] = size();
        states_.push_back(way);
        if (2 * states_.size() > places_.size()) grow();
        return {size() - 1, true};
    }

    std::int64_t memory() const {
        return static_cast<std::int64_t>(states_.capacity() * sizeof(State) + places_.size() * sizeof(std::uint32_t));
    }

private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    std::size_t hash(Set set) const { return mix(set) & (places_.size() - 1); }

    void grow() {
        places_.assign(2 * places_.size(), none);
        for (std::uint32_t number = 0; number < size(); ++number) {
            std::size_t place = hash(states_[number].set);
            while (places_[place] != none) place = (place + 1) & (places_.size() - 1);
            places_[place] = number;
        }
    }

    std::vector<State> states_;
    std::vector<std::uint32_t> places_;
};

class Clock {
public:
    explicit Clock(double seconds) : seconds_(seconds), start_(std::chrono::steady_clock::now()) {}
    bool over() const {
        return seconds_ > 0.0 &&
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() > seconds_;
    }

private:
    double seconds_;
    std::chrono::steady_clock::time_point start_;
};

/// The moves from a set of resident values. A computation that `room` has place for goes to fits(node), one that it has
/// no place for to tight(node, bytes resident then), a drop to drops(node).
///
/// A value is dropped only where some computation that has its preds finds no room, and only if that computation does
/// not need the value. Any other drop may as well be made after the computation that follows it in the plan, for that
/// one fits: so no best plan is lost, and most sets are never met.
template <class Fits, class Tight, class Drops>
void moves(const Values& values, Set resident, std::int64_t room, Fits fits, Tight tight, Drops drops) {
    const std::int64_t bytes = values.bytes_of(resident);
    Set droppable = 0;
    for (int node = 0; node < values.count(); ++node) {
        if ((resident & only(node)) || (values.preds[node] & ~resident)) continue;
        if (bytes + values.bytes[node] <= room) {
            fits(node);
        } else {
            tight(node, bytes + values.bytes[node]);
            droppable |= resident & values.heavy & ~values.preds[node];
        }
    }
    for (; droppable; droppable &= droppable - 1) {
        const int node = std::countr_zero(droppable);
        drops(node);
    }
}

struct Found {
    std::vector<Set> path;  ///< resident sets from none to the goal; empty: no plan was found
    double cost = 0.0;
    double lower_bound = 0.0;  ///< of all plans; 0 from a beam
    bool cut_short = false;
    Index expanded = 0;
    std::int64_t memory = 0;
};

std::vector<Set> path_to(const Met<double>& met, std::uint32_t state) {
    std::vector<Set> path;
    for (; met[state].set; state = met[state].from) path.push_back(met[state].set);
    std::reverse(path.begin(), path.end());
    return path;
}

/// A*: best first by price + still_needed; among equals the one nearer to the goal. Ends at a plan of least cost.
Found search(const Values& values, const GraphOptions& options) {
    struct Open {
        double key;
        double price;
        std::uint32_t state;
        bool operator<(const Open& other) const { return key > other.key || (key == other.key && price < other.price); }
    };
    const double slack = values.slack();
    const Clock clock(options.seconds);
    Met<double> met;
    std::priority_queue<Open> open;
    const auto reach = [&](Set set, double price, std::uint32_t from) {
        const auto [state, better] = met.reach({set, price, from}, slack);
        if (better) open.push({price + values.still_needed(set), price, state});
    };
    Found found;
    std::size_t longest_queue = 0;
    for (reach(0, 0.0, 0); !open.empty();) {
        const auto [key, price, number] = open.top();
        const Set resident = met[number].set;
        if (price > met[number].price) {
            open.pop();
            continue;
        }
        found.lower_bound = key;
        if (resident & values.goal()) {
            found.path = path_to(met, number);
            break;
        }
        if (met.size() >= options.states || (found.expanded % 1024 == 1023 && clock.over())) {
            found.cut_short = true;
            break;
        }
        open.pop();
        ++found.expanded;
        moves(
            values, resident, options.budget,
            [&, number = number, price = price](int node) {
                reach(resident | only(node), price + values.time[node], number);
            },
            [](int, std::int64_t) {},
            [&, number = number, price = price](int node) { reach(resident & ~only(node), price, number); });
        longest_queue = std::max(longest_queue, open.size());
    }
    found.memory = met.memory() + static_cast<std::int64_t>(longest_queue * sizeof(Open));
    return found;
}

/// The plan of a beam: after every computation only the `width` sets of least price + still_needed go on, equals by
/// their hash. Where a computation does not fit, one value that it does not need is dropped for it, every one in turn,
/// and if that is not enough those that add least to still_needed. Plans that cost `below` or more are not looked for.
Found beam(const Values& values, const GraphOptions& options, std::size_t width, double below) {
    struct Open {
        double key;
        std::uint64_t lot;
        std::uint32_t state;
        bool operator<(const Open& other) const { return key < other.key || (key == other.key && lot < other.lot); }
    };
    const double slack = values.slack();
    const Clock clock(options.seconds);
    Met<double> met;
    std::vector<Open> layer;
    std::vector<Open> next;
    const auto reach = [&](Set set, double price, std::uint32_t from) {
        const double key = price + values.still_needed(set);
        if (key >= below - slack) return;
        if (const auto [state, better] = met.reach({set, price, from}, slack); better) {
            next.push_back({key, mix(set), state});
        }
    };
    Found found;
    for (reach(0, 0.0, 0); !next.empty();) {
        if (next.size() > width) {
            std::nth_element(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(width), next.end());
            next.resize(width);
        }
        layer.swap(next);
        next.clear();
        for (const auto& [key, lot, number] : layer) {
            if (met.size() >= options.states || (found.expanded % 1024 == 1023 && clock.over())) {
                found.cut_short = true;
                break;
            }
            const auto [resident, price, from] = met[number];
            if (resident & values.goal()) {
                if (price >= below - slack) continue;
                below = price;
                found.path = path_to(met, number);
                continue;
            }
            ++found.expanded;
            const auto compute = [&, resident = resident, price = price, number = number](int node, Set dropped) {
                reach((resident & ~dropped) | only(node), price + values.time[node], number);
            };
            const auto make_room = [&, resident = resident](int node, std::int64_t bytes) {
                const Set spare = resident & values.heavy & ~values.preds[node];
                for (Set first = spare; first; first &= first - 1) {
                    Set dropped = first & (~first + 1);
                    while (bytes - values.bytes_of(dropped) > options.budget) {
                        Set cheapest = 0;
                        double least = std::numeric_limits<double>::infinity();
                        for (Set rest = spare & ~dropped; rest; rest &= rest - 1) {
                            const Set one = rest & (~rest + 1);
                            const double needed = values.still_needed(resident & ~dropped & ~one);
                            if (needed < least) {
                                least = needed;
                                cheapest = one;
                            }
                        }
                        dropped |= cheapest;
                    }
                    compute(node, dropped);
                }
            };
            moves(
                values, resident, options.budget, [&](int node) { compute(node, 0); }, make_room, [](int) {});
        }
        if (found.cut_short) break;
    }
    found.cost = below;
    found.memory = met.memory();
    return found;
}

/// The same search for the path whose largest set is the smallest: price is the most bytes resident so far, at least
/// `floor`.
LeastBudget least_budget(const Values& values, std::int64_t floor, Index states) {
    struct Open {
        std::int64_t price;
        double needed;
        std::uint32_t state;
        bool operator<(const Open& other) const {
            return price > other.price || (price == other.price && needed > other.needed);
        }
    };
    Met<std::int64_t> met;
    std::priority_queue<Open> open;
    const auto reach = [&](Set set, std::int64_t price, std::uint32_t from) {
        const auto [state, better] = met.reach({set, price, from}, 0);
        if (better) open.push({price, values.still_needed(set), state});
    };
    for (reach(0, floor, 0);;) {
        const auto [price, needed, number] = open.top();
        const Set resident = met[number].set;
        if (resident & values.goal()) return {price, true};
        if (met.size() >= states) return {price, false};
        open.pop();
        if (price > met[number].price) continue;
        moves(
            values, resident, price,
            [&, number = number, price = price](int node) { reach(resident | only(node), price, number); },
            [&, number = number](int node, std::int64_t bytes) { reach(resident | only(node), bytes, number); },
            [&, number = number, price = price](int node) { reach(resident & ~only(node), price, number); });
    }
}

std::vector<GraphStep> steps_of(const Values& values, const std::vector<Set>& path) {
    std::vector<GraphStep> steps;
    Set before = 0;
    const auto drop = [&](Set set) {
        for (; set; set &= set - 1) {
            steps.push_back({GraphStep::Verb::drop, values.original[std::countr_zero(set)]});
        }
    };
    for (const Set set : path) {
        drop(before & ~set);
        if (const Set made = set & ~before) {
            steps.push_back({GraphStep::Verb::compute, values.original[std::countr_zero(made)]});
        }
        before = set;
    }
    drop(before & ~values.goal());
    return steps;
}

std::string size_problem(const Graph& graph) {
    if (graph.nodes.size() <= searchable_nodes) return {};
    return "the search takes graphs of up to " + std::to_string(searchable_nodes) + " nodes, this one has " +
           std::to_string(graph.nodes.size()) + "; use the component graph, or cut the graph at a node all paths pass";
}

std::string states_problem(Index states) {
    constexpr Index most = Index{1} << 31;
    if (states >= 1 && states <= most) return {};
    return "states must lie in 1 ... 2^31, came " + std::to_string(states) +
           "; give the sets that may be kept in memory";
}

[[noreturn]] void too_little(const Graph& graph, const Values& values, const GraphOptions& options) {
    const LeastBudget least = least_budget(values, std::max(options.budget, largest_node_bytes(graph)), options.states);
    throw BudgetTooSmall("optimal_graph: the graph needs " + std::string(least.exact ? "" : "at least ") +
                         std::to_string(least.bytes) + " bytes, offered " + std::to_string(options.budget));
}

}  // namespace

std::string GraphOptions::problem() const {
    if (std::string wrong = graph.problem(); !wrong.empty()) return wrong;
    if (std::string wrong = size_problem(graph); !wrong.empty()) return wrong;
    if (std::string wrong = states_problem(states); !wrong.empty()) return wrong;
    if (budget < 0) return "budget must be 0 or more bytes, came " + std::to_string(budget);
    if (!(seconds >= 0.0)) return "seconds must be 0 (no limit) or more, came " + std::to_string(seconds);
    return {};
}

GraphPlan optimal_graph(const GraphOptions& options) {
    if (const std::string wrong = options.problem(); !wrong.empty()) throw InvalidArgument("optimal_graph: " + wrong);
    const Values values(options.graph);
    if (options.budget < largest_node_bytes(options.graph)) too_little(options.graph, values, options);

    constexpr double no_plan = std::numeric_limits<double>::infinity();
    Found best = search(values, options);
    GraphPlan plan;
    plan.method = "search";
    plan.lower_bound = best.lower_bound;
    plan.expanded = best.expanded;
    plan.table_bytes = best.memory;
    plan.proven = !best.cut_short;
    if (best.path.empty() && plan.proven) too_little(options.graph, values, options);
    if (!plan.proven) {
        constexpr std::size_t widest_beam = 16384;
        // From narrow to wide, each looking only for something cheaper, until one is cut short as well.
        best.cost = no_plan;
        for (std::size_t width = 1; width <= widest_beam; width *= 2) {
            Found next = beam(values, options, width, best.cost);
            plan.expanded += next.expanded;
            plan.table_bytes = std::max(plan.table_bytes, next.memory);
            const bool last = next.cut_short;
            if (!next.path.empty()) best = std::move(next);
            if (last) break;
        }
        if (best.path.empty()) {
            throw NoPlan("optimal_graph: no plan within " + std::to_string(options.budget) +
                         " bytes was found, and none " + "excluded, with " + std::to_string(options.states) +
                         " sets and the seconds given; give more of " + "either, or more bytes");
        }
    }
    plan.steps = steps_of(values, best.path);
    const GraphPlay play = referee(options.graph, plan.steps, options.budget);
    plan.cost = play.cost;
    plan.peak_bytes = play.peak_bytes;
    plan.lower_bound = plan.proven ? plan.cost : std::min(plan.lower_bound, plan.cost);
    return plan;
}

LeastBudget least_graph_budget(const Graph& graph, Index states) {
    for (const std::string& wrong : {graph.problem(), size_problem(graph), states_problem(states)}) {
        if (!wrong.empty()) throw InvalidArgument("least_graph_budget: " + wrong);
    }
    return least_budget(Values(graph), largest_node_bytes(graph), states);
}

}  // namespace backsweep
