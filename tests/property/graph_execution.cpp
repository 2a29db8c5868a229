// Plans for networks' own graphs, executed: six models, five budgets from the least that serves to that of keeping all.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE property_graph_execution
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/network_plan.hpp"
#include "backsweep/schedule/optimal_graph.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "support/graph_sweeps.hpp"

#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr Index states = 5000;  // of a search: the large graphs get the better of a hasty one's plan and a chain's

/// Passes every call on and adds up the work of what really ran, within blocks too.
template <class Real>
class Weighed final : public Layer<Real> {
public:
    Weighed(const Layer<Real>& inner, double& sum) : inner_(inner), sum_(sum) {
        for (const Layer<Real>* part : inner.opened().layers) parts_.push_back(std::make_unique<Weighed>(*part, sum));
    }

    const std::string& name() const noexcept override { return inner_.name(); }
    Footprint footprint(Index steps, Index batch) const override { return inner_.footprint(steps, batch); }
    Work work(Index steps, Index batch) const override { return inner_.work(steps, batch); }
    std::vector<ParameterShape> parameters() const override { return inner_.parameters(); }
    std::string tied() const override { return inner_.tied(); }
    std::vector<MemoryShape> memories() const override { return inner_.memories(); }
    Opened<Real> opened() const override {
        Opened<Real> o{{}, inner_.opened().join};
        for (const auto& part : parts_) o.layers.push_back(part.get());
        return o;
    }
    void advance(const Forward<Real>& call) const override {
        sum_ += work(call.at.steps, call.at.batch).forward;
        inner_.advance(call);
    }
    void record(const Forward<Real>& call) const override {
        sum_ += work(call.at.steps, call.at.batch).forward;
        inner_.record(call);
    }
    void reverse(const Backward<Real>& call) const override {
        sum_ += work(call.at.steps, call.at.batch).reverse;
        inner_.reverse(call);
    }

private:
    const Layer<Real>& inner_;
    double& sum_;
    std::vector<std::unique_ptr<Weighed>> parts_;
};

template <class Real>
Network<Real> weighed(const Network<Real>& network, double& sum) {
    typename Network<Real>::Layers layers;
    for (Index l = 0; l < network.depth(); ++l) layers.push_back(std::make_unique<Weighed<Real>>(network.layer(l), sum));
    return {network.spec(), std::move(layers)};
}

/// What copies and sums take of the plan's cost.
template <class Real>
double moved(const NetworkGraph<Real>& graph, std::span<const GraphStep> steps) {
    double sum = 0.0;
    for (const auto& [verb, n] : steps) {
        if (verb == GraphStep::Verb::drop) continue;
        const NetworkNode& node = graph.nodes[static_cast<std::size_t>(n)];
        const double numbers = static_cast<double>(node.features * graph.steps * graph.batch);
        const bool layer = node.what == NetworkNode::What::record || node.what == NetworkNode::What::reverse;
        if (!layer && node.what != NetworkNode::What::sum) sum += numbers;
        sum += numbers * static_cast<double>(node.added.size());
    }
    return sum;
}

/// Some legal plan: values are dropped at random and made again, reverse runs too.
std::vector<GraphStep> random_plan(const Graph& graph, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<GraphStep> steps;
    std::set<Index> resident;
    int drops = 60;
    const auto make = [&](const auto& self, Index n) -> void {
        std::vector<Index> preds = graph.nodes[static_cast<std::size_t>(n)].preds;
        std::shuffle(preds.begin(), preds.end(), random);
        const auto missing = [&] {
            return std::find_if(preds.begin(), preds.end(), [&](Index pred) { return !resident.count(pred); });
        };
        for (auto pred = missing(); pred != preds.end(); pred = missing()) self(self, *pred);
        steps.push_back({GraphStep::Verb::compute, n});
        resident.insert(n);
        for (const Index v : std::vector<Index>(resident.begin(), resident.end()))
            if (v != n && drops > 0 && random() % 12 == 0) {
                --drops;
                resident.erase(v);
                steps.push_back({GraphStep::Verb::drop, v});
            }
    };
    const Index goal = topological_order(graph).back();
    make(make, goal);
    for (const Index v : resident)
        if (v != goal) steps.push_back({GraphStep::Verb::drop, v});
    return steps;
}

