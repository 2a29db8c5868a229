// SPDX-License-Identifier: MIT
#include "backsweep/graph/staged_milp.hpp"

#include "backsweep/base/error.hpp"

#include <Cbc_C_Interface.h>
#include <Clp_C_Interface.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

namespace backsweep {
namespace {

using Table = std::vector<std::vector<char>>;

/// What a staged plan does: compute[t][i], R of the paper: node i in stage t; keep[t][i], S: i is there when t begins.
struct Stages {
    Table compute;
    Table keep;
};

/// The graph in topological order; nodes are int here, as CBC counts its columns.
struct Ordered {
    explicit Ordered(const Graph& graph) : original(topological_order(graph)), preds(original.size()), users(preds) {
        std::vector<int> place(original.size());
        for (std::size_t i = 0; i < original.size(); ++i) place[original[i]] = static_cast<int>(i);
        for (int node = 0; node < count(); ++node) {
            for (const Index pred : graph.nodes[original[node]].preds) {
                preds[node].push_back(place[pred]);
                users[place[pred]].push_back(node);
            }
        }
    }
    int count() const { return static_cast<int>(original.size()); }

    std::vector<Index> original;
    std::vector<std::vector<int>> preds;
    std::vector<std::vector<int>> users;
};

/// The steps of a staged plan. A value is dropped as soon as nothing in its stage needs it and the next does not keep
/// it.
std::vector<GraphStep> steps_of(const Ordered& graph, const Stages& stages) {
    const int count = graph.count();
    std::vector<GraphStep> steps;
    std::vector<char> resident(graph.original.size());
    for (int stage = 0; stage < count; ++stage) {
        const auto kept_on = [&](int node) {
            return stage + 1 < count ? stages.keep[stage + 1][node] != 0 : node == count - 1;
        };
        const auto sweep = [&](int done) {
            for (int node = 0; node <= stage; ++node) {
                if (!resident[node] || kept_on(node)) continue;
                const auto& users = graph.users[node];
                if (std::any_of(users.begin(), users.end(), [&](int user) {
                        return user > done && user <= stage && stages.compute[stage][user];
                    })) {
                    continue;
                }
                resident[node] = 0;
                steps.push_back({GraphStep::Verb::drop, graph.original[node]});
            }
        };
        sweep(-1);
        for (int node = 0; node <= stage; ++node) {
            if (!stages.compute[stage][node] || resident[node]) continue;
            resident[node] = 1;
            steps.push_back({GraphStep::Verb::compute, graph.original[node]});
            sweep(node);
        }
    }
    return steps;
}

/// The least that must be computed if exactly `keep` is kept from stage to stage.
Stages completed(const Ordered& graph, Table keep) {
    const int count = graph.count();
    Stages stages{Table(keep.size(), std::vector<char>(keep.size())), std::move(keep)};
    for (int stage = 0; stage < count; ++stage) {
        auto& compute = stages.compute[stage];
        const auto& there = stages.keep[stage];
        for (int node = stage; node >= 0; --node) {
            const bool wanted = node == stage || compute[node] || (stage + 1 < count && stages.keep[stage + 1][node]);
            compute[node] = wanted && !there[node];
            if (!compute[node]) continue;
            for (const int pred : graph.preds[node]) compute[pred] = 1;
        }
    }
    return stages;
}

struct Solution {
    std::vector<double> columns;  ///< empty: none was found
    double objective = 0.0;
    double bound = 0.0;
    bool optimal = false;
    bool infeasible = false;
    int nodes = 0;
};

/// The programme [Jain20, (1)-(9)], for stage t and nodes i, k in topological order:
///   min sum time_i R_ti,  R_tt = 1,
///   S_ti <= S_{t-1,i} + R_{t-1,i},   R_tk <= R_ti + S_ti where k needs i,
///   U_t0 = sum_i bytes_i S_ti + bytes_0 R_t0,
///   U_{t,k+1} = U_tk - sum_{i in preds(k) and k} bytes_i F_tik + bytes_{k+1} R_{t,k+1},   0 <= U <= budget.
/// F_tik = 1 where i is freed once k is done: i.e. where h = (1 - R_tk) + S_{t+1,i} + sum_{users j > k of i} R_tj is 0,
/// which 1 - F <= h <= hmax (1 - F) says. The set of what k may free includes k itself.
class Programme {
public:
    Programme(const Graph& graph, const Ordered& ordered, std::int64_t budget) : graph_(ordered) {
        const int count = ordered.count();
        double sum = 0.0;
        double bytes = 1.0;
        for (const GraphNode& node : graph.nodes) {
            sum += node.time;
            bytes = std::max(bytes, static_cast<double>(node.bytes));
        }
        // CBC compares with absolute tolerances of 1e-7 to 1e-5, so costs add up to some ten thousands or a whole
        // number of moderate size, and sizes go up to a thousand. Powers of two, so that whole numbers stay whole.
        if (sum > 0.0 && (sum < 0x1p15 || sum > 0x1p30)) cost_unit_ = std::ldexp(1.0, std::ilogb(sum) - 15);
        const double byte_unit = std::max(1.0, bytes / 1024.0);
        for (const Index node : ordered.original) {
            time_.push_back(graph.nodes[node].time / cost_unit_);
            bytes_.push_back(static_cast<double>(graph.nodes[node].bytes) / byte_unit);
        }
        std::int64_t divisor = 0;
        for (const GraphNode& node : graph.nodes) divisor = std::gcd(divisor, node.bytes);
        const double room = static_cast<double>(divisor > 0 ? budget - budget % divisor : budget) / byte_unit;

        std::int64_t size = 0;
        for (int k = 0; k < count; ++k) {
            size += (count - k) * std::int64_t{4 + 4 * static_cast<int>(graph_.preds[k].size())};
        }
        if (size * 8 > std::numeric_limits<int>::max()) {
            throw InvalidArgument("staged_milp: the programme of a graph of " + std::to_string(count) +
                                  " nodes is too large for CBC; cut the graph at a node that all paths pass");
        }
        variables(room);
        constraints();
    }

