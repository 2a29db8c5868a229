// One layer of a plain recurrent network by plain loops, act = tanh or relu (derivative 0 at 0):
//   h' = act(W x + b_ih + U h + b_hh), U block-diagonal over the heads
// A sequence starts from h = 0, or the parameter h0; a filler holds h and gives y = 0.
// Tape, a position: h before the step; h' is y.
// SPDX-License-Identifier: MIT
#include "nn/described_layer.hpp"
#include "nn/reference/layers.hpp"

#include <cmath>
#include <vector>

namespace backsweep::reference {
namespace {

using std::tanh;  // Dual has its own

template <class Real>
class Rnn final : public RecurrentLayer<Real> {
public:
    explicit Rnn(const RecurrentPart& part)
        : RecurrentLayer<Real>(part),
          I(part.inputs()),
          H(part.spec.hidden),
          S(part.spec.hidden / part.spec.heads),
          relu_(part.spec.cell == RecurrentSpec::Cell::rnn_relu),
          bias_(part.spec.bias),
          learned_state_(part.spec.learned_state) {}

    Footprint footprint(Index steps, Index batch) const override {
        return {I, H, H, steps * batch * H, 0, true, true};
    }

    void advance(const Forward<Real>& call) const override { run(call, nullptr); }
    void record(const Forward<Real>& call) const override { run(call, call.tape); }

    void reverse(const Backward<Real>& call) const override {
        const Index B = call.at.batch;
        const Weights<const Real> w = weights(call.parameters);
        const Weights<Real> d = weights(call.gradients);
        std::vector<Real> dz(static_cast<std::size_t>(H));
        for (Index p = call.at.steps * B - 1; p >= 0; --p) {
            const Real* const x = call.x + p * I;
            const Real* const h = call.tape + p * H;
            const Real* const h_next = call.y + p * H;
            Real* const dh = call.dcarry + (p % B) * H;
            if (call.dx)
                for (Index j = 0; j < I; ++j) call.dx[p * I + j] = 0;
            if (call.at.filler(p / B, p % B)) continue;
            for (Index k = 0; k < H; ++k) {
                const Real slope = relu_ ? (h_next[k] > 0 ? Real{1} : Real{0}) : 1 - h_next[k] * h_next[k];
                dz[static_cast<std::size_t>(k)] = (dh[k] + call.dy[p * H + k]) * slope;
                dh[k] = 0;
            }
            for (Index r = 0; r < H; ++r) {
                const Real dz_r = dz[static_cast<std::size_t>(r)];
                const Index head = r / S * S;  // its first unit
                for (Index j = 0; j < I; ++j) d.W[r * I + j] += dz_r * x[j];
                for (Index j = 0; j < S; ++j) d.U[r * S + j] += dz_r * h[head + j];
                if (bias_) d.b_ih[r] += dz_r;
                if (bias_) d.b_hh[r] += dz_r;
                for (Index j = 0; j < S; ++j) dh[head + j] += w.U[r * S + j] * dz_r;
                if (call.dx)
                    for (Index j = 0; j < I; ++j) call.dx[p * I + j] += w.W[r * I + j] * dz_r;
            }
            if (!call.at.starts(p / B, p % B)) continue;
            for (Index k = 0; k < H; ++k) {
                if (learned_state_) d.h0[k] += dh[k];
                dh[k] = 0;
            }
        }
    }

private:
    template <class Number>
    struct Weights {
        Number *W, *U, *b_ih, *b_hh, *h0;
    };
    template <class Number>
    Weights<Number> weights(Number* p) const noexcept {
        Number* const b = p + H * (I + S);
        return {p, p + H * I, b, b + H, b + (bias_ ? 2 * H : 0)};
    }

    void run(const Forward<Real>& call, Real* tape) const {
        const Index B = call.at.batch;
        const Weights<const Real> w = weights(call.parameters);
        for (Index k = 0; k < B * H; ++k) call.carry_out[k] = call.carry_in[k];
        std::vector<Real> h_next(static_cast<std::size_t>(H));
        for (Index p = 0; p < call.at.steps * B; ++p) {
            const Real* const x = call.x + p * I;
            Real* const h = call.carry_out + (p % B) * H;
            if (call.at.filler(p / B, p % B)) {
                for (Index k = 0; k < H; ++k) call.y[p * H + k] = 0;
                for (Index k = 0; tape && k < H; ++k) *tape++ = 0;
                continue;
            }
            if (call.at.starts(p / B, p % B))
                for (Index k = 0; k < H; ++k) h[k] = learned_state_ ? w.h0[k] : 0;
            for (Index r = 0; r < H; ++r) {
                Real z = 0;
                for (Index j = 0; j < I; ++j) z += w.W[r * I + j] * x[j];
                if (bias_) z += w.b_ih[r];
                for (Index j = 0; j < S; ++j) z += w.U[r * S + j] * h[r / S * S + j];
                if (bias_) z += w.b_hh[r];
                h_next[static_cast<std::size_t>(r)] = relu_ ? (z < 0 ? Real{0} : z) : tanh(z);
            }
            for (Index k = 0; tape && k < H; ++k) *tape++ = h[k];
            for (Index k = 0; k < H; ++k) {
                h[k] = h_next[static_cast<std::size_t>(k)];
                call.y[p * H + k] = h[k];
            }
        }
    }

    Index I, H, S;  // S: units of a head
    bool relu_, bias_, learned_state_;
};

}  // namespace

template <class Real>
LayerPointer<Real> rnn(const RecurrentPart& part) {
    return std::make_unique<Rnn<Real>>(part);
}

template LayerPointer<float> rnn(const RecurrentPart&);
template LayerPointer<double> rnn(const RecurrentPart&);
template LayerPointer<Dual<double>> rnn(const RecurrentPart&);

}  // namespace backsweep::reference