template <class F>
std::optional<GraphPlan> unless_none(const F& plan) {
    try {
        return plan();
    } catch (const NoPlan&) {
        return std::nullopt;
    }
}

/// The best plan that is found; none: the budget serves no plan, or none was found.
template <class Real>
std::optional<GraphPlan> plan_within(const NetworkGraph<Real>& graph, std::int64_t budget) {
    GraphOptions options;
    options.graph = graph.graph;
    options.budget = budget;
    options.states = states;
    const auto whole = unless_none([&] { return optimal_graph(options); });
    const auto layers = unless_none([&] { return plan_layers(graph.graph, graph.nodes, budget); });
    return layers && (!whole || layers->cost < whole->cost) ? layers : whole;
}

/// The least budget, to 1/32 of the way up, for which plan_within() answers.
template <class Real>
std::int64_t least_served(const NetworkGraph<Real>& graph, std::int64_t most) {
    std::int64_t low = largest_node_bytes(graph.graph), high = most;
    if (plan_within(graph, low)) return low;
    for (int halving = 0; halving < 5; ++halving) {
        const std::int64_t middle = std::midpoint(low, high);
        (plan_within(graph, middle) ? high : low) = middle;
    }
    return high;
}

template <class Real>
void check_model(const GraphModel& model, Index steps, Index batch) {
    BOOST_TEST_CONTEXT(model.name << ", " << steps << " steps of " << batch << " sequences, " << sizeof(Real) << " bytes") {
        double work = 0.0;
        const Network<Real> plain = build<Real>(model.spec), network = weighed(plain, work);
        const GraphCase<Real> of(network, steps, batch);
        const GraphSweep<Real> wanted = store_all_sweep(GraphCase<Real>(plain, steps, batch));
        const NetworkGraph<Real> graph = network_graph(network, steps, batch, network.inputs() > 0);
        const std::vector<GraphStep> once = once_in_order(graph.graph);
        const std::int64_t most = referee(graph.graph, once).peak_bytes, least = least_served(graph, most);
        BOOST_TEST(least < most);
        double cost = 0.0;
        for (int k = 4; k >= 0; --k) {
            const std::int64_t budget = least + (most - least) * k / 4;
            const std::optional<GraphPlan> plan = plan_within(graph, budget);
            BOOST_TEST_REQUIRE(plan.has_value());
            const GraphPlay play = referee(graph.graph, plan->steps, budget);
            Ledger ledger;
            work = 0.0;
            const GraphSweep<Real> got = graph_sweep(of, graph, plan->steps, ledger);
            BOOST_TEST_CONTEXT("budget " << budget << " of " << most) {
                BOOST_TEST(same_bits(got, wanted));
                BOOST_TEST(plan->peak_bytes <= budget);
                BOOST_TEST(ledger.peak()[Kind::tape] == plan->peak_bytes);
                BOOST_TEST(ledger.live()[Kind::tape] == 0);
                BOOST_TEST(play.peak_bytes == plan->peak_bytes);
                BOOST_TEST(work + moved(graph, plan->steps) == play.cost);
                BOOST_TEST(play.cost >= cost);
                if (k == 4) BOOST_TEST(play.cost == referee(graph.graph, once).cost);
                if (k == 0) BOOST_TEST(play.recomputed > 0);
            }
            cost = plan->proven ? play.cost : cost;
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(six_graphs_within_five_budgets) {
    for (const GraphModel& model : graph_models()) {
        check_model<double>(model, 7, 3);
        check_model<float>(model, 4, 1);
    }
}

BOOST_AUTO_TEST_CASE(one_step_of_one_sequence) {
    for (const GraphModel& model : graph_models()) {
        const Network<float> network = build<float>(model.spec);
        const GraphCase<float> of(network, 1, 1);
        const NetworkGraph<float> graph = network_graph(network, 1, 1, network.inputs() > 0);
        Ledger ledger;
        BOOST_TEST_CONTEXT(model.name)
        BOOST_TEST(same_bits(graph_sweep(of, graph, once_in_order(graph.graph), ledger), store_all_sweep(of)));
    }
}

// Layers are reversed again, too: their gradients count once.
BOOST_AUTO_TEST_CASE(any_legal_plan_gives_the_same_bits) {
    for (const GraphModel& model : graph_models()) {
        const Network<double> network = build<double>(model.spec);
        const GraphCase<double> of(network, 5, 2);
        const GraphSweep<double> wanted = store_all_sweep(of);
        const NetworkGraph<double> graph = network_graph(network, 5, 2, network.inputs() > 0);
        Index reversed = 0, once = 0;
        for (const NetworkNode& node : graph.nodes) once += node.what == NetworkNode::What::reverse;
        for (unsigned seed = 0; seed < 40; ++seed) {
            const std::vector<GraphStep> steps = random_plan(graph.graph, seed);
            const GraphPlay play = referee(graph.graph, steps);
            Ledger ledger;
            const GraphSweep<double> got = graph_sweep(of, graph, steps, ledger);
            BOOST_TEST_CONTEXT(model.name << ", plan " << seed) {
                BOOST_TEST(same_bits(got, wanted));
                BOOST_TEST(ledger.peak()[Kind::tape] == play.peak_bytes);
            }
            for (const auto& [verb, n] : steps)
                reversed += verb == GraphStep::Verb::compute &&
                            graph.nodes[static_cast<std::size_t>(n)].what == NetworkNode::What::reverse;
        }
        BOOST_TEST(reversed > 40 * once);
    }
}

// Schedules over the layers, blocks closed, become plans for the graph, which cost what the schedule says and no more.
BOOST_AUTO_TEST_CASE(schedules_over_the_layers_are_plans) {
    for (const GraphModel& model : graph_models()) {
        const Network<double> network = build<double>(model.spec);
        const GraphCase<double> of(network, 5, 2);
        const GraphSweep<double> wanted = store_all_sweep(of);
        const NetworkGraph<double> graph = network_graph(network, 5, 2, network.inputs() > 0);
        const std::vector<GraphStep> once = once_in_order(graph.graph);
        for (Index slots = 1; slots <= network.depth(); ++slots) {
            const auto steps = layer_steps(graph.graph, graph.nodes, *revolve(network.depth(), slots));
            const GraphPlay play = referee(graph.graph, steps);
            BOOST_TEST(play.cost >= referee(graph.graph, once).cost);
            Ledger ledger;
            BOOST_TEST_CONTEXT(model.name << ", " << slots << " slots") {
                BOOST_TEST(same_bits(graph_sweep(of, graph, steps, ledger), wanted));
                BOOST_TEST(ledger.peak()[Kind::tape] == play.peak_bytes);
            }
        }
        const std::int64_t most = referee(graph.graph, once).peak_bytes;
        for (const bool equal_spacing : {false, true}) {
            double cost = 0.0;
            for (std::int64_t budget = 2 * most; budget > most / 8; budget = budget * 4 / 5) {
                const auto plan = unless_none([&] { return plan_layers(graph.graph, graph.nodes, budget, equal_spacing); });
                if (!plan) continue;
                const GraphPlay play = referee(graph.graph, plan->steps, budget);
                BOOST_TEST(play.cost == plan->cost);
                BOOST_TEST(play.peak_bytes == plan->peak_bytes);
                BOOST_TEST((play.recomputed == 0) == plan->proven);
                BOOST_TEST(plan->lower_bound <= plan->cost);
                if (equal_spacing)
                    BOOST_TEST(plan_layers(graph.graph, graph.nodes, budget).cost <= plan->cost);
                cost = std::max(cost, plan->cost);
            }
            BOOST_TEST(cost > referee(graph.graph, once).cost);
            BOOST_CHECK_THROW(plan_layers(graph.graph, graph.nodes, 8, equal_spacing), NoPlan);
        }
        BOOST_CHECK_THROW(layer_steps(graph.graph, graph.nodes, *revolve(network.depth() + 1, 2)), InvalidArgument);
        BOOST_CHECK_THROW(layer_steps(graph.graph, graph.nodes, *revolve(network.depth() - 1, 2)), InvalidArgument);
    }
}

// What the tests above would not see is no test: every sum that a node makes counts, and so does its place.
BOOST_AUTO_TEST_CASE(a_forgotten_skip_is_seen) {
    for (const GraphModel& model : graph_models()) {
        const Network<double> network = build<double>(model.spec);
        const GraphCase<double> of(network, 5, 2);
        const GraphSweep<double> wanted = store_all_sweep(of);
        const NetworkGraph<double> graph = network_graph(network, 5, 2, network.inputs() > 0);
        const std::vector<GraphStep> steps = once_in_order(graph.graph);
        Index mutants = 0;
        for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
            if (graph.nodes[n].added.empty()) continue;
            NetworkGraph<double> mutant = graph;
            mutant.nodes[n].added.pop_back();
            Ledger ledger;
            BOOST_TEST_CONTEXT(model.name << ", without the sum in " << name_of(graph.graph, static_cast<Index>(n)))
            BOOST_TEST(!same_bits(graph_sweep(of, mutant, steps, ledger), wanted));
            ++mutants;
        }
        BOOST_TEST((mutants > 0) == (model.name != "lstm"));
    }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_run_is_refused) {
    const ModelSpec spec = graph_models()[1].spec;
    const Network<double> network = build<double>(spec);
    const GraphCase<double> of(network, 5, 2);
    const NetworkGraph<double> graph = network_graph(network, 5, 2, true);
    std::vector<GraphStep> steps = once_in_order(graph.graph);
    GraphExecution<double> run(graph);
    BOOST_CHECK_THROW(run.run(steps), InvalidArgument);  // no window
    std::vector<double> losses, dx, gradients(of.parameters.size());
    Window<double> window = of.window(losses, dx);
    window.steps = 4;
    BOOST_CHECK_THROW(run.show(window), InvalidArgument);
    window = of.window(losses, dx);
    window.input_gradient = nullptr;
    BOOST_CHECK_THROW(run.show(window), InvalidArgument);
    run.show(of.window(losses, dx));
    BOOST_CHECK_THROW(run.run(steps), InvalidArgument);  // no parameters
    run.use(of.parameters.data());
    run.add_to(gradients.data());
    const std::int64_t peak = referee(graph.graph, steps).peak_bytes;
    BOOST_CHECK_NO_THROW(run.run(steps, peak));
    const std::vector<double> once = gradients;
    BOOST_CHECK_THROW(run.run(steps, peak - 1), ScheduleError);
    std::swap(steps[0], steps[1]);
    BOOST_CHECK_THROW(run.run(steps), ScheduleError);
    BOOST_TEST(same_bits(gradients, once));  // refused before anything ran
}

BOOST_AUTO_TEST_CASE(a_loss_that_is_not_finite_stops_the_run) {
    const Network<double> network = build<double>(graph_models()[1].spec);
    GraphCase<double> of(network, 5, 2);
    of.marks.assign(of.marks.size(), Mark::step);
    of.values[3] = std::numeric_limits<double>::infinity();
    const NetworkGraph<double> graph = network_graph(network, 5, 2, true);
    std::vector<double> losses, dx, gradients(of.parameters.size());
    Ledger ledger;
    GraphExecution<double> run(graph, ledger);
    run.show(of.window(losses, dx));
    run.use(of.parameters.data());
    run.add_to(gradients.data());
    BOOST_CHECK_EXCEPTION(run.run(once_in_order(graph.graph)), NumericError, [](const NumericError& error) {
        return std::string(error.what()).find("from step 40 is inf") != std::string::npos;
    });
    BOOST_TEST(same_bits(gradients, std::vector<double>(gradients.size())));
    BOOST_TEST(ledger.live()[Kind::tape] == 0);
}
