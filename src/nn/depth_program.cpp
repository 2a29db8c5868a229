// Actions become calls over values, each assigned once, as compilers see them: saves, loads and stows only say how long
// a value lives. Calls that nothing needs are left out, and values that do not live together share memory.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/depth_program.hpp"

#include "backsweep/base/buffer.hpp"
#include "backsweep/base/error.hpp"
#include "backsweep/nn/dual.hpp"
#include "backsweep/schedule/optimal_chain.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/store_all.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace backsweep {

namespace {

using What = DepthCall::What;
constexpr int none = -1;

/// What is known of the layers for one size of segment: elements, multiples of 64 bytes.
struct Layers {
    std::vector<std::string> names;
    std::vector<Index> flow;  ///< input of each layer; last, the outputs: a loss gives none
    std::vector<Index> tape;
    std::vector<bool> reads_x, reads_y;
    std::vector<Work> work;
    std::vector<Checkpoint> checkpoint;
    std::vector<Tier> place;
    Index carry_depth = 0;
    Index links = 0;

    Index depth() const { return static_cast<Index>(names.size()); }
    Range of(Index link) const { return {link, link + 1 == links ? depth() : link + 1}; }
};

struct Value {
    Index size = 0, born = none, last = none;
    bool stored = false;  ///< an activation that lies in the store while it rests
    bool rests = false;   ///< in the block of the link
    Index layer = 0;      ///< activations: whose input it is
    Index offset = 0;
};

struct Op {
    What what;
    Index layer;
    int x = none, y = none, tape = none, dy = none, dx = none;
    std::int32_t slot = none;
};

/// A layer's tape, with the values that were its input and output. Not made yet where the layer is always checkpointed.
struct Taped {
    Index layer = 0;
    int tape = none, x = none, y = none;
};

class Compiler {
public:
    explicit Compiler(const Layers& layers) : layers_(layers), kept_(layers.names.size()) {}

    DepthProgram compile(Schedule& schedule) {
        stand(0, flow(0));
        input_ = at_;
        left_ = layers_.links;
        schedule.rewind();
        for (Action a = schedule.next(); a.verb != Verb::done; a = schedule.next()) play(a);
        if (turn_ == none) refuse("the schedule has no turn");
        if (left_ != 0) refuse("links below number " + std::to_string(left_) + " are not reversed");
        const int input_gradient = adjoint_;
        leave_out();
        to_store();
        lifetimes();
        DepthProgram program;
        rest(program);
        share(program, {0, turn_});
        share(program, {turn_, size()});
        for (Index i = 0; i < size(); ++i) emit(program, i);
        program.input = place(input_);
        program.input_gradient = place(input_gradient);
        program.output = place(output_);
        program.output_gradient = place(output_gradient_);
        program.store_slots = slots_;
        upward(program);
        return program;
    }

private:
    [[noreturn]] static void refuse(const std::string& why) {
        throw InvalidArgument("a schedule over the depth: " + why +
                              "; take a closed family that keeps states in RAM or on disk and tapes in RAM");
    }

    Index size() const { return static_cast<Index>(ops_.size()); }
    /// The working state is `x`, before link `link`; `nowhere`: unspecified.
    void stand(Index link, int x) {
        here_ = link;
        at_ = x;
    }
    void stands(const Action& a) const {
        if (here_ != a.steps.first || a.steps.first < 0 || a.steps.last > layers_.links)
            refuse("nothing stands there for " + to_string(a));
    }
    Value& value(int v) { return values_[static_cast<std::size_t>(v)]; }
    Checkpoint wish(Index l) const {
        return l + 1 == layers_.depth() ? Checkpoint::automatic : layers_.checkpoint[static_cast<std::size_t>(l)];
    }

    int make(Index size) {
        if (size == 0) return none;
        values_.push_back({size});
        return static_cast<int>(values_.size()) - 1;
    }
    /// A value for the input of layer l.
    int flow(Index l) {
        const int v = make(layers_.flow[static_cast<std::size_t>(l)]);
        if (v == none) return v;
        value(v).layer = l;
        value(v).stored = l < layers_.depth() && layers_.place[static_cast<std::size_t>(l)] == Tier::disk;
        return v;
    }

