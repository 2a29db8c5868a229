// SPDX-License-Identifier: MIT
#include "backsweep/nn/time_chain.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/dual.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace backsweep {

namespace {

/// Of this thread on a processor: what others run meanwhile does not count.
double thread_seconds() {
    std::timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Index links_of(Index steps, Index chunk) { return steps < 1 ? 0 : 1 + (steps - 1) / chunk; }

/// The most scratch that a call of a layer takes, in elements.
template <class Real>
Index workspace(const Network<Real>& network, Index steps, Index batch) {
    Index most = 0;
    for (Index l = 0; l < network.depth(); ++l) most = std::max(most, network.layer(l).footprint(steps, batch).workspace);
    return most;
}

template <class Real>
std::vector<Footprint> footprints(const Network<Real>& network, Index steps, Index batch) {
    std::vector<Footprint> all;
    for (Index l = 0; l < network.depth(); ++l) all.push_back(network.layer(l).footprint(steps, batch));
    return all;
}

template <class Real>
bool finite(const Real* x, Index count) {
    return std::all_of(x, x + count, [](Real v) {
        using std::isfinite;  // Dual has its own
        return isfinite(v);
    });
}

void check_sizes(Index steps, Index batch, Index chunk) {
    if (steps < 1 || batch < 1 || chunk < 1)
        throw InvalidArgument("sizes of a time chain are of at least 1 step, 1 sequence and chunks of 1 step, got " +
                              std::to_string(steps) + ", " + std::to_string(batch) + " and " + std::to_string(chunk));
}

}  // namespace

template <class Real>
TimeChainSizes time_chain_sizes(const Network<Real>& network, Index steps, Index batch, Index chunk, bool carried,
                                const MemoryPlaces& places, const DepthProgram& program) {
    check_sizes(steps, batch, chunk);
    const Index link = std::min(chunk, steps);
    const MemoryLayout memories = memory_layout(network, batch, link, places);
    const auto bytes = [](Index count) { return count * static_cast<std::int64_t>(sizeof(Real)); };
    const Index rows = std::max(memories.area, memories.darea), carry = network.carry() * batch;
    const bool alone = memories.carry_alone;
    return {bytes(memories.state),
            bytes((alone ? 0 : carry) + memories.area + program.rest),
            alone ? bytes(carry) : 0,
            alone ? bytes(carry) : bytes(memories.state + memories.adjoint),
            bytes(program.scratch + network.layer_carry() * batch + workspace(network, link, batch) + rows) + memories.seen,
            links_of(steps, chunk) * static_cast<std::int64_t>(sizeof(double)) +
                memory_log_bytes(network, batch, steps, chunk, carried, places),
            bytes(memories.between),
            bytes(memories.adjoint),
            bytes(network.prepared()),
            program.replayed / std::max(program.once.forward, 1.0)};
}

template <class Real>
TimeChainSizes time_chain_sizes(const Network<Real>& network, Index steps, Index batch, Index chunk, bool carried,
                                const MemoryPlaces& places, const DepthOptions& depth) {
    check_sizes(steps, batch, chunk);
    return time_chain_sizes(network, steps, batch, chunk, carried, places,
                            depth_program(network, std::min(chunk, steps), batch, depth));
}

template <class Real>
TimeChain<Real>::TimeChain(const Network<Real>& network, Index batch, Index chunk, Ledger& ledger, MemoryPlaces places,
                           DepthOptions depth)
    : network_(&network),
      ledger_(&ledger),
      batch_(batch),
      chunk_(chunk),
      prepared_(Kind::parameters, ledger),
      scratch_(Kind::workspace, ledger),
      spare_(Kind::workspace, ledger),
      block_(Kind::carry, ledger),
      workspace_(Kind::workspace, ledger),
      log_(Kind::log, ledger),
      memories_(network, batch, chunk, std::move(places), ledger),
      depth_(std::move(depth)),
      unread_(Kind::workspace, ledger) {
    if (batch < 1) throw InvalidArgument("a time chain wants at least 1 sequence, got batch " + std::to_string(batch));
    if (chunk < 1) throw InvalidArgument("a time chain wants chunks of at least 1 step, got " + std::to_string(chunk));
    const std::string problem = depth_.problem(layer_names(network), network.links());
    if (!problem.empty()) throw InvalidArgument(problem);
    spare_.resize(network.layer_carry() * batch);
}

template <class Real>
TimeChain<Real>::~TimeChain() {
    empty_store();
}

template <class Real>
void TimeChain<Real>::empty_store() noexcept {
    for (const std::int32_t slot : stored_) store_->erase(slot);
    stored_.clear();
}

template <class Real>
void TimeChain<Real>::compile(Index steps) {
    const Index link = std::min(chunk_, steps), links = links_of(steps, chunk_);
    if (link > compiled_) {  // else the program for longer links serves, and none takes more than was predicted
        program_ = depth_program(*network_, link, batch_, depth_);
        compiled_ = link;
    }
    if (program_.store_slots > 0 && !store_)
        throw InvalidArgument("kept activations are to lie on disk, but this chain has no store; call use(store)");
    if (links > std::numeric_limits<std::int32_t>::max() / std::max(program_.store_slots, 1))
        throw InvalidArgument("a store has 2^31 - 1 slots, but " + std::to_string(links) + " links would want " +
                              std::to_string(program_.store_slots) + " each; keep fewer activations on disk, or take longer links");
    full_ = footprints(*network_, link, batch_);
    last_ = footprints(*network_, steps - (links - 1) * chunk_, batch_);
    scratch_.reserve(program_.scratch);
    workspace_.reserve(workspace(*network_, link, batch_));
}

template <class Real>
void check_window(const Network<Real>& network, const Window<Real>& window, Index batch, bool starts) {
    if (window.steps < 1)
        throw InvalidArgument("a window has at least 1 step, got " + std::to_string(window.steps) +
                              "; is the sequence empty?");
    const bool reals = network.inputs() > 0;
    if (reals ? !window.inputs : !window.tokens)
        throw InvalidArgument(std::string("this model reads ") + (reals ? "real inputs" : "tokens") +
                              ", but the window has none");
    const bool classes = network.spec().loss.kind == LossSpec::Kind::cross_entropy;
    if (network.outputs() == 0 && window.loss_from < window.steps && (classes ? !window.classes : !window.values))
        throw InvalidArgument(std::string("this model's loss reads ") + (classes ? "class targets" : "value targets") +
                              ", but the window has none");
    if (network.outputs() > 0 && !window.outputs)
        throw InvalidArgument("this part of a network gives outputs, but the window has no room for them; set Window::outputs");
    if (window.input_gradient && !reals)
        throw InvalidArgument(
            "a model that starts with an embedding has no input gradient; leave input_gradient empty");
    if (network.spec().learned_state() && !window.begins && !window.marks && !starts)
        throw InvalidArgument("this model's sequences start from learned states, but the window says of none that it "
                              "begins; set Window::begins or marks, or give a state to start from");
    for (Index b = 0; window.begins && window.marks && b < batch; ++b) {
        Index t = 0;
        while (t < window.steps && window.marks[t * batch + b] == Mark::filler) ++t;
        if (t > 0 && t < window.steps && window.marks[t * batch + b] != Mark::first)
            throw InvalidArgument("all sequences begin with the window, but sequence " + std::to_string(b) + " has filler before its step " +
                                  std::to_string(t) + "; mark that step as the first");
    }
    const bool across = network.spec().context().has_value();
    if (across && !(window.context && window.context->steps > 0 && window.context->keys))
        throw InvalidArgument("this model attends to a context, but the window has none; set Window::context with its keys");
    if (!across && window.context) throw InvalidArgument("no layer of this model attends to a context; leave Window::context empty");
}

template <class Real>
Index swept_steps(const Window<Real>& window, Index batch) {
    if (!window.marks) return window.steps;
    Index last = window.steps * batch;
    while (last > 0 && window.marks[last - 1] == Mark::filler) --last;
    return std::max<Index>(1, (last + batch - 1) / batch);
}

template <class Real>
void TimeChain<Real>::show(const Window<Real>& window) {
    check_window(*network_, window, batch_, start_ != nullptr);
    compile(swept_steps(window, batch_));
    prepared_of_ = nullptr;
    window_ = window;
    steps_ = swept_steps(window, batch_);
    if (!window.factors.empty() && static_cast<Index>(window.factors.size()) < *length() - 1)
        throw InvalidArgument("one factor for each of the " + std::to_string(*length()) + " links but the first is wanted, got " +
                              std::to_string(window.factors.size()));
    if (*length() > 1 && !network_->spec().segmentable())
        throw InvalidArgument("a bidirectional layer or full attention is not cut in time: this window has " + std::to_string(steps_) +
                              " steps, but a link " + std::to_string(chunk_) + "; make a link as long as the window");
    const Index left_out = (window.steps - steps_) * batch_, behind = steps_ * batch_;
    if (window.losses) std::fill_n(window.losses + behind, left_out, Real{0});
    if (window.input_gradient) {
        const Index width = network_->inputs();
        std::fill_n(window.input_gradient + behind * width, left_out * width, Real{0});
    }
    memories_.show(steps_, window.marks, window.key_padding, window.begins);
    empty_store();
    log_.assign(*length(), 0.0);
    prints_.clear();
}

template <class Real>
void TimeChain<Real>::use(const Real* parameters, const Real* prepared) {
    parameters_ = parameters;
    given_ = prepared;
    prepared_of_ = nullptr;
    versions_.clear();
}

template <class Real>
void TimeChain<Real>::use(std::vector<const Real*> versions) {
    if (static_cast<Index>(versions.size()) != *length())
        throw InvalidArgument("one parameter version per link is wanted: " + std::to_string(*length()) + ", got " +
                              std::to_string(versions.size()));
    versions_ = std::move(versions);
    given_ = prepared_of_ = nullptr;
}

template <class Real>
const Real* TimeChain<Real>::prepared(Index link) {
    if (given_ || network_->prepared() == 0) return given_;
    if (prepared_of_ != parameters(link)) {
        prepared_of_ = parameters(link);
        prepared_.resize(network_->prepared());
        network_->prepare(prepared_of_, prepared_.data());
    }
    return prepared_.data();
}

template <class Real>
typename TimeChain<Real>::State TimeChain<Real>::zero() const {
    State x{Buffer<Real>(Kind::carry, *ledger_)};
    x.carry.assign(memories_.layout().between, Real{0});
    return x;
}

template <class Real>
typename TimeChain<Real>::Adjoint TimeChain<Real>::zero_adjoint() const {
    Adjoint a{Buffer<Real>(Kind::carry, *ledger_)};
    a.carry.assign(memories_.layout().adjoint, Real{0});
    return a;
}

template <class Real>
typename TimeChain<Real>::State TimeChain<Real>::initial() const {
    State x{Buffer<Real>(Kind::carry, *ledger_)};
    initial(x);
    return x;
}

template <class Real>
void TimeChain<Real>::initial(State& x) const {
    const MemoryLayout& layout = memories_.layout();
    if (start_ && start_->carry.size() != layout.between)
        throw InvalidArgument("a sweep starts from a state between windows, of " + std::to_string(layout.between) +
                              " numbers for this model, but was given one of " + std::to_string(start_->carry.size()) +
                              "; take zero(), or the state that carry_over gives");
    prints_.clear();
    prepared_of_ = nullptr;
    x.carry.bind(Kind::carry, *ledger_);
    x.carry.resize(layout.state);
    memories_.start(start_ ? start_->carry.data() : nullptr, x.carry.data());
}

/// x_0 of a sweep that initial() has begun.
template <class Real>
void TimeChain<Real>::again(State& x) const {
    x.carry.bind(Kind::carry, *ledger_);
    x.carry.resize(memories_.layout().state);
    memories_.first(start_ ? start_->carry.data() : nullptr, x.carry.data());
}

template <class Real>
void TimeChain<Real>::carry_over(Index link, const State& x, State& to) {
    if (link < 0 || link > *length() || x.carry.size() != memories_.layout().state)
        throw InvalidArgument("carry_over wants the state of a sweep at one of its links 0 to " + std::to_string(*length()) + ", of " +
                              std::to_string(memories_.layout().state) + " numbers, but was given link " + std::to_string(link) +
                              " and " + std::to_string(x.carry.size()) + " numbers");
    to.carry.bind(Kind::carry, *ledger_);
    to.carry.resize(memories_.layout().between);
    memories_.between(std::min(link * chunk_, steps_), x.carry.data(), to.carry.data());
}

template <class Real>
double TimeChain<Real>::loss() const {
    double sum = 0.0;
    for (const double l : log_) sum += l;
    return sum;
}

template <class Real>
std::optional<Index> TimeChain<Real>::length() const {
    return links_of(steps_, chunk_);
}

template <class Real>
std::vector<Blob> TimeChain<Real>::sums() {
    std::vector<Blob> all{blob(log_.data(), static_cast<std::size_t>(log_.size()))};
    const auto add = [&](Real* from, Index count) {
        if (from) all.push_back(blob(from, static_cast<std::size_t>(count)));
    };
    const Index positions = window_.steps * batch_;
    add(gradients_, network_->parameters().size());
    add(window_.losses, positions);
    add(window_.input_gradient, positions * network_->inputs());
    add(window_.outputs, positions * network_->outputs());
    return all;
}

template <class Real>
bool TimeChain<Real>::self_contained() const {
    const std::vector<Index>& rows = memories_.layout().in_state;
    return std::none_of(rows.begin(), rows.end(), [](Index row) { return row < 0; });
}

template <class Real>
Segment<Real> TimeChain<Real>::segment(Index link) {
    const Index first = link * chunk_, steps = std::min(chunk_, steps_ - first), place = first * batch_;
    Segment<Real> s;
    s.first = window_.first + first;
    s.steps = steps;
    s.batch = batch_;
    s.seed = window_.seed;
    s.sequence = window_.sequence;
    s.training = window_.training;
    s.begins = window_.begins && link == 0;
    s.behind = window_.steps - first - steps;
    s.context = window_.context;
    if (window_.marks) s.marks = window_.marks + place;
    if (window_.key_padding) s.key_padding = window_.key_padding + place;
    if (window_.tokens) s.tokens = window_.tokens + place;
    if (window_.classes) s.classes = window_.classes + place;
    if (window_.values) s.values = window_.values + place * network_->spec().targets();
    if (window_.weights) s.weights = window_.weights + place;
    if (window_.losses) s.losses = window_.losses + place;
    s.loss_from = std::clamp<Index>(window_.loss_from - first, 0, steps);
    s.scale = window_.scale;
    s.loss = &log_[link];
    return s;
}

template <class Real>
DepthFrame<Real> TimeChain<Real>::frame(Index link, const Real* carry_in, Real* carry_out, Real* area) {
    if (!parameters(link) && network_->parameters().size() > 0)
        throw InvalidArgument("a sweep reads parameters, but none were given; call use(parameters)");
    DepthFrame<Real> f;
    f.network = network_;
    f.at = segment(link);
    memories_.point(f.at, link * chunk_, f.at.steps, area);
    f.memory = memories_.rows();
    f.parameters = parameters(link);
    f.prepared = prepared(link);
    f.carry_in = carry_in;
    f.carry_out = carry_out;
    f.spare = spare_.data();
    f.workspace = workspace_.data();
    return f;
}

template <class Real>
void TimeChain<Real>::input(Index link, Real* x) const {
    if (!window_.inputs) return;
    const Index width = network_->inputs(), first = link * chunk_ * batch_;
    const Index positions = std::min(chunk_, steps_ - link * chunk_) * batch_;
    std::copy_n(window_.inputs + first * width, positions * width, x);
    if (!network_->begins()) return;
    // What lies in a filler may be no number; layers may then treat all positions alike.
    for (Index p = 0; window_.marks && p < positions; ++p)
        if (window_.marks[first + p] == Mark::filler) std::fill_n(x + p * width, width, Real{0});
}

template <class Real>
void TimeChain<Real>::output(Index link, const Real* y) const {
    if (!window_.outputs) return;
    const Index row = network_->outputs() * batch_, steps = std::min(chunk_, steps_ - link * chunk_);
    std::copy_n(y, steps * row, window_.outputs + link * chunk_ * row);
}

template <class Real>
void TimeChain<Real>::run(const std::vector<DepthCall>& calls, const DepthFrame<Real>& frame, Index link, Real* rest) {
    const auto at = [&](const DepthCall::Place& p) { return array(p, rest); };
    for (const DepthCall& c : calls) {
        const Index l = c.layer;
        const auto slot = static_cast<std::int32_t>(link * program_.store_slots) + c.slot;
        const Blob activation{reinterpret_cast<std::byte*>(at(c.x)), static_cast<std::size_t>(c.x.size) * sizeof(Real)};
        const double started = measures_ ? thread_seconds() : 0.0;
        switch (c.what) {
            case DepthCall::What::advance:
            case DepthCall::What::record: {
                same_shape(frame, link, l);
                Real* y = at(c.y);
                if (verify_ && !y) {
                    unread_.resize(frame.footprint(l).outputs * frame.at.steps * batch_);
                    y = unread_.data();
                }
                if (c.what == DepthCall::What::advance)
                    frame.advance(l, at(c.x), y);
                else
                    frame.record(l, at(c.x), y, at(c.tape));
                if (verify_) same_bits(frame, link, l, y);
                break;
            }
            case DepthCall::What::reverse:
                frame.reverse(l, at(c.x), at(c.y), at(c.tape), at(c.dy), l > 0 || window_.input_gradient ? at(c.dx) : nullptr);
                break;
            case DepthCall::What::write:
                stored_.insert(slot);
                store_->write(slot, std::span(&activation, 1));
                break;
            case DepthCall::What::read:
                store_->read(slot, std::span(&activation, 1));
                store_->erase(slot);
                stored_.erase(slot);
                break;
        }
        if (!measures_ || c.what == DepthCall::What::write || c.what == DepthCall::What::read) continue;
        Timed& timed = timed_[static_cast<std::size_t>(l)][static_cast<std::size_t>(c.what)];
        timed.seconds += thread_seconds() - started;
        timed.calls += 1.0;
    }
}

template <class Real>
std::vector<Work> TimeChain<Real>::measured() const {
    std::vector<Work> means;
    for (const auto& [advance, record, reverse] : timed_) {
        const double forward = record.calls > 0.0 ? record.mean() : advance.mean(),
                     less = advance.calls > 0.0 ? advance.mean() : forward;
        means.push_back({forward, reverse.mean(), std::max(0.0, forward - less)});
    }
    return means;
}

template <class Real>
void TimeChain<Real>::same_shape(const DepthFrame<Real>& frame, Index link, Index layer) const {
    const Footprint now = frame.footprint(layer);
    const Footprint& first = (link + 1 < *length() ? full_ : last_)[static_cast<std::size_t>(layer)];
    if (now == first) return;
    const auto text = [](const Footprint& f) {
        return std::to_string(f.outputs) + " outputs, carry " + std::to_string(f.carry) + ", tape " + std::to_string(f.tape) +
               " and workspace " + std::to_string(f.workspace);
    };
    throw NumericError("layer '" + network_->layer(layer).name() + "' at step " + std::to_string(frame.at.first) + " (link " +
                       std::to_string(link) + ") now has " + text(now) + ", where it had " + text(first) +
                       " when the window was shown; a layer's sizes are a function of steps and batch alone");
}

template <class Real>
void TimeChain<Real>::same_bits(const DepthFrame<Real>& frame, Index link, Index layer, const Real* y) {
    const auto bytes = [](const auto* first, Index count) {
        return Blob{reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<std::remove_pointer_t<decltype(first)>>*>(first)),
                    static_cast<std::size_t>(count) * sizeof *first};
    };
    const Footprint f = frame.footprint(layer);
    // The loss is written by record alone.
    std::array<Blob, 3> made{bytes(y, y ? f.outputs * frame.at.steps * batch_ : 0),
                             bytes(frame.carry_after(layer), f.carry * batch_),
                             bytes(&log_[link], f.outputs == 0 ? 1 : 0)};
    const std::uint64_t now = fingerprint(made) | 1;
    prints_.resize(static_cast<std::size_t>(*length() * network_->depth()), 0);
    std::uint64_t& first = prints_[static_cast<std::size_t>(link * network_->depth() + layer)];
    if (first == 0) first = now;
    if (first == now) return;
    throw NumericError("layer '" + network_->layer(layer).name() + "' at step " + std::to_string(frame.at.first) + " (link " +
                       std::to_string(link) + ") gives other bits than when it first ran there; a layer is a function of its "
                       "arguments alone, so look for what it remembers between calls, and for parameters or data that changed");
}

