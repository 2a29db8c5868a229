// SPDX-License-Identifier: MIT
#include "backsweep/nn/time_chain.hpp"

#include "backsweep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace backsweep {

namespace {

Index links_of(Index steps, Index chunk) { return steps < 1 ? 0 : 1 + (steps - 1) / chunk; }

/// Elements of the buffers of a time chain, from the layers' footprints alone.
struct Elements {
    Index flow = 0, workspace = 0;
    std::vector<Index> tapes;  // where each layer's tape begins behind carry and memory rows; last, the end
};

template <class Real>
Elements elements(const Network<Real>& network, Index steps, Index batch, Index area) {
    Elements e;
    e.tapes.push_back(aligned<Real>(network.carry() * batch) + area);
    for (Index l = 0; l < network.depth(); ++l) {
        const Footprint f = network.layer(l).footprint(steps, batch);
        e.flow = std::max({e.flow, f.inputs * steps * batch, f.outputs * steps * batch});
        e.workspace = std::max(e.workspace, f.workspace);
        e.tapes.push_back(e.tapes.back() + aligned<Real>(f.tape));
    }
    return e;
}

template <class Real>
bool finite(const Real* x, Index count) {
    return std::all_of(x, x + count, [](Real v) { return std::isfinite(v); });
}

}  // namespace

template <class Real>
TimeChainSizes time_chain_sizes(const Network<Real>& network, Index steps, Index batch, Index chunk, bool carried,
                                const MemoryPlaces& places) {
    const Index link = std::min(chunk, steps);
    const MemoryLayout memories = memory_layout(network, batch, link, places);
    const Elements e = elements(network, link, batch, memories.area);
    const auto bytes = [](Index count) { return count * static_cast<std::int64_t>(sizeof(Real)); };
    const Index rows = std::max(memories.area, memories.darea);
    return {bytes(memories.state),
            bytes(e.tapes.back()),
            bytes(2 * e.flow + memories.state + e.workspace + rows) + memories.seen,
            links_of(steps, chunk) * static_cast<std::int64_t>(sizeof(double)) +
                memory_log_bytes(network, batch, steps, chunk, carried, places),
            bytes(memories.between),
            bytes(memories.adjoint)};
}

template <class Real>
TimeChain<Real>::TimeChain(const Network<Real>& network, Index batch, Index chunk, Ledger& ledger, MemoryPlaces places)
    : network_(&network),
      ledger_(&ledger),
      batch_(batch),
      chunk_(chunk),
      flow_(Kind::workspace, ledger),
      spare_(Kind::workspace, ledger),
      carry_(Kind::workspace, ledger),
      workspace_(Kind::workspace, ledger),
      log_(Kind::log, ledger),
      memories_(network, batch, chunk, std::move(places), ledger) {
    if (batch < 1) throw InvalidArgument("a time chain wants at least 1 sequence, got batch " + std::to_string(batch));
    if (chunk < 1) throw InvalidArgument("a time chain wants chunks of at least 1 step, got " + std::to_string(chunk));
    carry_.resize(memories_.layout().state);
}