    Taped make_tape(Index l, int x) {
        const Taped made{l, make(layers_.tape[static_cast<std::size_t>(l)]), x, flow(l + 1)};
        ops_.push_back({What::record, l, x, made.y, made.tape});
        return made;
    }

    void advance(Index l) {
        auto& kept = kept_[static_cast<std::size_t>(l)];
        if (wish(l) == Checkpoint::never) {
            if (!kept) kept = make_tape(l, at_);
            at_ = kept->y;
            return;
        }
        const int y = flow(l + 1);
        ops_.push_back({What::advance, l, at_, y});
        at_ = y;
    }

    void record(Index l) {
        if (wish(l) == Checkpoint::always) {
            Taped later{l, none, at_, none};
            advance(l);
            later.y = at_;
            tape_.push_back(later);
        } else if (wish(l) == Checkpoint::never) {
            advance(l);
            tape_.push_back(*kept_[static_cast<std::size_t>(l)]);
        } else {
            tape_.push_back(make_tape(l, at_));
            at_ = tape_.back().y;
        }
    }

    void reverse() {
        Taped t = tape_.back();
        tape_.pop_back();
        const Index l = t.layer;
        if (here_ == l && l < layers_.links) t.x = at_;  // a schedule may drop the input and bring it again
        if (wish(l) == Checkpoint::always) t = make_tape(l, t.x);
        const auto s = static_cast<std::size_t>(l);
        const int dx = make(layers_.flow[s]);
        ops_.push_back(
            {What::reverse, l, layers_.reads_x[s] ? t.x : none, layers_.reads_y[s] ? t.y : none, t.tape, adjoint_, dx});
        adjoint_ = dx;
    }

    void play(const Action& a) {
        switch (a.verb) {
            case Verb::advance:
                stands(a);
                for (Index link = a.steps.first; link < a.steps.last; ++link)
                    for (Index l = link; l < layers_.of(link).last; ++l) advance(l);
                here_ = a.steps.last;
                break;
            case Verb::record:
            case Verb::tape:
                stands(a);
                tape_.clear();
                for (Index l = a.steps.first; l < layers_.of(a.steps.first).last; ++l) record(l);
                here_ = a.verb == Verb::record ? a.steps.last : nowhere;
                break;
            case Verb::reverse:
                if (turn_ == none || a.steps.first != left_ - 1 || tape_.empty() ||
                    tape_.front().layer != a.steps.first)
                    refuse("there is no tape, or not yet an adjoint, for " + to_string(a));
                while (!tape_.empty()) reverse();
                here_ = nowhere;
                left_ = a.steps.first;
                break;
            case Verb::save:
                stands(a);
                if (a.to.tier == Tier::disk && at_ != none) value(at_).stored = true;
                states_[key(a.to)] = at_;
                break;
            case Verb::load:
            case Verb::take:
                stand(a.steps.first, held(states_, a));
                break;
            case Verb::restart:
                stand(a.steps.first, held(tapes_, a).back().y);
                break;
            case Verb::stow:
                if (a.to.tier != Tier::ram) refuse("it stows a tape " + to_string(a));
                if (tape_.empty()) refuse("there is no tape for " + to_string(a));
                tapes_[key(a.to)] = std::exchange(tape_, {});
                break;
            case Verb::fetch:
                tape_ = held(tapes_, a);
                break;
            case Verb::move:
                states_[key(a.to)] = held(states_, a);
                break;
            case Verb::drop:
                if (a.from.index < 0) tape_.clear();
                break;
            case Verb::turn:
                turn_ = size();
                if (turn_ == 0 || ops_.back().layer + 1 != layers_.depth() || ops_.back().what != What::record)
                    refuse("the last layer is not recorded before the turn");
                output_ = at_;
                adjoint_ = output_gradient_ = make(layers_.flow.back());
                break;
            case Verb::done:
                break;
        }
    }
    static std::pair<Tier, std::int32_t> key(Slot slot) { return {slot.tier, slot.index}; }
    template <class Held>
    static const Held& held(const std::map<std::pair<Tier, std::int32_t>, Held>& slots, const Action& a) {
        const auto found = slots.find(key(a.from));
        if (found == slots.end()) refuse("nothing is there for " + to_string(a));
        return found->second;
    }