template <class Real>
Index TimeChain<Real>::advance(Range r, State& x) {
    for (Index link = r.first; link < r.last; ++link) {
        const DepthFrame<Real> f = frame(link, x.carry.data(), x.carry.data(), memories_.scratch());
        memories_.load(x.carry.data());
        input(link, array(program_.advance_input, nullptr));
        run(program_.advance, f, link, nullptr);
        output(link, array(program_.advance_output, nullptr));
        memories_.keep(f.at.steps, x.carry.data());
    }
    return r.last;
}

template <class Real>
void TimeChain<Real>::shape(Tape& tape) const {
    tape.carry.bind(memories_.layout().carry_alone ? Kind::carry : Kind::tape, *ledger_);
    tape.carry.resize(network_->carry() * batch_);
    tape.values.bind(Kind::tape, *ledger_);
    tape.values.resize(memories_.layout().area + program_.rest);
}

template <class Real>
void TimeChain<Real>::make(Index link, State* x, Tape& tape) {
    const DepthFrame<Real> f =
        frame(link, tape.carry.data(), x ? x->carry.data() : nullptr, tape.values.data());
    if (x) memories_.load(x->carry.data());
    input(link, array(program_.input, rest_of(tape)));
    run(program_.record, f, link, rest_of(tape));
    output(link, array(program_.output, rest_of(tape)));
    if (!std::isfinite(log_[link])) not_finite(link, tape);
    if (x) memories_.keep(f.at.steps, x->carry.data());
}

