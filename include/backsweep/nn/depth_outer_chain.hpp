// Depth-outer with time inside: a chain whose link is one layer over a whole window, swept in chunks of time under a
// schedule of its own. The other nesting, layers inside of time links, is the time chain's.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/time_chain.hpp"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace backsweep {

/// A state is the input of a layer over the whole window, [step][batch][feature]; the tape of a layer is its input and
/// its sweep along time, resting at the turn. Calls of layers are those of a TimeChain with the same chunk, in another
/// order, so the bits are the same, but for what two layers add to: a shared parameter's gradient, a context's dkeys
/// and dvalues. (And where memories of several lengths end in hidden rows, of which a shorter one may then get fewer:
/// equal to rounding.) The caller's network, parameters, gradients and window must outlive it. One thread at a time.
template <class Real>
class DepthOuterChain {
public:
    using State = typename DepthChain<Real>::State;
    using Adjoint = State;
    class Sweep;
    struct Tape {
        Tape();
        Tape(Tape&&) noexcept;
        Tape& operator=(Tape&&) noexcept;
        ~Tape();
        std::unique_ptr<Sweep> sweep;  ///< null: there is none
        Buffer<Real> y;                ///< the output, with keep_outputs
    };

    /// `time`: of every layer's sweep; its `steps` are set by show, which throws InvalidArgument with time.problem().
    /// Closed families in RAM. Throws InvalidArgument if batch or chunk is below 1, or for a part of a network without
    /// its loss.
    DepthOuterChain(const Network<Real>& network, Index batch, Index chunk, ScheduleOptions time,
                    Ledger& ledger = Ledger::process());
    ~DepthOuterChain();
    DepthOuterChain(DepthOuterChain&&) = delete;
    DepthOuterChain& operator=(DepthOuterChain&&) = delete;

    /// As TimeChain's of the same names; arrays of the window are the whole network's.
    void show(const Window<Real>& window);
    void use(const Real* parameters) { parameters_ = parameters; }
    void add_to(Real* gradients) { gradients_ = gradients; }
    void start_from(const Real* between) { start_ = between; }
    void end_with(const Real* adjoint) { end_ = adjoint; }
    /// Tapes keep their layer's output, for schedules that take states out of them (Verb::restart).
    void keep_outputs(bool kept) noexcept { outputs_ = kept; }

    /// Blocks as Network::state() and adjoint(): the state between windows behind the window, once a forward sweep is
    /// done, and the adjoint of the state before it, once all layers are reversed.
    std::span<const Real> carried() const noexcept { return carried_.span(); }
    std::span<const Real> first_adjoint() const noexcept { return first_adjoint_.span(); }
    /// Of the links along time that the loss has recorded so far: of all, once it is reversed.
    double loss() const noexcept { return loss_; }
    std::span<const double> losses() const noexcept { return losses_; }
    /// What the sweeps along time have done since show().
    const Counts& counts() const noexcept { return counts_; }

    std::optional<Index> length() const { return network_->depth(); }
    State initial() const;
    void shape(Index l, State& x) const;
    Index advance(Range r, State& x);
    Index record(Range r, State& x, Tape& tape);
    /// Throws ScheduleError without keep_outputs(true).
    void restart(Tape& tape, State& x);
    /// The loss is the last link: it makes its own adjoint.
    void seed(const State&, Adjoint&) {}
    void reverse(Range r, State& x, Tape& tape, Adjoint& a);

private:
    State room(Index features) const;
    /// Copies a layer's part of a block of the whole network, or the part into the block.
    void exchange(Index layer, const Network<Real>& own, bool adjoint, bool out, Real* whole, Real* part) const;
    void finish(Index layer, Sweep& sweep);
    void read_losses(const Sweep& sweep);

    const Network<Real>* network_;
    Ledger* ledger_;
    Index batch_, chunk_;
    ScheduleOptions time_;
    Window<Real> window_{};
    const Real* parameters_ = nullptr;
    Real* gradients_ = nullptr;
    const Real *start_ = nullptr, *end_ = nullptr;
    bool outputs_ = false;
    Buffer<Real> carried_, first_adjoint_;
    double loss_ = 0.0;
    std::vector<double> losses_;
    Counts counts_;
};

}  // namespace backsweep