    static std::array<int, 3> read_by(const Op& op) {
        return op.what == What::reverse ? std::array{op.x, op.y, op.dy} : std::array{op.x, none, none};
    }

    /// Of the calls behind the turn those that no reverse needs, and outputs that nothing reads.
    void leave_out() {
        std::vector<bool> used(values_.size(), false);
        const auto use = [&](int v) {
            if (v != none) used[static_cast<std::size_t>(v)] = true;
        };
        const auto is_used = [&](int v) { return v != none && used[static_cast<std::size_t>(v)]; };
        std::vector<Op> needed;
        for (Index i = size(); i-- > 0;) {
            Op op = ops_[static_cast<std::size_t>(i)];
            if (op.what == What::reverse) {
                use(op.tape);
            } else {
                if (i >= turn_ && !is_used(op.tape) && !is_used(op.y)) continue;
                if (op.what == What::record && i >= turn_ && !is_used(op.y)) op.y = none;
            }
            for (const int v : read_by(op)) use(v);
            needed.push_back(op);
        }
        ops_.assign(needed.rbegin(), needed.rend());
    }

    /// Activations that rest and are to lie in the store: written where they are born, read where they are first
    /// wanted.
    void to_store() {
        lifetimes();
        std::vector<int> again(values_.size(), none);
        std::vector<Op> ops;
        Index turn = 0;
        const auto leaves = [&](int v) { return v != none && value(v).rests && value(v).stored; };
        std::map<int, std::int32_t> slot;
        const auto write = [&](int v) {
            if (!leaves(v)) return;
            slot[v] = slots_++;
            ops.push_back({What::write, value(v).layer, v, none, none, none, none, slot[v]});
        };
        write(input_);
        for (Index i = 0; i < size(); ++i) {
            if (i == turn_) turn = static_cast<Index>(ops.size());
            Op op = ops_[static_cast<std::size_t>(i)];
            if (i >= turn_)
                for (int* v : {&op.x, op.what == What::reverse ? &op.y : &op.x}) {
                    if (!leaves(*v)) continue;
                    if (again[static_cast<std::size_t>(*v)] == none) {
                        const int copy = make(value(*v).size);
                        again[static_cast<std::size_t>(*v)] = copy;
                        ops.push_back({What::read, value(*v).layer, copy, none, none, none, none, slot.at(*v)});
                    }
                    *v = again[static_cast<std::size_t>(*v)];
                }
            ops.push_back(op);
            if (i < turn_) write(op.y);
        }
        turn_ = turn;
        ops_ = std::move(ops);
    }

    void lifetimes() {
        for (Value& v : values_) v.born = v.last = none;
        const auto live = [&](int v, Index i) {
            if (v == none) return;
            if (value(v).born == none) value(v).born = i;
            value(v).last = i;
        };
        live(input_, 0);
        live(output_gradient_, turn_);
        for (Index i = 0; i < size(); ++i) {
            const Op& op = ops_[static_cast<std::size_t>(i)];
            for (const int v : {op.x, op.y, op.tape, op.dy, op.dx}) live(v, i);
        }
        for (Value& v : values_) v.rests = v.born != none && v.born < turn_ && v.last >= turn_;
    }

    void rest(DepthProgram& program) {
        for (Value& v : values_) {
            if (!v.rests) continue;
            v.offset = program.rest;
            program.rest += v.size;
        }
    }

