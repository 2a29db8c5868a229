// One layer of an LSTM [HS97] by plain loops, gates in PyTorch's order i f g o:
//   z = W x + b_ih + U h + b_hh;  i, f, o = sigmoid(z), g = tanh(z);  c' = f c + i g;  h' = o tanh(c')
// Tape, a position: x, i f g o, h, c (both before the step), c'.
// SPDX-License-Identifier: MIT
#include "nn/described_layer.hpp"
#include "nn/reference/layers.hpp"

#include <cmath>
#include <vector>

namespace backsweep::reference {
namespace {

template <class Real>
Real sigmoid(Real x) {
    return Real{1} / (Real{1} + std::exp(-x));
}

template <class Real>
class Lstm final : public DescribedLayer<Real> {
public:
    Lstm(const LstmSpec& spec, Index layer)
        : DescribedLayer<Real>(name_of(spec, layer), parameters_of(spec, layer)),
          I(layer == 0 ? spec.inputs : spec.hidden),
          H(spec.hidden),
          bias_(spec.bias) {}

    Footprint footprint(Index steps, Index batch) const override { return {I, H, 2 * H, steps * batch * taped(), 0}; }

    void advance(const Forward<Real>& call) const override { run(call, nullptr); }
    void record(const Forward<Real>& call) const override { run(call, call.tape); }

    void reverse(const Backward<Real>& call) const override {
        const Index B = call.at.batch;
        const Weights<const Real> w = weights(call.parameters);
        const Weights<Real> d = weights(call.gradients);
        std::vector<Real> dz(static_cast<std::size_t>(4 * H));
        for (Index p = call.at.steps * B - 1; p >= 0; --p) {
            const Real* const x = call.tape + p * taped();
            const Real* const gates = x + I;
            const Real* const h = gates + 4 * H;
            const Real* const c = h + H;
            const Real* const c_next = c + H;
            Real* const dh = call.dcarry + (p % B) * H;
            Real* const dc = call.dcarry + B * H + (p % B) * H;
            for (Index k = 0; k < H; ++k) {
                const Real i = gates[k], f = gates[H + k], g = gates[2 * H + k], o = gates[3 * H + k];
                const Real tanh_c = std::tanh(c_next[k]);
                const Real dh_k = dh[k] + call.dy[p * H + k];
                const Real dc_k = dc[k] + dh_k * o * (1 - tanh_c * tanh_c);
                dz[static_cast<std::size_t>(k)] = dc_k * g * i * (1 - i);
                dz[static_cast<std::size_t>(H + k)] = dc_k * c[k] * f * (1 - f);
                dz[static_cast<std::size_t>(2 * H + k)] = dc_k * i * (1 - g * g);
                dz[static_cast<std::size_t>(3 * H + k)] = dh_k * tanh_c * o * (1 - o);
                dc[k] = dc_k * f;
                dh[k] = 0;
            }
            if (call.dx)
                for (Index j = 0; j < I; ++j) call.dx[p * I + j] = 0;
            for (Index r = 0; r < 4 * H; ++r) {
                const Real dz_r = dz[static_cast<std::size_t>(r)];
                for (Index j = 0; j < I; ++j) d.W[r * I + j] += dz_r * x[j];
                for (Index j = 0; j < H; ++j) d.U[r * H + j] += dz_r * h[j];
                if (bias_) d.b_ih[r] += dz_r;
                if (bias_) d.b_hh[r] += dz_r;
                for (Index j = 0; j < H; ++j) dh[j] += w.U[r * H + j] * dz_r;
                if (call.dx)
                    for (Index j = 0; j < I; ++j) call.dx[p * I + j] += w.W[r * I + j] * dz_r;
            }
        }
    }

private:
    /// Numbers on the tape for one position.
    Index taped() const noexcept { return I + 7 * H; }

    template <class Number>
    struct Weights {
        Number *W, *U, *b_ih, *b_hh;
    };
    template <class Number>
    Weights<Number> weights(Number* p) const noexcept {
        return {p, p + 4 * H * I, p + 4 * H * (I + H), p + 4 * H * (I + H + 1)};
    }

    void run(const Forward<Real>& call, Real* tape) const {
        const Index B = call.at.batch;
        const Weights<const Real> w = weights(call.parameters);
        Real* const h_all = call.carry_out;
        Real* const c_all = call.carry_out + B * H;
        for (Index k = 0; k < 2 * B * H; ++k) call.carry_out[k] = call.carry_in[k];
        std::vector<Real> gates(static_cast<std::size_t>(4 * H));
        for (Index p = 0; p < call.at.steps * B; ++p) {
            const Real* const x = call.x + p * I;
            Real* const h = h_all + (p % B) * H;
            Real* const c = c_all + (p % B) * H;
            for (Index r = 0; r < 4 * H; ++r) {
                Real z = 0;
                for (Index j = 0; j < I; ++j) z += w.W[r * I + j] * x[j];
                if (bias_) z += w.b_ih[r];
                for (Index j = 0; j < H; ++j) z += w.U[r * H + j] * h[j];
                if (bias_) z += w.b_hh[r];
                gates[static_cast<std::size_t>(r)] = r / H == 2 ? std::tanh(z) : sigmoid(z);
            }
            if (tape) {
                for (Index j = 0; j < I; ++j) *tape++ = x[j];
                for (const Real gate : gates) *tape++ = gate;
                for (Index k = 0; k < H; ++k) *tape++ = h[k];
                for (Index k = 0; k < H; ++k) *tape++ = c[k];
            }
            for (Index k = 0; k < H; ++k) {
                const Real *const i = gates.data(), *const f = i + H, *const g = f + H, *const o = g + H;
                c[k] = f[k] * c[k] + i[k] * g[k];
                h[k] = o[k] * std::tanh(c[k]);
                call.y[p * H + k] = h[k];
                if (tape) *tape++ = c[k];
            }
        }
    }

    Index I, H;
    bool bias_;
};

}  // namespace

template <class Real>
LayerPointer<Real> lstm(const LstmSpec& spec, Index layer) {
    return std::make_unique<Lstm<Real>>(spec, layer);
}

template LayerPointer<float> lstm(const LstmSpec&, Index);
template LayerPointer<double> lstm(const LstmSpec&, Index);

}  // namespace backsweep::reference