    /// The linear relaxation.
    Solution relax(double seconds) const {
        const std::unique_ptr<Clp_Simplex, decltype(&Clp_deleteModel)> model(Clp_newModel(), &Clp_deleteModel);
        Clp_setLogLevel(model.get(), 0);
        const Matrix matrix(columns_);
        Clp_loadProblem(model.get(), matrix.columns(), rows(), matrix.starts.data(), matrix.rows.data(),
                        matrix.values.data(), low_.data(), high_.data(), objective_.data(), row_low_.data(),
                        row_high_.data());
        Clp_setMaximumSeconds(model.get(), seconds);
        Clp_initialSolve(model.get());
        Solution solution;
        solution.optimal = Clp_isProvenOptimal(model.get()) != 0;
        solution.infeasible = Clp_isProvenPrimalInfeasible(model.get()) != 0;
        if (solution.optimal) {
            solution.objective = solution.bound = Clp_getObjValue(model.get()) * cost_unit_;
            const double* values = Clp_getColSolution(model.get());
            solution.columns.assign(values, values + columns_.size());
        }
        return solution;
    }

    /// `start`: a plan that fits, or none.
    Solution solve(double seconds, const std::optional<Stages>& start) const {
        const std::unique_ptr<Cbc_Model, decltype(&Cbc_deleteModel)> model(Cbc_newModel(), &Cbc_deleteModel);
        Cbc_setParameter(model.get(), "log", "0");
        const Matrix matrix(columns_);
        Cbc_loadProblem(model.get(), matrix.columns(), rows(), matrix.starts.data(), matrix.rows.data(),
                        matrix.values.data(), low_.data(), high_.data(), objective_.data(), row_low_.data(),
                        row_high_.data());
        for (int column = 0; column < matrix.columns(); ++column) {
            if (integral_[column]) Cbc_setInteger(model.get(), column);
        }
        if (start) begin_with(model.get(), *start);
        // CBC 2.10 crashes where time runs out inside its preprocessing.
        Cbc_setParameter(model.get(), "preprocess", "off");
        Cbc_setParameter(model.get(), "timeMode", "elapsed");
        Cbc_setParameter(model.get(), "seconds", std::to_string(seconds).c_str());
        Cbc_solve(model.get());
        if (Cbc_isAbandoned(model.get())) {
            throw BackendError("Cbc_solve gave up on the staged programme: numerical difficulties; use another method");
        }
        Solution solution;
        solution.optimal = Cbc_isProvenOptimal(model.get()) != 0;
        // CBC calls a programme infeasible, too, that it had no time to begin with.
        solution.infeasible = Cbc_isProvenInfeasible(model.get()) && !Cbc_isSecondsLimitReached(model.get()) &&
                              Cbc_status(model.get()) == 0 && !start;
        solution.objective = Cbc_getObjValue(model.get()) * cost_unit_;
        solution.bound = Cbc_getBestPossibleObjValue(model.get()) * cost_unit_;
        solution.nodes = Cbc_getNodeCount(model.get());
        const double* best = Cbc_bestSolution(model.get());
        if (best && !solution.infeasible) solution.columns.assign(best, best + columns_.size());
        return solution;
    }