    /// Values that have their places, by the ops in which they are alive.
    class Placed {
    public:
        explicit Placed(Range ops) : first_(ops.first), alive_(static_cast<std::size_t>(ops.size())) {}

        void put(const Value& v) {
            for (Index i = std::max(v.born, first_); i <= v.last; ++i) at(i).push_back(&v);
        }
        /// The lowest offset that is free all the value's life.
        Index free_offset(const Value& v) {
            near_.clear();
            for (Index i = v.born; i <= v.last; ++i) near_.insert(near_.end(), at(i).begin(), at(i).end());
            std::sort(near_.begin(), near_.end(), [](const Value* a, const Value* b) { return a->offset < b->offset; });
            Index offset = 0;
            for (const Value* other : near_) {
                if (other->offset >= offset + v.size) break;
                offset = std::max(offset, other->offset + other->size);
            }
            return offset;
        }

    private:
        std::vector<const Value*>& at(Index op) { return alive_[static_cast<std::size_t>(op - first_)]; }

        Index first_;
        std::vector<std::vector<const Value*>> alive_;
        std::vector<const Value*> near_;
    };

    /// Places for the values of these ops that do not rest, the largest first: behind the turn where the block of the
    /// link has become free, else in scratch.
    void share(DepthProgram& program, Range ops) {
        std::vector<Value*> waiting;
        Placed in_block(ops), in_scratch(ops);
        const bool behind = ops.first >= turn_;
        for (Value& v : values_)
            if (v.rests && behind)
                in_block.put(v);
            else if (!v.rests && v.born >= ops.first && v.born < ops.last)
                waiting.push_back(&v);
        std::stable_sort(waiting.begin(), waiting.end(),
                         [](const Value* a, const Value* b) { return a->size > b->size; });
        for (Value* v : waiting) {
            if (behind) v->offset = in_block.free_offset(*v);
            v->rests = behind && v->offset + v->size <= program.rest;
            if (!v->rests) v->offset = in_scratch.free_offset(*v);
            (v->rests ? in_block : in_scratch).put(*v);
            if (!v->rests) program.scratch = std::max(program.scratch, v->offset + v->size);
        }
    }

    DepthCall::Place place(int v) const {
        if (v == none) return {};
        const Value& of = values_[static_cast<std::size_t>(v)];
        return {of.rests, of.offset, of.size};
    }

    void emit(DepthProgram& program, Index i) const {
        const Op& op = ops_[static_cast<std::size_t>(i)];
        (i < turn_ ? program.record : program.reverse)
            .push_back(
                {op.what, op.layer, place(op.x), place(op.y), place(op.tape), place(op.dy), place(op.dx), op.slot});
        if (op.what == What::write || op.what == What::read) return;
        const Work& work = layers_.work[static_cast<std::size_t>(op.layer)];
        if (op.what == What::reverse) {
            program.once.reverse += work.reverse;
        } else if (i < turn_) {
            program.once.forward += work.forward;
        } else {
            ++program.replays;
            program.replayed += work.forward;
        }
    }

    /// A link without tape: inputs and outputs in two halves of scratch.
    void upward(DepthProgram& program) const {
        Index half = 0;
        for (Index l = 0; l < layers_.carry_depth; l += 2)
            half = std::max(half, layers_.flow[static_cast<std::size_t>(l)]);
        const auto at = [&](Index l) {
            const Index elements = layers_.flow[static_cast<std::size_t>(l)];
            if (elements > 0) program.scratch = std::max(program.scratch, (l % 2 == 0 ? 0 : half) + elements);
            return DepthCall::Place{false, l % 2 == 0 ? 0 : half, elements};
        };
        if (layers_.carry_depth % 2 == 0)
            half = std::max(half, layers_.flow[static_cast<std::size_t>(layers_.carry_depth)]);
        program.advance_input = at(0);
        program.advance_output = at(layers_.carry_depth);
        for (Index l = 0; l < layers_.carry_depth; ++l)
            program.advance.push_back({What::advance, l, at(l), at(l + 1), {}, {}, {}, none});
    }