template <class Real>
Index TimeChain<Real>::record(Range r, State& x, Tape& tape) {
    if (memories_.layout().carry_alone && tape.carry.empty()) tape.carry.swap(block_);
    shape(tape);
    std::copy_n(x.carry.begin(), tape.carry.size(), tape.carry.begin());
    make(r.first, &x, tape);
    return r.last;
}

/// The tape takes the state's memory.
template <class Real>
void TimeChain<Real>::keep(Range r, State& x, Tape& tape) {
    if (!memories_.layout().carry_alone) {
        record(r, x, tape);
        return;
    }
    tape.carry.swap(x.carry);
    shape(tape);
    make(r.first, nullptr, tape);
}

/// Runs the link once more, layer by layer, to find where it begins.
template <class Real>
void TimeChain<Real>::not_finite(Index link, Tape& link_tape) {
    const Real* const carry_in = link_tape.carry.data();
    DepthChain<Real> depth(*ledger_);
    DepthFrame<Real>& f = depth.frame();
    f = frame(link, carry_in, nullptr, link_tape.values.data());
    const Segment<Real>& at = f.at;
    const double loss = log_[link];
    Index step = at.first;
    std::string where = "the state before it";
    if (finite(carry_in, network_->carry() * batch_)) {
        typename DepthChain<Real>::State flow = depth.initial();
        flow.values.resize(f.flow(0));
        input(link, flow.values.data());
        Index l = 0;
        for (; l < network_->depth(); ++l) {
            const Index width = f.footprint(l).outputs * batch_;
            if (width == 0) break;
            depth.advance({l, l + 1}, flow);
            Index t = 0;
            while (t < at.steps && finite(flow.values.data() + t * width, width)) ++t;
            step = at.first + t;
            if (t < at.steps) break;
        }
        where = "layer '" + network_->layer(l).name() + "'";
        if (l + 1 == network_->depth()) {  // its inputs are finite: its targets, weights or sum are not
            Buffer<Real> losses(at.steps * batch_, Kind::workspace, *ledger_);
            f.at.losses = losses.data();
            typename DepthChain<Real>::Tape tape;
            depth.record({l, l + 1}, flow, tape);
            Index t = 0;
            const auto sound = [&](Index row) {
                return finite(losses.data() + row * batch_, batch_) && (!at.weights || finite(at.weights + row * batch_, batch_));
            };
            while (t + 1 < at.steps && sound(t)) ++t;
            step = at.first + t;
        }
    }
    throw NumericError("the loss of steps " + std::to_string(at.first) + " to " + std::to_string(at.first + at.steps - 1) + " (link " +
                       std::to_string(link) + ") is " + std::to_string(loss) + "; the first number that is not finite is at step " +
                       std::to_string(step) + " in " + where + "; nothing was reversed there and no parameter changed");
}