    /// Everything above `threshold` is kept; the least that then must be computed is.
    Stages rounded(const Solution& solution, double threshold) const {
        Table keep(graph_.original.size(), std::vector<char>(graph_.original.size()));
        for (int stage = 0; stage < graph_.count(); ++stage) {
            for (int node = 0; node < stage; ++node)
                keep[stage][node] = solution.columns[keep_[stage][node]] > threshold;
        }
        return completed(graph_, std::move(keep));
    }

private:
    struct Free {
        int node;
        int after;
        int column;
    };
    using Terms = std::vector<std::pair<int, double>>;

    /// By columns, as CBC and CLP read it.
    struct Matrix {
        explicit Matrix(const std::vector<Terms>& by_column) {
            for (const Terms& column : by_column) {
                for (const auto& [row, value] : column) {
                    rows.push_back(row);
                    values.push_back(value);
                }
                starts.push_back(static_cast<CoinBigIndex>(rows.size()));
            }
        }
        int columns() const { return static_cast<int>(starts.size()) - 1; }

        std::vector<CoinBigIndex> starts{0};
        std::vector<int> rows;
        std::vector<double> values;
    };

    int rows() const { return static_cast<int>(row_low_.size()); }

    int variable(double low, double high, double cost, bool integral) {
        columns_.emplace_back();
        low_.push_back(low);
        high_.push_back(high);
        objective_.push_back(cost);
        integral_.push_back(integral);
        return static_cast<int>(columns_.size()) - 1;
    }
    void constraint(const Terms& terms, double low, double high) {
        const int row = static_cast<int>(row_low_.size());
        for (const auto& [column, value] : terms) columns_[column].emplace_back(row, value);
        row_low_.push_back(low);
        row_high_.push_back(high);
    }

    void variables(double room) {
        const int count = graph_.count();
        compute_.resize(count);
        keep_.resize(count);
        used_.resize(count);
        free_.resize(count);
        for (int t = 0; t < count; ++t) {
            for (int i = 0; i <= t; ++i) {
                compute_[t].push_back(variable(i == t ? 1.0 : 0.0, 1.0, time_[i], true));
                if (i < t) keep_[t].push_back(variable(0.0, 1.0, 0.0, true));
                used_[t].push_back(variable(0.0, room, 0.0, false));
            }
            for (int k = 0; k < t; ++k) {
                for (const int i : graph_.preds[k]) free_[t].push_back({i, k, variable(0.0, 1.0, 0.0, true)});
                free_[t].push_back({k, k, variable(0.0, 1.0, 0.0, true)});
            }
        }
    }

    void constraints() {
        constexpr double none = 1e30;
        const int count = graph_.count();
        for (int t = 0; t < count; ++t) {
            for (int i = 0; i < t; ++i) {
                Terms terms{{keep_[t][i], 1.0}, {compute_[t - 1][i], -1.0}};
                if (i < t - 1) terms.push_back({keep_[t - 1][i], -1.0});
                constraint(terms, -none, 0.0);
            }
            for (int k = 0; k <= t; ++k) {
                for (const int i : graph_.preds[k]) {
                    constraint({{compute_[t][k], 1.0}, {compute_[t][i], -1.0}, {keep_[t][i], -1.0}}, -none, 0.0);
                }
            }
            Terms begin{{used_[t][0], 1.0}, {compute_[t][0], -bytes_[0]}};
            for (int i = 0; i < t; ++i) begin.push_back({keep_[t][i], -bytes_[i]});
            constraint(begin, 0.0, 0.0);
            auto freed = free_[t].begin();
            for (int k = 0; k < t; ++k) {
                Terms terms{{used_[t][k + 1], 1.0}, {used_[t][k], -1.0}, {compute_[t][k + 1], -bytes_[k + 1]}};
                for (; freed != free_[t].end() && freed->after == k; ++freed) {
                    terms.push_back({freed->column, bytes_[freed->node]});
                }
                constraint(terms, 0.0, 0.0);
            }
            for (const auto& [i, k, column] : free_[t]) {
                Terms terms{{compute_[t][k], -1.0}, {keep_[t + 1 < count ? t + 1 : t][i], 1.0}};
                if (t + 1 == count) terms.pop_back();
                double most = 2.0;
                for (const int j : graph_.users[i]) {
                    if (j <= k || j > t) continue;
                    terms.push_back({compute_[t][j], 1.0});
                    most += 1.0;
                }
                terms.push_back({column, 1.0});
                constraint(terms, 0.0, none);
                terms.back().second = most;
                constraint(terms, -none, most - 1.0);
            }
        }
    }