    const Layers& layers_;
    std::vector<Value> values_;
    std::vector<Op> ops_;
    std::vector<std::optional<Taped>> kept_;  // of layers that run once
    std::map<std::pair<Tier, std::int32_t>, int> states_;
    std::map<std::pair<Tier, std::int32_t>, std::vector<Taped>> tapes_;  // of the layers of a link
    std::vector<Taped> tape_;                                            // the working tape
    static constexpr Index nowhere = -1;
    Index here_ = nowhere, left_ = 0;  // where at_ stands; links below left_ are not reversed yet
    int at_ = none, input_ = none, output_ = none, adjoint_ = none, output_gradient_ = none;
    Index turn_ = none;
    std::int32_t slots_ = 0;
};

/// Whether `name` is what the pattern says; `*` stands for any characters.
bool fits(std::string_view pattern, std::string_view name) {
    constexpr std::size_t never = std::string_view::npos;
    std::size_t p = 0, star = never, from = 0;  // the last `*`, and where what it stands for ends
    for (std::size_t n = 0; n < name.size();) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            from = n;
        } else if (p < pattern.size() && pattern[p] == name[n]) {
            ++p, ++n;
        } else if (star != never) {
            p = star + 1;
            n = ++from;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', p) == never;
}
bool listed(const std::vector<std::string>& patterns, const std::string& name) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& pattern) { return fits(pattern, name); });
}
Checkpoint wish(const DepthOptions& options, const std::string& name) {
    if (listed(options.always, name)) return Checkpoint::always;
    if (listed(options.never, name)) return Checkpoint::never;
    return options.checkpoint ? options.checkpoint(name) : Checkpoint::automatic;
}

template <class Real>
Layers layers_of(const Network<Real>& network, Index steps, Index batch, const DepthOptions& options) {
    Layers all;
    for (Index l = 0; l < network.depth(); ++l) {
        const Layer<Real>& layer = network.layer(l);
        const Footprint f = layer.footprint(steps, batch);
        all.names.push_back(layer.name());
        all.flow.push_back(aligned<Real>(f.inputs * steps * batch));
        all.tape.push_back(aligned<Real>(f.tape));
        all.reads_x.push_back(f.reads_x && f.inputs > 0);
        all.reads_y.push_back(f.reads_y);
        all.work.push_back(options.work.empty() ? layer.work(steps, batch) : options.work[static_cast<std::size_t>(l)]);
        all.checkpoint.push_back(wish(options, layer.name()));
        all.place.push_back(options.place ? options.place(layer.name()) : Tier::ram);
        if (all.place.back() != Tier::ram && all.place.back() != Tier::disk)
            throw InvalidArgument("the input of layer '" + layer.name() + "' is to be kept in tier " +
                                  to_string(all.place.back()) + ", but kept activations lie in ram or on disk");
    }
    all.flow.push_back(aligned<Real>(network.outputs() * steps * batch));
    all.carry_depth = network.carry_depth();
    all.links = network.links();
    return all;
}

/// The layers as links of a chain, in bytes; what reverse reads beside the tape is in it.
ChainCosts costs_of(const Layers& layers, std::int64_t element) {
    ChainCosts costs;
    for (Index link = 0; link < layers.links; ++link) {
        Work work;
        Index tape = 0;
        for (Index l = link; l < layers.of(link).last; ++l) {
            const auto s = static_cast<std::size_t>(l);
            work.forward += layers.work[s].forward;
            work.reverse += layers.work[s].reverse;
            tape += layers.tape[s] + layers.flow[s + 1];
        }
        costs.forward_time.push_back(work.forward);
        costs.backward_time.push_back(work.reverse);
        costs.state_bytes.push_back(layers.flow[static_cast<std::size_t>(link)] * element);
        costs.tape_bytes.push_back(tape * element);
    }
    costs.state_bytes.push_back(layers.flow.back() * element);
    return costs;
}

std::string list(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "'" : ", '") + name + "'";
    return all;
}

