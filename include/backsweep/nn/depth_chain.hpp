// The depth axis: a chain whose link is one layer over one segment, and whose state is the activations between layers.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"
#include "backsweep/nn/network.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace backsweep {

/// What every link of one segment reads and writes. Owned by the time chain; `carry_*` are whole state blocks.
template <class Real>
struct DepthFrame {
    const Network<Real>* network = nullptr;
    Segment<Real> at{};
    const Real* parameters = nullptr;  ///< flat
    Real* gradients = nullptr;         ///< flat, added to
    const Real* carry_in = nullptr;
    Real* carry_out = nullptr;         ///< assigned by record, layer by layer
    Real* dcarry = nullptr;            ///< reverse: in place, layer by layer
    Real* const* memory = nullptr;     ///< rows of every memory of the network, as Forward::memory; null: it has none
    Real* const* dmemory = nullptr;    ///< their adjoints
    Buffer<Real>* spare = nullptr;     ///< a second activation buffer
    Real* workspace = nullptr;
    bool input_gradient = false;       ///< the first layer's dx is wanted: it stays in the adjoint
    const Real* input = nullptr;       ///< [step][batch][inputs] that initial() copies; null: the caller hands it over
};

/// Chain over the layers of `frame().network`. The state, activations [step][batch][feature], is consumed layer by layer.
/// Inside a time chain it plays over memory of that chain's; by itself, over a whole window, it is the depth-outer order,
/// the only one for models that cannot be cut in time (bidirectional layers).
template <class Real>
class DepthChain {
public:
    struct State {
        Buffer<Real> values;
        friend void swap(State& a, State& b) noexcept { a.values.swap(b.values); }
    };
    /// A layer's tape: in memory of the caller, with room for the layer's Footprint::tape, or, if that is null, its own.
    struct Tape {
        Real* memory = nullptr;
        Buffer<Real> values{};
        friend void swap(Tape& a, Tape& b) noexcept {
            std::swap(a.memory, b.memory);
            a.values.swap(b.values);
        }
    };
    using Adjoint = State;

    DepthFrame<Real>& frame() noexcept { return frame_; }

    std::optional<Index> length() const { return frame_.network->depth(); }
    /// The first layer's input: a copy of frame().input.
    State initial() const {
        State x{Buffer<Real>(Kind::carry)};
        if (frame_.input) {
            x.values.resize(footprint(0).inputs * frame_.at.steps * frame_.at.batch);
            std::copy_n(frame_.input, x.values.size(), x.values.data());
        }
        return x;
    }

    Index advance(Range r, State& x) {
        for (Index l = r.first; l < r.last; ++l) pass(l, x, nullptr, &Layer<Real>::advance);
        return r.last;
    }

    Index record(Range r, State& x, Tape& tape) {
        if (!tape.memory) {
            tape.values.bind(Kind::tape, Ledger::process());
            tape.values.resize(footprint(r.first).tape);
        }
        pass(r.first, x, memory_of(tape), &Layer<Real>::record);
        return r.last;
    }

    /// The loss is the last link: it makes its own adjoint.
    void seed(const State&, Adjoint&) {}

    void reverse(Range r, State&, Tape& tape, Adjoint& a) {
        const Index l = r.first;
        const DepthFrame<Real>& f = frame_;
        const Footprint size = footprint(l);
        const Layer<Real>& layer = f.network->layer(l);
        const Index parameters = f.network->parameter_offset(l), carry = f.network->carry_offset(l, f.at.batch);
        const bool wanted = size.inputs > 0 && (l > 0 || f.input_gradient);
        if (wanted) f.spare->resize(size.inputs * f.at.steps * f.at.batch);
        layer.reverse({f.at, f.parameters + parameters, f.gradients + parameters, memory_of(tape), f.carry_in + carry,
                       size.outputs > 0 ? a.values.data() : nullptr, wanted ? f.spare->data() : nullptr, f.dcarry + carry, f.workspace,
                       tied(f.parameters, l), tied(f.gradients, l), memory(f.memory, l), memory(f.dmemory, l)});
        if (wanted) a.values.swap(*f.spare);
    }

private:
    static Real* memory_of(Tape& tape) { return tape.memory ? tape.memory : tape.values.data(); }

    /// The parameter, or its gradients, of an earlier layer that layer l reads too; null: none.
    template <class T>
    T* tied(T* flat, Index l) const {
        const Index offset = frame_.network->tied_offset(l);
        return offset < 0 ? nullptr : flat + offset;
    }

    /// Layer l's first of the network's memories, or of their adjoints.
    Real* const* memory(Real* const* all, Index l) const { return all ? all + frame_.network->memory_offset(l) : nullptr; }

    Footprint footprint(Index l) const { return frame_.network->layer(l).footprint(frame_.at.steps, frame_.at.batch); }

    /// One layer forward, by `advance` or `record`; a tape of no elements is null.
    void pass(Index l, State& x, Real* tape, void (Layer<Real>::*method)(const Forward<Real>&) const) {
        const DepthFrame<Real>& f = frame_;
        const Footprint size = footprint(l);
        const Layer<Real>& layer = f.network->layer(l);
        const Index carry = f.network->carry_offset(l, f.at.batch);
        f.spare->resize(size.outputs * f.at.steps * f.at.batch);
        (layer.*method)({f.at, f.parameters + f.network->parameter_offset(l), x.values.data(), f.spare->data(), f.carry_in + carry,
                         f.carry_out + carry, tape, f.workspace, tied(f.parameters, l), memory(f.memory, l)});
        x.values.swap(*f.spare);
    }

    DepthFrame<Real> frame_{};
};

}  // namespace backsweep
