// The depth axis: a chain whose link is one layer over one segment, and whose state is the activations between layers.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"
#include "backsweep/base/error.hpp"
#include "backsweep/nn/network.hpp"
#include "backsweep/store/blob.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace backsweep {

/// What every link of one segment reads and writes, and the calls of its layers. `carry_*` are whole state blocks, the
/// caller's as all arrays. carry_out may be carry_in, or null where nothing reads it; `spare` then has room for the
/// carry of one layer (Network::layer_carry()).
template <class Real>
struct DepthFrame {
    const Network<Real>* network = nullptr;
    Segment<Real> at{};
    const Real* parameters = nullptr;  ///< flat
    const Real* prepared = nullptr;    ///< Network::prepare of them; null: layers do without
    Real* gradients = nullptr;         ///< flat, added to
    const Real* carry_in = nullptr;
    Real* carry_out = nullptr;  ///< assigned by advance and record, layer by layer
    Real* spare = nullptr;
    Real* dcarry = nullptr;          ///< reverse: in place, layer by layer
    Real* const* memory = nullptr;   ///< rows of every memory of the network, as Forward::memory; null: it has none
    Real* const* dmemory = nullptr;  ///< their adjoints
    Real* workspace = nullptr;

    Footprint footprint(Index l) const { return network->layer(l).footprint(at.steps, at.batch); }
    /// Elements of the input of layer l, the output of the one below.
    Index flow(Index l) const { return footprint(l).inputs * at.steps * at.batch; }

    void advance(Index l, const Real* x, Real* y) const { network->layer(l).advance(forward(l, x, y, nullptr)); }
    void record(Index l, const Real* x, Real* y, Real* tape) const { network->layer(l).record(forward(l, x, y, tape)); }
    void reverse(Index l, const Real* x, const Real* y, const Real* tape, const Real* dy, Real* dx) const {
        const Index offset = network->parameter_offset(l), carry = network->carry_offset(l, at.batch);
        network->layer(l).reverse({at, parameters + offset, gradients + offset, tape, carry_in + carry, dy, dx,
                                   dcarry + carry, workspace, tied(parameters, l), tied(gradients, l), first(memory, l),
                                   first(dmemory, l), x, y, prepared_of(l)});
    }

    /// Where layer l leaves its carry.
    Real* carry_after(Index l) const { return carry_out ? carry_out + network->carry_offset(l, at.batch) : spare; }

private:
    Forward<Real> forward(Index l, const Real* x, Real* y, Real* tape) const {
        const Real* before = carry_in + network->carry_offset(l, at.batch);
        if (carry_in == carry_out) {
            const Index size = network->carry_offset(l + 1, at.batch) - network->carry_offset(l, at.batch);
            before = std::copy_n(before, size, spare) - size;
        }
        return {at,
                parameters + network->parameter_offset(l),
                x,
                y,
                before,
                carry_after(l),
                tape,
                workspace,
                tied(parameters, l),
                first(memory, l),
                prepared_of(l)};
    }
    const Real* prepared_of(Index l) const { return prepared ? prepared + network->prepared_offset(l) : nullptr; }
    /// The parameter, or its gradients, of an earlier layer that layer l reads too; null: none.
    template <class T>
    T* tied(T* flat, Index l) const {
        const Index offset = network->tied_offset(l);
        return offset < 0 ? nullptr : flat + offset;
    }
    /// Layer l's first of the network's memories, or of their adjoints.
    Real* const* first(Real* const* all, Index l) const { return all ? all + network->memory_offset(l) : nullptr; }
};

/// Chain over the layers of `frame().network` by one segment; the loss is the last link. A state is the input of a
/// layer [step][batch][feature]. Over a whole window it is the depth-outer order, the only one for models that cannot
/// be cut in time; a time chain plays schedules over its layers by a DepthProgram, whose specification this chain is.
template <class Real>
class DepthChain {
public:
    struct State {
        Buffer<Real> values;
        void rebook(Kind kind) noexcept { values.rebook(kind); }
        friend void swap(State& a, State& b) noexcept { a.values.swap(b.values); }
        friend std::vector<Blob> blobs(State& x) { return backsweep::blobs(x.values); }
        friend std::span<Real> values(State& x) { return x.values.span(); }
    };
    /// A layer's tape, its input and output where its reverse reads them; with frame `restarts` every output.
    struct Tape {
        Buffer<Real> own, x, y;
        friend void swap(Tape& a, Tape& b) noexcept {
            a.own.swap(b.own);
            a.x.swap(b.x);
            a.y.swap(b.y);
        }
    };
    using Adjoint = State;