template <class Real>
void TimeChain<Real>::seed(const State&, Adjoint& a) {
    if (a.carry.empty()) a.carry.swap(block_);
    if (end_)
        a = *end_;
    else if (a.carry.empty())
        a = zero_adjoint();
    else
        a.carry.fill(Real{0});
}

/// The adjoint takes the memory of the last state; that one has what no tape has taken (a killed sweep's, which is lost).
template <class Real>
void TimeChain<Real>::spend(State& x, Adjoint& a) {
    if (memories_.layout().carry_alone && a.carry.empty()) a.carry.swap(x.carry), x.carry.swap(block_);
    seed(x, a);
}

template <class Real>
void TimeChain<Real>::reuse(Adjoint& a) {
    if (!memories_.layout().carry_alone) return;
    if (block_.empty()) block_.swap(a.carry);
    a.carry.release();  // where the last sweep's tapes had memory enough
}

template <class Real>
void TimeChain<Real>::reverse(Range r, State& x, Tape& tape, Adjoint& a) {
    if (!gradients_ && network_->parameters().size() > 0) throw InvalidArgument("reverse adds to the gradients, but none were given; call add_to() first");
    DepthFrame<Real> f = frame(r.first, tape.carry.data(), nullptr, tape.values.data());
    memories_.spread(f.at.steps, a.carry.data());
    f.dmemory = memories_.drows();
    f.gradients = gradients_;
    f.dcarry = a.carry.data();
    if (const Index row = network_->outputs() * batch_; row > 0) {
        if (!window_.output_gradient)
            throw InvalidArgument("reverse of a part of a network reads the adjoint of its outputs, but none was given; call pull()");
        std::copy_n(window_.output_gradient + r.first * chunk_ * row, f.at.steps * row,
                    array(program_.output_gradient, rest_of(tape)));
    }
    run(program_.reverse, f, r.first, rest_of(tape));
    memories_.collect(a.carry.data());
    if (r.first > 0 && !window_.factors.empty()) {
        const auto factor = static_cast<Real>(window_.factors[static_cast<std::size_t>(r.first - 1)]);
        for (Real& v : a.carry.span()) v *= factor;
    }
    if (window_.input_gradient) {
        const Index width = network_->inputs();
        std::copy_n(array(program_.input_gradient, rest_of(tape)), f.at.steps * batch_ * width,
                    window_.input_gradient + r.first * chunk_ * batch_ * width);
    }
    if (memories_.layout().carry_alone && x.carry.empty()) x.carry.swap(tape.carry);
}