template <class Real>
void TimeChain<Real>::show(const Window<Real>& window) {
    if (window.steps < 1)
        throw InvalidArgument("a window has at least 1 step, got " + std::to_string(window.steps) +
                              "; is the sequence empty?");
    const bool reals = network_->spec().inputs() > 0;
    if (reals ? !window.inputs : !window.tokens)
        throw InvalidArgument(std::string("this model reads ") + (reals ? "real inputs" : "tokens") +
                              ", but the window has none");
    const bool classes = network_->spec().loss.kind == LossSpec::Kind::cross_entropy;
    if (window.loss_from < window.steps && (classes ? !window.classes : !window.values))
        throw InvalidArgument(std::string("this model's loss reads ") + (classes ? "class targets" : "value targets") +
                              ", but the window has none");
    if (window.input_gradient && !reals)
        throw InvalidArgument(
            "a model that starts with an embedding has no input gradient; leave input_gradient empty");
    if (network_->spec().learned_state() && !window.begins && !window.marks && !start_)
        throw InvalidArgument("this model's sequences start from learned states, but the window says of none that it "
                              "begins; set Window::begins or marks, or give a state to start from");
    for (Index b = 0; window.begins && window.marks && b < batch_; ++b) {
        Index t = 0;
        while (t < window.steps && window.marks[t * batch_ + b] == Mark::filler) ++t;
        if (t > 0 && t < window.steps && window.marks[t * batch_ + b] != Mark::first)
            throw InvalidArgument("all sequences begin with the window, but sequence " + std::to_string(b) + " has filler before its step " +
                                  std::to_string(t) + "; mark that step as the first");
    }
    const bool across = network_->spec().context().has_value();
    if (across && !(window.context && window.context->steps > 0 && window.context->keys))
        throw InvalidArgument("this model attends to a context, but the window has none; set Window::context with its keys");
    if (!across && window.context) throw InvalidArgument("no layer of this model attends to a context; leave Window::context empty");
    window_ = window;
    steps_ = window.steps;
    if (window.marks) {
        const auto filler = [&](Index p) { return window.marks[p] == Mark::filler; };
        Index last = window.steps * batch_;
        while (last > 0 && filler(last - 1)) --last;
        steps_ = std::max<Index>(1, (last + batch_ - 1) / batch_);
    }
    if (!window.factors.empty() && static_cast<Index>(window.factors.size()) < *length() - 1)
        throw InvalidArgument("one factor for each of the " + std::to_string(*length()) + " links but the first is wanted, got " +
                              std::to_string(window.factors.size()));
    if (*length() > 1 && !network_->spec().segmentable())
        throw InvalidArgument("a bidirectional layer or full attention is not cut in time: this window has " + std::to_string(steps_) +
                              " steps, but a link " + std::to_string(chunk_) + "; make a link as long as the window");
    const Index left_out = (window.steps - steps_) * batch_, behind = steps_ * batch_;
    if (window.losses) std::fill_n(window.losses + behind, left_out, Real{0});
    if (window.input_gradient) {
        const Index width = network_->spec().inputs();
        std::fill_n(window.input_gradient + behind * width, left_out * width, Real{0});
    }
    memories_.show(steps_, window.marks, window.key_padding, window.begins);
    Elements e = elements(*network_, std::min(chunk_, steps_), batch_, memories_.layout().area);
    tapes_ = std::move(e.tapes);
    flow_.reserve(e.flow);
    spare_.reserve(e.flow);
    workspace_.reserve(e.workspace);
    log_.assign(*length(), 0.0);
}

template <class Real>
void TimeChain<Real>::use(const Real* parameters) {
    parameters_ = parameters;
    versions_.clear();
}