    explicit DepthChain(Ledger& ledger = Ledger::process()) : ledger_(&ledger), spare_(Kind::workspace, ledger) {}

    DepthFrame<Real>& frame() noexcept { return frame_; }
    /// [step][batch][inputs] that initial() copies; null: the caller hands x_0 over, or the first layer reads tokens.
    void start_from(const Real* input) noexcept { input_ = input; }
    /// The first layer's dx is wanted: it is the adjoint that the sweep ends with.
    void want_input_gradient(bool wanted) noexcept { input_gradient_ = wanted; }
    /// Tapes keep their layer's output, for schedules that take states out of them (Verb::restart).
    void keep_outputs(bool kept) noexcept { outputs_ = kept; }

    std::optional<Index> length() const { return frame_.network->depth(); }
    State initial() const {
        State x{Buffer<Real>(Kind::carry, *ledger_)};
        if (input_) {
            x.values.resize(frame_.flow(0));
            std::copy_n(input_, x.values.size(), x.values.data());
        }
        return x;
    }
    /// A state with room for what lies before link l.
    void shape(Index l, State& x) const {
        x.values.bind(Kind::carry, *ledger_);
        x.values.resize(frame_.flow(l));
    }

    Index advance(Range r, State& x) {
        for (Index l = r.first; l < r.last; ++l) {
            output(l);
            frame_.advance(l, x.values.data(), spare_.data());
            x.values.swap(spare_);
        }
        return r.last;
    }

    Index record(Range r, State& x, Tape& tape) {
        output(r.first);
        make(r.first, x, spare_.data(), tape);
        x.values.swap(spare_);
        return r.last;
    }

    void keep(Range r, State& x, Tape& tape) {
        const bool wanted = outputs_ || frame_.footprint(r.first).reads_y;
        if (wanted) output(r.first);
        make(r.first, x, wanted ? spare_.data() : nullptr, tape);
    }

    /// Throws ScheduleError without keep_outputs(true).
    void restart(Tape& tape, State& x) {
        if (!outputs_)
            throw ScheduleError(
                "this schedule takes states out of tapes, but the tapes of this depth chain do not keep them; call "
                "keep_outputs(true)");
        x.values = tape.y;
    }

    /// The loss is the last link: it makes its own adjoint.
    void seed(const State&, Adjoint&) {}

    void reverse(Range r, State&, Tape& tape, Adjoint& a) {
        const Index l = r.first;
        const Footprint size = frame_.footprint(l);
        const bool wanted = size.inputs > 0 && (l > 0 || input_gradient_);
        if (wanted) spare_.resize(frame_.flow(l));
        frame_.reverse(l, size.reads_x ? tape.x.data() : nullptr, size.reads_y ? tape.y.data() : nullptr,
                       tape.own.data(), size.outputs > 0 ? a.values.data() : nullptr, wanted ? spare_.data() : nullptr);
        if (wanted) a.values.swap(spare_);
    }

private:
    void output(Index l) { spare_.resize(frame_.footprint(l).outputs * frame_.at.steps * frame_.at.batch); }

    void make(Index l, const State& x, Real* y, Tape& tape) {
        const Footprint size = frame_.footprint(l);
        for (Buffer<Real>* part : {&tape.own, &tape.x, &tape.y}) part->bind(Kind::tape, *ledger_);
        tape.own.resize(size.tape);
        frame_.record(l, x.values.data(), y, tape.own.data());
        if (size.reads_x) tape.x = x.values;
        if (y && (outputs_ || size.reads_y)) tape.y = spare_;
    }

    DepthFrame<Real> frame_{};
    const Real* input_ = nullptr;
    bool input_gradient_ = false, outputs_ = false;
    Ledger* ledger_;
    Buffer<Real> spare_;
};

}  // namespace backsweep