/// Programs by groups of every length that makes another number of groups.
std::vector<DepthProgram> by_groups(const Layers& layers) {
    std::vector<DepthProgram> all;
    const Index links = layers.links;
    for (Index length = 1; length <= links; ++length)
        if (length == 1 || (links - 1) / length != (links - 1) / (length - 1))
            all.push_back(Compiler(layers).compile(*periodic(links, length)));
    return all;
}

std::int64_t elements(const DepthProgram& program) {
    return program.rest + program.scratch;
}

/// Groups of the length that takes the fewest bytes at rest and in scratch together; of equals the shortest.
DepthProgram fewest_bytes(const Layers& layers) {
    std::vector<DepthProgram> all = by_groups(layers);
    return std::move(*std::min_element(all.begin(), all.end(), [](const DepthProgram& a, const DepthProgram& b) {
        return elements(a) < elements(b);
    }));
}

/// The least work of all programs within `budget` elements: those of the optimum under the planner's own bytes, which
/// know neither what layers share nor gaps, for budgets found by halving, and groups. Throws NoPlan.
DepthProgram least_work(const Layers& layers, std::int64_t budget, std::int64_t element) {
    std::vector<DepthProgram> all = by_groups(layers);
    if (elements(all.back()) <= budget) return all.back();  // one group: the schedule runs nothing again
    ChainOptions options;
    options.chain = costs_of(layers, element);
    for (const bool second : {true, false}) {
        options.second_table = second;
        std::int64_t low = least_chain_budget(options.chain, second),
                     high = std::max(low, 2 * full_chain_budget(options.chain));
        const int halvings = layers.links <= 64 ? 12 : 4;  // planning takes O(n^3)
        for (int halving = 0; low <= high && halving < halvings; ++halving) {
            options.budget = halving == 0 ? std::clamp(budget * element, low, high) : low + (high - low) / 2;
            std::optional<ChainPlan> plan = plan_optimal_chain(options);
            if (!plan) break;
            all.push_back(Compiler(layers).compile(*optimal_chain(std::move(*plan))));
            if (elements(all.back()) <= budget)
                low = options.budget + 1;
            else
                high = options.budget - 1;
        }
    }
    const auto better = [&](const DepthProgram& a, const DepthProgram& b) {
        const bool a_fits = elements(a) <= budget, b_fits = elements(b) <= budget;
        if (a_fits != b_fits) return a_fits;
        if (a_fits && a.replayed != b.replayed) return a.replayed < b.replayed;
        return elements(a) < elements(b);
    };
    DepthProgram best = std::move(*std::min_element(all.begin(), all.end(), better));
    if (elements(best) > budget)
        throw NoPlan("depth.budget: inputs, tapes and adjoints of a link take at least " +
                     std::to_string(elements(best) * element) + " bytes at once, offered " +
                     std::to_string(budget * element) + "; offer more, or take shorter links or fewer sequences");
    return best;
}

}  // namespace