template <class Real>
void TimeChain<Real>::use(std::vector<const Real*> versions) {
    if (static_cast<Index>(versions.size()) != *length())
        throw InvalidArgument("one parameter version per link is wanted: " + std::to_string(*length()) + ", got " +
                              std::to_string(versions.size()));
    versions_ = std::move(versions);
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
    const MemoryLayout& layout = memories_.layout();
    if (start_ && start_->carry.size() != layout.between)
        throw InvalidArgument("a sweep starts from a state between windows, of " + std::to_string(layout.between) +
                              " numbers for this model, but was given one of " + std::to_string(start_->carry.size()) +
                              "; take zero(), or the state that carry_over gives");
    State x{Buffer<Real>(Kind::carry, *ledger_)};
    x.carry.resize(layout.state);
    memories_.start(start_ ? start_->carry.data() : nullptr, x.carry.data());
    return x;
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
DepthFrame<Real> TimeChain<Real>::frame(Index link, const Real* carry_in, Real* area) {
    DepthFrame<Real> f;
    f.network = network_;
    f.at = segment(link);
    memories_.point(f.at, link * chunk_, f.at.steps, area);
    f.memory = memories_.rows();
    f.parameters = parameters(link);
    f.carry_in = carry_in;
    f.carry_out = carry_.data();
    f.spare = &spare_;
    f.workspace = workspace_.data();
    return f;
}

template <class Real>
typename DepthChain<Real>::State TimeChain<Real>::input(Index link, Index steps) {
    typename DepthChain<Real>::State x{std::move(flow_)};
    if (window_.inputs) {
        const Index width = network_->spec().inputs();
        x.values.resize(steps * batch_ * width);
        const Index first = link * chunk_ * batch_;
        std::copy_n(window_.inputs + first * width, x.values.size(), x.values.data());
        // What lies in a filler may be no number; layers may then treat all positions alike.
        for (Index p = 0; window_.marks && p < steps * batch_; ++p)
            if (window_.marks[first + p] == Mark::filler) std::fill_n(x.values.data() + p * width, width, Real{0});
    }
    return x;
}

template <class Real>
Index TimeChain<Real>::advance(Range r, State& x) {
    DepthChain<Real> depth;
    for (Index link = r.first; link < r.last; ++link) {
        depth.frame() = frame(link, x.carry.data(), memories_.scratch());
        memories_.load(x.carry.data());
        auto flow = input(link, depth.frame().at.steps);
        depth.advance({0, network_->carry_depth()}, flow);
        flow_ = std::move(flow.values);
        memories_.keep(depth.frame().at.steps, carry_.data());
        x.carry.swap(carry_);
    }
    return r.last;
}

template <class Real>
typename DepthChain<Real>::Tape TimeChain<Real>::tape_of(Index layer, Tape& tape) const {
    return {tape.values.data() + tapes_[static_cast<std::size_t>(layer)]};
}

template <class Real>
Real* TimeChain<Real>::area_of(Tape& tape) const {
    return tape.values.data() + aligned<Real>(network_->carry() * batch_);
}

template <class Real>
Index TimeChain<Real>::record(Range r, State& x, Tape& tape) {
    tape.values.bind(Kind::tape, *ledger_);
    tape.values.resize(tapes_.back());
    std::copy_n(x.carry.begin(), network_->carry() * batch_, tape.values.begin());
    DepthChain<Real> depth;
    depth.frame() = frame(r.first, tape.values.data(), area_of(tape));
    memories_.load(x.carry.data());
    auto flow = input(r.first, depth.frame().at.steps);
    for (Index l = 0; l < network_->depth(); ++l) {
        auto own = tape_of(l, tape);
        depth.record({l, l + 1}, flow, own);
    }
    flow_ = std::move(flow.values);
    if (!std::isfinite(log_[r.first])) not_finite(r.first, tape);
    memories_.keep(depth.frame().at.steps, carry_.data());
    x.carry.swap(carry_);
    return r.last;
}

/// Runs the link once more, layer by layer, to find where it begins.
template <class Real>
void TimeChain<Real>::not_finite(Index link, Tape& link_tape) {
    const Real* const carry_in = link_tape.values.data();
    DepthChain<Real> depth;
    depth.frame() = frame(link, carry_in, area_of(link_tape));
    const Segment<Real>& at = depth.frame().at;
    const double loss = log_[link];
    Index step = at.first;
    std::string where = "the state before it";
    if (finite(carry_in, network_->carry() * batch_)) {
        auto flow = input(link, at.steps);
        Index l = 0;
        for (; l < network_->depth(); ++l) {
            const Index width = network_->layer(l).footprint(at.steps, batch_).outputs * batch_;
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
            depth.frame().at.losses = losses.data();
            typename DepthChain<Real>::Tape tape;
            Buffer<Real> memory(tapes_[static_cast<std::size_t>(l) + 1] - tapes_[static_cast<std::size_t>(l)], Kind::workspace, *ledger_);
            tape.memory = memory.data();
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
    if (end_)
        a = *end_;
    else if (a.carry.empty())
        a = zero_adjoint();
    else
        a.carry.fill(Real{0});
}

template <class Real>
void TimeChain<Real>::reverse(Range r, State&, Tape& tape, Adjoint& a) {
    if (!gradients_) throw InvalidArgument("reverse adds to the gradients, but none were given; call add_to() first");
    DepthChain<Real> depth;
    DepthFrame<Real>& f = depth.frame();
    f = frame(r.first, tape.values.data(), area_of(tape));
    memories_.spread(f.at.steps, a.carry.data());
    f.dmemory = memories_.drows();
    f.gradients = gradients_;
    f.dcarry = a.carry.data();
    f.input_gradient = window_.input_gradient != nullptr;
    typename DepthChain<Real>::Adjoint flow{std::move(flow_)};
    for (Index l = network_->depth(); l-- > 0;) {
        auto own = tape_of(l, tape);
        depth.reverse({l, l + 1}, flow, own, flow);
    }
    flow_ = std::move(flow.values);
    memories_.collect(a.carry.data());
    if (r.first > 0 && !window_.factors.empty()) {
        const auto factor = static_cast<Real>(window_.factors[static_cast<std::size_t>(r.first - 1)]);
        for (Real& v : a.carry.span()) v *= factor;
    }
    if (f.input_gradient) {
        const Index width = network_->spec().inputs();
        std::copy_n(flow_.data(), f.at.steps * batch_ * width, window_.input_gradient + r.first * chunk_ * batch_ * width);
    }
}

static_assert(Chain<DepthChain<float>> && Chain<TimeChain<float>>);
template class TimeChain<float>;
template class TimeChain<double>;
template TimeChainSizes time_chain_sizes(const Network<float>&, Index, Index, Index, bool, const MemoryPlaces&);
template TimeChainSizes time_chain_sizes(const Network<double>&, Index, Index, Index, bool, const MemoryPlaces&);

}  // namespace backsweep
