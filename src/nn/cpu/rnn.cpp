// One layer of a plain recurrent network, h' = act(W x + b_ih + U h + b_hh), act = tanh or relu: one product with the
// inputs of the whole segment, then one with h per step.
// No tape: h is y.
// SPDX-License-Identifier: MIT
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/cpu/multiply.hpp"
#include "nn/cpu/recurrent_product.hpp"
#include "nn/state_marks.hpp"

#include <algorithm>

namespace backsweep::cpu {
namespace {

template <class Real>
class Rnn final : public RecurrentLayer<Real> {
public:
    explicit Rnn(const RecurrentPart& part)
        : RecurrentLayer<Real>(part),
          inputs_(part.inputs()),
          hidden_(part.spec.hidden),
          relu_(part.spec.cell == RecurrentSpec::Cell::rnn_relu),
          bias_(part.spec.bias),
          learned_state_(part.spec.learned_state),
          product_(part.spec, part.spec.hidden) {}

    // Workspace of forward: sum of biases; of reverse: adjoints of the sums, h before the steps, sum for biases.
    Footprint footprint(Index steps, Index batch) const override {
        const Index positions = steps * batch;
        return {inputs_, hidden_, hidden_, 0, hidden_ * (2 * positions + 1), true, true};
    }

    Index prepared() const override { return product_.prepared(); }
    void prepare(const Real* parameters, Real* prepared) const override {
        product_.prepare(parts(parameters).U, prepared);
    }

    void advance(const Forward<Real>& call) const override { run(call); }
    void record(const Forward<Real>& call) const override { run(call); }

    // ds = (dy + dh) act'(s), dh_before = U' ds;  dW += ds x', dU += ds h_before', db += sum of ds, dx = W' ds
    void reverse(const Backward<Real>& call) const override {
        const Index T = call.at.steps, B = call.at.batch, H = hidden_, positions = T * B, state = B * H;
        const Parts<const Real> w = parts(call.parameters);
        const Parts<Real> d = parts(call.gradients);
        Real* const ds = call.workspace;
        Real* const room = ds + positions * H;
        Real* const dh = call.dcarry;

        const Real* const before = states_before(call.at, {0, T}, H, call.carry_in, w.h0, call.y, room);
        const auto reverse_cells = relu_ ? rnn_relu_reverse<Real> : rnn_tanh_reverse<Real>;
        for (Index t = T; t-- > 0;) {
            for (Index b = 0; b < B; ++b) {
                const Index p = (t * B + b) * H;
                if (!call.at.filler(t, b)) reverse_cells(H, call.y + p, call.dy + p, dh + b * H, ds + p);
            }
            clear_fillers(call.at, t, H, ds + t * state);
            product_.reverse(B, w.U, call.prepared, ds + t * state, H, Real{1}, dh);
            start_states_reverse(call.at, t, H, d.h0, dh);
        }

        add_outer(H, inputs_, positions, ds, call.x, d.W);
        product_.gradient(positions, before, ds, H, d.U);
        if (bias_) {
            Real* const sum = room + positions * H;
            sum_columns(H, positions, ds, H, sum);
            add(H, sum, d.b_ih);
            add(H, sum, d.b_hh);
        }
        if (call.dx) apply_transposed(H, inputs_, positions, w.W, ds, Real{0}, call.dx);
    }

private:
    template <class Number>
    struct Parts {
        Number *W, *U, *b_ih, *b_hh, *h0;  // h0 is null where sequences start from 0
    };
    template <class Number>
    Parts<Number> parts(Number* p) const noexcept {
        Number* const U = p + hidden_ * inputs_;
        Number* const b = U + product_.size();
        return {p, U, b, b + hidden_, learned_state_ ? b + (bias_ ? 2 * hidden_ : 0) : nullptr};
    }

    /// Sums and then h are made in y; the state lives in carry_out.
    void run(const Forward<Real>& call) const {
        const Index T = call.at.steps, B = call.at.batch, H = hidden_, positions = T * B, state = B * H;
        const Parts<const Real> w = parts(call.parameters);
        Real* const bias = call.workspace;

        std::fill_n(bias, H, Real{0});
        if (bias_) {
            add(H, w.b_ih, bias);
            add(H, w.b_hh, bias);
        }
        apply(H, inputs_, positions, w.W, call.x, bias, call.y, H);

        Real* const h = call.carry_out;
        std::copy_n(call.carry_in, state, h);
        for (Index t = 0; t < T; ++t) {
            Real* const y = call.y + t * state;
            start_states(call.at, t, H, w.h0, h);
            product_.forward(B, w.U, call.prepared, h, Real{1}, y, H);
            relu_ ? relu(state, y) : tanh(state, y);
            hold_states(call.at, t, H, h, y);
            std::copy_n(y, state, h);
            clear_fillers(call.at, t, H, y);
        }
    }

    Index inputs_, hidden_;
    bool relu_, bias_, learned_state_;
    RecurrentProduct<Real> product_;
};

}  // namespace

template <class Real>
LayerPointer<Real> rnn(const RecurrentPart& part) {
    return std::make_unique<Rnn<Real>>(part);
}

template LayerPointer<float> rnn(const RecurrentPart&);
template LayerPointer<double> rnn(const RecurrentPart&);
template LayerPointer<Dual<double>> rnn(const RecurrentPart&);

}  // namespace backsweep::cpu
