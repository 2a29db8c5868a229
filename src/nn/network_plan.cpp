// SPDX-License-Identifier: MIT
#include "backsweep/nn/network_plan.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/optimal_chain.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/store_all.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace backsweep {

namespace {

constexpr Index none = -1;

/// The nodes of every layer, in the order in which they run.
struct Links {
    Links(const Graph& graph, std::span<const NetworkNode> nodes)
        : forward(static_cast<std::size_t>(nodes.back().link) + 1) {
        for (const NetworkNode& node : nodes)
            if (static_cast<std::size_t>(node.link) >= forward.size()) forward.resize(static_cast<std::size_t>(node.link) + 1);
        backward.resize(forward.size());
        tape.resize(forward.size());
        for (Index n = 0; n < static_cast<Index>(nodes.size()); ++n) {
            const NetworkNode& node = nodes[static_cast<std::size_t>(n)];
            const auto l = static_cast<std::size_t>(node.link);
            if (node.what == NetworkNode::What::input)
                input = n;
            else
                (node.forward() ? forward : backward)[l].push_back(n);
            if (node.forward()) continue;
            for (const Index pred : graph.nodes[static_cast<std::size_t>(n)].preds)
                if (nodes[static_cast<std::size_t>(pred)].forward() && pred != output(node.link - 1)) tape[l].insert(pred);
        }
    }

    Index count() const { return static_cast<Index>(forward.size()); }
    /// The node of layer l's output; of number -1 the inputs.
    Index output(Index l) const { return l < 0 ? input : forward[static_cast<std::size_t>(l)].back(); }

    std::vector<std::vector<Index>> forward, backward;
    std::vector<std::set<Index>> tape;  ///< what the layer's reverse runs read of it
    Index input = none;
};

/// Actions become computations of values, each made once, as in a DepthProgram; then those that nobody reads are left
/// out, those that are still there are not made again, and lifetimes become drops.
class Translation {
public:
    Translation(const Graph& graph, const Links& links) : graph_(graph), links_(links), left_(links.count()) {}

    std::vector<GraphStep> operator()(Schedule& schedule) {
        stand(0, links_.input == none ? none : make(links_.input, {}));
        schedule.rewind();
        for (Action a = schedule.next(); a.verb != Verb::done; a = schedule.next()) play(a);
        if (left_ != 0) refuse("layers below number " + std::to_string(left_) + " are not reversed");
        // Once more: what is not made again no longer needs what it was to be made of.
        for (int pass = 0; pass < 2; ++pass) {
            leave_out();
            merge();
        }
        leave_out();
        return steps();
    }

private:
    /// A node's value, made by the call of the same number.
    struct Call {
        Index node = none;
        std::vector<Index> reads{};  // calls
        bool needed = true;
        Index last = none;           // call that reads it last
    };
    using Made = std::map<Index, Index>;  // node to call
    struct Tape {
        Index x = none;
        Made made{};
    };

    [[noreturn]] static void refuse(const std::string& why) {
        throw InvalidArgument("a schedule over the layers of a graph: " + why +
                              "; take a closed family that keeps states and tapes in RAM");
    }
    Call& call(Index c) { return calls_[static_cast<std::size_t>(c)]; }
    Index size() const { return static_cast<Index>(calls_.size()); }

    void stand(Index link, Index x) {
        here_ = link;
        at_ = x;
    }

    Index make(Index node, const Made& known) {
        Call made{node};
        for (const Index pred : graph_.nodes[static_cast<std::size_t>(node)].preds) made.reads.push_back(known.at(pred));
        calls_.push_back(std::move(made));
        return size() - 1;
    }

    Tape forward(Index link) {
        Tape tape{at_, {}};
        tape.made[links_.output(link - 1)] = at_;
        for (const Index node : links_.forward[static_cast<std::size_t>(link)]) tape.made[node] = make(node, tape.made);
        stand(link + 1, tape.made.at(links_.output(link)));
        return tape;
    }