static_assert(Keeps<DepthChain<float>> && Keeps<TimeChain<float>>);
template class TimeChain<float>;
template class TimeChain<double>;
template class TimeChain<Dual<double>>;
template void check_window(const Network<float>&, const Window<float>&, Index, bool);
template void check_window(const Network<double>&, const Window<double>&, Index, bool);
template void check_window(const Network<Dual<double>>&, const Window<Dual<double>>&, Index, bool);
template Index swept_steps(const Window<float>&, Index);
template Index swept_steps(const Window<double>&, Index);
template Index swept_steps(const Window<Dual<double>>&, Index);
template TimeChainSizes time_chain_sizes(const Network<float>&, Index, Index, Index, bool, const MemoryPlaces&,
                                         const DepthOptions&);
template TimeChainSizes time_chain_sizes(const Network<double>&, Index, Index, Index, bool, const MemoryPlaces&,
                                         const DepthOptions&);
template TimeChainSizes time_chain_sizes(const Network<Dual<double>>&, Index, Index, Index, bool, const MemoryPlaces&,
                                         const DepthOptions&);
template TimeChainSizes time_chain_sizes(const Network<float>&, Index, Index, Index, bool, const MemoryPlaces&,
                                         const DepthProgram&);
template TimeChainSizes time_chain_sizes(const Network<double>&, Index, Index, Index, bool, const MemoryPlaces&,
                                         const DepthProgram&);
template TimeChainSizes time_chain_sizes(const Network<Dual<double>>&, Index, Index, Index, bool, const MemoryPlaces&,
                                         const DepthProgram&);

}  // namespace backsweep