    void begin_with(Cbc_Model* model, const Stages& stages) const {
        std::vector<int> columns;
        std::vector<double> values;
        const auto set = [&](int column, bool value) {
            columns.push_back(column);
            values.push_back(value ? 1.0 : 0.0);
        };
        for (int t = 0; t < graph_.count(); ++t) {
            for (int i = 0; i <= t; ++i) set(compute_[t][i], stages.compute[t][i]);
            for (int i = 0; i < t; ++i) set(keep_[t][i], stages.keep[t][i]);
            for (const auto& [i, k, column] : free_[t]) {
                bool freed = stages.compute[t][k] && !(t + 1 < graph_.count() && stages.keep[t + 1][i]);
                for (const int j : graph_.users[i]) freed = freed && !(j > k && j <= t && stages.compute[t][j]);
                set(column, freed);
            }
        }
        Cbc_setMIPStartI(model, static_cast<int>(columns.size()), columns.data(), values.data());
    }

    const Ordered& graph_;
    double cost_unit_ = 1.0;
    std::vector<double> time_;
    std::vector<double> bytes_;
    std::vector<std::vector<int>> compute_;
    std::vector<std::vector<int>> keep_;
    std::vector<std::vector<int>> used_;
    std::vector<std::vector<Free>> free_;
    std::vector<Terms> columns_;
    std::vector<double> low_;
    std::vector<double> high_;
    std::vector<double> objective_;
    std::vector<char> integral_;
    std::vector<double> row_low_;
    std::vector<double> row_high_;
};

}  // namespace

GraphPlan staged_milp(const Graph& graph, std::int64_t budget, double seconds) {
    const std::int64_t least = largest_node_bytes(graph);
    if (budget < 0)
        throw InvalidArgument("staged_milp: budget must be 0 or more bytes, came " + std::to_string(budget));
    if (!(seconds > 0.0))
        throw InvalidArgument("staged_milp: seconds must be above 0, came " + std::to_string(seconds));
    if (budget < least) {
        throw NoPlan("staged_milp: the graph needs at least " + std::to_string(least) + " bytes, offered " +
                     std::to_string(budget));
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto left = [&] {
        return std::max(0.01,
                        seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    };
    const auto none_fits = [&] {
        return NoPlan("staged_milp: no staged plan fits into " + std::to_string(budget) +
                      " bytes; give more, or search over all orders (optimal_graph)");
    };

    const Ordered ordered(graph);
    const Programme programme(graph, ordered, budget);
    GraphPlan best;
    std::optional<Stages> start;
    best.orders = GraphOrders::staged;
    best.cost = std::numeric_limits<double>::infinity();
    const auto offer = [&](const Stages& stages, const char* method) {
        std::vector<GraphStep> steps = steps_of(ordered, stages);
        const GraphPlay play = referee(graph, steps);
        if (play.peak_bytes > budget || play.cost >= best.cost) return;
        best.steps = std::move(steps);
        best.cost = play.cost;
        best.peak_bytes = play.peak_bytes;
        best.method = method;
        start = stages;
    };

    const Solution relaxed = programme.relax(left());
    if (relaxed.infeasible) throw none_fits();
    if (!relaxed.columns.empty()) {
        best.lower_bound = relaxed.bound;
        for (int i = 1; i < 20; ++i) offer(programme.rounded(relaxed, 0.05 * i), "rounding");
    }
    const Solution solved = programme.solve(left(), start);
    if (solved.infeasible) throw none_fits();
    if (!solved.columns.empty()) offer(programme.rounded(solved, 0.5), "milp");
    if (solved.optimal) best.method = "milp";
    best.lower_bound = std::max(best.lower_bound, solved.bound);
    best.expanded = solved.nodes;
    if (best.steps.empty()) {
        throw NoPlan("staged_milp: no plan within " + std::to_string(budget) +
                     " bytes was found, and none excluded, in " + std::to_string(seconds) +
                     " s; give more time or more bytes");
    }
    best.proven = solved.optimal && best.cost <= solved.objective + 1e-9 * std::abs(solved.objective);
    best.lower_bound = best.proven ? best.cost : std::min(best.lower_bound, best.cost);
    return best;
}

}  // namespace backsweep