    void reverse(Index link) {
        Made known = tape_->made;
        if (here_ == link) known[links_.output(link - 1)] = at_;  // a schedule may drop the input and bring it again
        if (link + 1 < links_.count()) known[links_.backward[static_cast<std::size_t>(link) + 1].back()] = adjoint_;
        for (const Index node : links_.backward[static_cast<std::size_t>(link)]) adjoint_ = known[node] = make(node, known);
        tape_.reset();
        here_ = nowhere;
        left_ = link;
    }

    void play(const Action& a) {
        const auto stands = [&] {
            if (here_ != a.steps.first || a.steps.first < 0 || a.steps.last > links_.count())
                refuse("nothing stands there for " + to_string(a));
        };
        const auto key = [&](Slot slot) {
            if (slot.tier != Tier::ram) refuse("it keeps something elsewhere: " + to_string(a));
            return slot.index;
        };
        const auto held = [&](auto& slots) {
            const auto found = slots.find(key(a.from));
            if (found == slots.end()) refuse("nothing is there for " + to_string(a));
            return found->second;
        };
        switch (a.verb) {
            case Verb::advance:
                stands();
                for (Index link = a.steps.first; link < a.steps.last; ++link) forward(link);
                break;
            case Verb::record:
            case Verb::tape:
                stands();
                tape_ = forward(a.steps.first);
                if (a.verb == Verb::tape) here_ = nowhere;
                break;
            case Verb::reverse:
                if (!tape_ || a.steps.first != left_ - 1) refuse("there is no tape for " + to_string(a));
                reverse(a.steps.first);
                break;
            case Verb::save:
                stands();
                states_[key(a.to)] = at_;
                break;
            case Verb::load:
            case Verb::take:
                stand(a.steps.first, held(states_));
                break;
            case Verb::restart:
                stand(a.steps.first, held(tapes_).made.at(links_.output(a.steps.first - 1)));
                break;
            case Verb::stow:
                if (!tape_) refuse("there is no tape for " + to_string(a));
                tapes_[key(a.to)] = *std::exchange(tape_, std::nullopt);
                break;
            case Verb::fetch:
                tape_ = held(tapes_);
                break;
            case Verb::move:
                refuse("it moves what it keeps: " + to_string(a));
            case Verb::drop:
                if (a.from.index < 0) tape_.reset();
                break;
            case Verb::turn:
            case Verb::done:
                break;
        }
    }

    /// Needed is the last call, and what needed ones read.
    void leave_out() {
        for (Call& c : calls_) c.needed = false, c.last = none;
        calls_.back().needed = true;
        for (Index c = size(); c-- > 0;) {
            if (!call(c).needed) continue;
            for (const Index read : call(c).reads) {
                call(read).needed = true;
                call(read).last = std::max(call(read).last, c);
            }
        }
    }

    /// Calls that make what is still alive give way to the earlier ones.
    void merge() {
        std::map<Index, Index> alive;  // node to call
        std::vector<Index> stands_for(calls_.size());
        for (Index c = 0; c < size(); ++c) {
            stands_for[static_cast<std::size_t>(c)] = c;
            Call& now = call(c);
            if (!now.needed) continue;
            for (Index& read : now.reads) read = stands_for[static_cast<std::size_t>(read)];
            const auto found = alive.find(now.node);
            if (found != alive.end() && call(found->second).last >= c) {
                stands_for[static_cast<std::size_t>(c)] = found->second;
                call(found->second).last = std::max(call(found->second).last, now.last);
            } else {
                alive[now.node] = c;
            }
        }
    }

    std::vector<GraphStep> steps() {
        std::vector<std::vector<Index>> ends(calls_.size());
        for (Index c = 0; c < size(); ++c)
            if (call(c).needed && call(c).last != none) ends[static_cast<std::size_t>(call(c).last)].push_back(call(c).node);
        std::vector<GraphStep> all;
        for (Index c = 0; c < size(); ++c) {
            if (!call(c).needed) continue;
            all.push_back({GraphStep::Verb::compute, call(c).node});
            for (const Index node : ends[static_cast<std::size_t>(c)]) all.push_back({GraphStep::Verb::drop, node});
        }
        return all;
    }