std::string DepthOptions::problem(const std::vector<std::string>& layers, Index links) const {
    const Index asked = std::max<Index>(1, static_cast<Index>(layers.size()) - 1);
    const auto unused = [&](const char* option, bool given, Family of) {
        return given && family != of ? std::string(option) + " has no effect on this way to keep layers; leave it out"
                                     : std::string{};
    };
    if (period < 0 || period > links)
        return "depth.period wants layers of a group, 1 to " + std::to_string(links) + ", or 0 for the best, got " +
               std::to_string(period);
    if (slots < 0) return "depth.slots wants 0 or more kept inputs, got " + std::to_string(slots);
    if (family < Family::store_all || family > Family::optimal)
        return "depth.family is none of store_all, sqrt, slots and optimal, but number " +
               std::to_string(static_cast<int>(family));
    if (budget < 0 || (family == Family::optimal && budget == 0))
        return "depth.budget wants bytes, those that inputs, tapes and adjoints of a link may take at once, got " +
               std::to_string(budget);
    if (!work.empty() && work.size() != layers.size())
        return "depth.work wants what each of the " + std::to_string(layers.size()) + " layers takes, got " +
               std::to_string(work.size());
    for (const Work& w : work)
        if (!(w.forward >= 0.0 && w.reverse >= 0.0) || !std::isfinite(w.forward + w.reverse))
            return "depth.work wants finite numbers of at least 0, got " + std::to_string(w.forward) + " and " +
                   std::to_string(w.reverse);
    for (const std::string& why :
         {unused("depth.period", period != 0, Family::sqrt), unused("depth.slots", slots != 0, Family::slots),
          unused("depth.budget", budget != 0, Family::optimal), unused("depth.work", !work.empty(), Family::optimal)})
        if (!why.empty()) return why;
    for (const auto& [option, patterns] : {std::pair{"always", &always}, std::pair{"never", &never}})
        for (const std::string& pattern : *patterns)
            if (std::none_of(layers.begin(), layers.begin() + asked,
                             [&](const std::string& name) { return fits(pattern, name); }))
                return std::string("depth.") + option + " names '" + pattern +
                       "', which no layer is called; there are: " + list({layers.begin(), layers.begin() + asked});
    for (const std::string& name : layers)
        if (listed(always, name) && listed(never, name))
            return "layer '" + name + "' is on the lists depth.always and depth.never; take it off one of them";
    return {};
}

LinkWork link_work(const DepthProgram& program, const std::vector<Work>& layers) {
    const auto sum = [&](const std::vector<DepthCall>& calls) {
        double all = 0.0;
        for (const DepthCall& c : calls) {
            const Work& work = layers[static_cast<std::size_t>(c.layer)];
            if (c.what == What::advance) all += work.forward - work.spared;
            if (c.what == What::record) all += work.forward;
            if (c.what == What::reverse) all += work.reverse;
        }
        return all;
    };
    return {sum(program.advance), sum(program.record), sum(program.reverse)};
}

template <class Real>
std::vector<std::string> layer_names(const Network<Real>& network) {
    std::vector<std::string> names;
    for (Index l = 0; l < network.depth(); ++l) names.push_back(network.layer(l).name());
    return names;
}

template <class Real>
DepthProgram depth_program(const Network<Real>& network, Index steps, Index batch, const DepthOptions& options) {
    const std::string problem = options.problem(layer_names(network), network.links());
    if (!problem.empty()) throw InvalidArgument(problem);
    const Layers layers = layers_of(network, steps, batch, options);
    switch (options.family) {
        case DepthOptions::Family::store_all:
            break;
        case DepthOptions::Family::sqrt:
            return options.period > 0 ? Compiler(layers).compile(*periodic(layers.links, options.period))
                                      : fewest_bytes(layers);
        case DepthOptions::Family::slots:
            return Compiler(layers).compile(*revolve(layers.links, std::min(options.slots, layers.links) + 1));
        case DepthOptions::Family::optimal:
            return least_work(layers, options.budget / static_cast<std::int64_t>(sizeof(Real)), sizeof(Real));
    }
    return Compiler(layers).compile(*store_all(layers.links));
}

template <class Real>
DepthProgram depth_program(const Network<Real>& network, Index steps, Index batch, Schedule& schedule,
                           const DepthOptions& options) {
    const Layers layers = layers_of(network, steps, batch, options);
    return Compiler(layers).compile(schedule);
}

#define BACKSWEEP_INSTANTIATE(Real)                                                               \
    template std::vector<std::string> layer_names(const Network<Real>&);                          \
    template DepthProgram depth_program(const Network<Real>&, Index, Index, const DepthOptions&); \
    template DepthProgram depth_program(const Network<Real>&, Index, Index, Schedule&, const DepthOptions&);
BACKSWEEP_INSTANTIATE(float)
BACKSWEEP_INSTANTIATE(double)
BACKSWEEP_INSTANTIATE(Dual<double>)
#undef BACKSWEEP_INSTANTIATE

}  // namespace backsweep
