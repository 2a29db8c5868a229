// SPDX-License-Identifier: MIT
#include "backsweep/nn/depth_outer_chain.hpp"

#include "backsweep/base/error.hpp"

#include <algorithm>
#include <string>

namespace backsweep {

/// A layer over the window: its input, the chain along time over it, and where that chain's sweep stands.
template <class Real>
class DepthOuterChain<Real>::Sweep {
public:
    Sweep(const DepthOuterChain& of, Index layer, const ScheduleOptions& schedule)
        : part(of.network_->part({layer, layer + 1})),
          chain(part, of.batch_, of.chunk_, *of.ledger_),
          run(chain, make_schedule(schedule)),
          x(Kind::tape, *of.ledger_) {}

    Network<Real> part;
    TimeChain<Real> chain;
    Execution<TimeChain<Real>> run;
    Buffer<Real> x;
    typename TimeChain<Real>::State start{};

    /// From the input at `from` into y.
    void forward(const DepthOuterChain& of, Index layer, const Real* from, Real* y) {
        Window<Real> window = of.window_;
        if (part.inputs() > 0) window.inputs = from;
        window.outputs = y;
        window.input_gradient = nullptr;
        if (of.start_) {
            start = chain.zero();
            of.exchange(layer, part, false, false, const_cast<Real*>(of.start_), start.carry.data());
            chain.start_from(start);
        }
        chain.show(window);
        chain.use(of.parameters_);
        chain.add_to(of.gradients_);
        run.forward();
    }
};

template <class Real>
DepthOuterChain<Real>::Tape::Tape() = default;
template <class Real>
DepthOuterChain<Real>::Tape::Tape(Tape&&) noexcept = default;
template <class Real>
typename DepthOuterChain<Real>::Tape& DepthOuterChain<Real>::Tape::operator=(Tape&&) noexcept = default;
template <class Real>
DepthOuterChain<Real>::Tape::~Tape() = default;

template <class Real>
DepthOuterChain<Real>::DepthOuterChain(const Network<Real>& network, Index batch, Index chunk, ScheduleOptions time,
                                       Ledger& ledger)
    : network_(&network),
      ledger_(&ledger),
      batch_(batch),
      chunk_(chunk),
      time_(std::move(time)),
      carried_(Kind::carry, ledger),
      first_adjoint_(Kind::carry, ledger) {
    if (batch < 1)
        throw InvalidArgument("a depth-outer chain wants at least 1 sequence, got batch " + std::to_string(batch));
    if (chunk < 1)
        throw InvalidArgument("a depth-outer chain wants chunks of at least 1 step, got " + std::to_string(chunk));
    if (network.outputs() > 0)
        throw InvalidArgument("a depth-outer chain ends with a loss, but this part of a network has none");
    if (is_open_ended(time_.family))
        throw InvalidArgument(
            "the sweeps along time of a depth-outer chain know their length; take a closed family in the place of " +
            time_.family);
}

template <class Real>
DepthOuterChain<Real>::~DepthOuterChain() = default;

template <class Real>
void DepthOuterChain<Real>::show(const Window<Real>& window) {
    check_window(*network_, window, batch_, start_ != nullptr);
    window_ = window;
    time_.steps = (swept_steps(window, batch_) + chunk_ - 1) / chunk_;
    if (const std::string problem = time_.problem(); !problem.empty()) throw InvalidArgument(problem);
    carried_.assign(network_->state() * batch_, Real{0});
    first_adjoint_.assign(network_->adjoint() * batch_, Real{0});
    if (window.input_gradient) std::fill_n(window.input_gradient, network_->inputs() * window.steps * batch_, Real{0});
    losses_.clear();
    loss_ = 0.0;
    counts_ = {};
}

template <class Real>
typename DepthOuterChain<Real>::State DepthOuterChain<Real>::room(Index features) const {
    State x{Buffer<Real>(Kind::carry, *ledger_)};
    x.values.resize(features * window_.steps * batch_);
    return x;
}

template <class Real>
typename DepthOuterChain<Real>::State DepthOuterChain<Real>::initial() const {
    State x = room(network_->inputs());
    if (window_.inputs) std::copy_n(window_.inputs, x.values.size(), x.values.data());
    return x;
}

template <class Real>
void DepthOuterChain<Real>::shape(Index l, State& x) const {
    x.values.bind(Kind::carry, *ledger_);
    x.values.resize(network_->layer(l).footprint(1, 1).inputs * window_.steps * batch_);
}

template <class Real>
void DepthOuterChain<Real>::exchange(Index layer, const Network<Real>& own, bool adjoint, bool out, Real* whole,
                                     Real* part) const {
    const auto copy = [&](Index in_whole, Index in_part, Index count) {
        if (out)
            std::copy_n(part + in_part, count, whole + in_whole);
        else
            std::copy_n(whole + in_whole, count, part + in_part);
    };
    copy(network_->carry_offset(layer, batch_), 0, own.carry() * batch_);
    const MemoryLayout of_whole = memory_layout(*network_, batch_, 1, {}), of_part = memory_layout(own, batch_, 1, {});
    for (std::size_t m = 0; m < own.memories().size(); ++m) {
        const std::size_t at = static_cast<std::size_t>(network_->memory_offset(layer)) + m;
        const MemoryShape& shape = own.memories()[m];
        if (adjoint && !shape.gradient) continue;
        copy(adjoint ? of_whole.in_adjoint[at] : of_whole.in_between[at],
             adjoint ? of_part.in_adjoint[m] : of_part.in_between[m], shape.rows * shape.features * batch_);
    }
    const Index flags = own.remembered() * batch_;  // which of the last rows are keys
    if (!adjoint) copy(of_whole.between - flags, of_part.between - flags, flags);
}

template <class Real>
void DepthOuterChain<Real>::finish(Index layer, Sweep& sweep) {
    counts_ += sweep.run.counts();
    typename TimeChain<Real>::State end;
    sweep.chain.carry_over(*sweep.chain.length(), sweep.run.state(), end);
    exchange(layer, sweep.part, false, true, carried_.data(), end.carry.data());
    read_losses(sweep);
}

template <class Real>
void DepthOuterChain<Real>::read_losses(const Sweep& sweep) {
    if (sweep.part.outputs() > 0) return;
    loss_ = sweep.chain.loss();
    losses_.assign(sweep.chain.losses().begin(), sweep.chain.losses().end());
}

template <class Real>
Index DepthOuterChain<Real>::advance(Range r, State& x) {
    ScheduleOptions forward{.family = "forward_only", .steps = time_.steps, .loss = false};
    for (Index l = r.first; l < r.last; ++l) {
        Sweep sweep(*this, l, forward);
        State y = room(sweep.part.outputs());
        sweep.forward(*this, l, x.values.data(), y.values.data());
        finish(l, sweep);
        x.values.swap(y.values);
    }
    return r.last;
}

template <class Real>
Index DepthOuterChain<Real>::record(Range r, State& x, Tape& tape) {
    tape.sweep = std::make_unique<Sweep>(*this, r.first, time_);
    Sweep& sweep = *tape.sweep;
    State y = room(sweep.part.outputs());
    sweep.x.swap(x.values);
    sweep.forward(*this, r.first, sweep.x.data(), y.values.data());
    finish(r.first, sweep);
    if (outputs_) {
        tape.y.bind(Kind::tape, *ledger_);
        tape.y = y.values;
    }
    x.values.swap(y.values);
    return r.last;
}

template <class Real>
void DepthOuterChain<Real>::restart(Tape& tape, State& x) {
    if (!outputs_)
        throw ScheduleError(
            "this schedule takes states out of tapes, but the tapes of this depth-outer chain do not keep them; call "
            "keep_outputs(true)");
    x.values = tape.y;
}

template <class Real>
void DepthOuterChain<Real>::reverse(Range r, State&, Tape& tape, Adjoint& a) {
    const Index l = r.first;
    Sweep& sweep = *tape.sweep;
    const bool wanted = sweep.part.inputs() > 0 && (l > 0 || window_.input_gradient);
    State dx = room(wanted && l > 0 ? sweep.part.inputs() : 0);
    sweep.chain.pull(a.values.data(), !wanted ? nullptr : l > 0 ? dx.values.data() : window_.input_gradient);
    if (end_) {
        typename TimeChain<Real>::Adjoint end = sweep.chain.zero_adjoint();
        exchange(l, sweep.part, true, false, const_cast<Real*>(end_), end.carry.data());
        sweep.chain.end_with(std::move(end));
    }
    const Counts before = sweep.run.counts();
    sweep.run.backward();
    Counts after = sweep.run.counts();
    after.advances -= before.advances, after.recorded -= before.recorded, after.saves -= before.saves,
        after.loads -= before.loads;
    after.stows -= before.stows, after.fetches -= before.fetches;
    counts_ += after;
    exchange(l, sweep.part, true, true, first_adjoint_.data(), sweep.run.adjoint().carry.data());
    read_losses(sweep);
    tape.sweep.reset();
    tape.y.release();
    a.values.swap(dx.values);
}

static_assert(Chain<DepthOuterChain<float>>);
template class DepthOuterChain<float>;
template class DepthOuterChain<double>;

}  // namespace backsweep