    const Graph& graph_;
    const Links& links_;
    std::vector<Call> calls_;
    std::map<std::int32_t, Index> states_;
    std::map<std::int32_t, Tape> tapes_;
    std::optional<Tape> tape_;
    static constexpr Index nowhere = -1;
    Index here_ = nowhere, at_ = none, adjoint_ = none, left_;
};

/// The layers as links: a tape has what the link's reverse runs read, and its output where the next one's may.
ChainCosts costs_of(const Graph& graph, const Links& links) {
    const auto bytes = [&](Index node) { return node == none ? 0 : graph.nodes[static_cast<std::size_t>(node)].bytes; };
    const auto time = [&](const std::vector<Index>& nodes) {
        double sum = 0.0;
        for (const Index node : nodes) sum += graph.nodes[static_cast<std::size_t>(node)].time;
        return sum;
    };
    ChainCosts costs;
    for (Index l = 0; l < links.count(); ++l) {
        const auto s = static_cast<std::size_t>(l);
        costs.forward_time.push_back(time(links.forward[s]));
        costs.backward_time.push_back(time(links.backward[s]));
        costs.state_bytes.push_back(bytes(links.output(l - 1)));
        std::set<Index> kept = links.tape[s];
        if (l + 1 < links.count()) kept.insert(links.output(l));
        std::int64_t tape = 0;
        for (const Index node : kept) tape += bytes(node);
        costs.tape_bytes.push_back(tape);
    }
    costs.state_bytes.push_back(0);
    return costs;
}

}  // namespace

std::vector<GraphStep> layer_steps(const Graph& graph, std::span<const NetworkNode> nodes, Schedule& schedule) {
    const Links links(graph, nodes);
    return Translation(graph, links)(schedule);
}

GraphPlan plan_layers(const Graph& graph, std::span<const NetworkNode> nodes, std::int64_t budget, bool equal_spacing) {
    const Links links(graph, nodes);
    GraphPlan best;
    best.cost = std::numeric_limits<double>::infinity();
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    /// Whether the plan fits.
    const auto offer = [&](Schedule& schedule, const char* method) {
        std::vector<GraphStep> steps = Translation(graph, links)(schedule);
        const GraphPlay play = referee(graph, steps);
        least = std::min(least, play.peak_bytes);
        if (play.peak_bytes > budget) return false;
        if (play.cost < best.cost) {
            best.steps = std::move(steps);
            best.cost = play.cost;
            best.peak_bytes = play.peak_bytes;
            best.proven = play.recomputed == 0;
            best.method = method;
        }
        return true;
    };
    offer(*store_all(links.count()), "spacing");
    for (Index length = 1; length <= links.count(); ++length) offer(*periodic(links.count(), length), "spacing");
    if (!equal_spacing && !best.proven) {
        ChainOptions options;
        options.chain = costs_of(graph, links);
        for (const bool second : {true, false}) {
            options.second_table = second;
            // The chain's own bytes know neither what layers share nor what is left out.
            std::int64_t low = least_chain_budget(options.chain, second),
                         high = std::max(low, 2 * full_chain_budget(options.chain));
            for (int halving = 0; low <= high && halving < 16; ++halving) {
                options.budget = halving == 0 ? std::clamp(budget, low, high) : low + (high - low) / 2;
                std::optional<ChainPlan> plan = plan_optimal_chain(options);
                if (!plan) break;
                if (offer(*optimal_chain(std::move(*plan)), "layers"))
                    low = options.budget + 1;
                else
                    high = options.budget - 1;
            }
        }
    }
    if (best.steps.empty())
        throw NoPlan("layer by layer this graph takes at least " + std::to_string(least) + " bytes, offered " +
                     std::to_string(budget) + "; offer more, or plan for the graph as a whole (optimal_graph)");
    for (const GraphNode& node : graph.nodes) best.lower_bound += node.time;
    best.lower_bound = std::min(best.lower_bound, best.cost);
    return best;
}

}  // namespace backsweep
