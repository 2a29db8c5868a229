// One layer of an LSTM [HS97]: one product with the inputs of the whole segment, then one with h per step.
// Tape, (inputs + 5 hidden) a position: x, the gates i f g o, c. h of the step before is o tanh(c) again, same bits.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/arma.hpp"
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/described_layer.hpp"

#include <algorithm>

namespace backsweep::cpu {
namespace {

template <class Real>
class Lstm final : public DescribedLayer<Real> {
public:
    Lstm(const LstmSpec& spec, Index layer)
        : DescribedLayer<Real>(name_of(spec, layer), parameters_of(spec, layer)),
          inputs_(layer == 0 ? spec.inputs : spec.hidden),
          hidden_(spec.hidden),
          bias_(spec.bias) {}

    // Workspace of advance: sum of biases, two c, gates; of reverse: adjoints of gates, h, sum for biases.
    Footprint footprint(Index steps, Index batch) const override {
        const Index positions = steps * batch;
        return {inputs_, hidden_, 2 * hidden_, positions * (inputs_ + 5 * hidden_),
                4 * hidden_ * (positions + 1) + hidden_ * (positions + batch)};
    }

    void advance(const Forward<Real>& call) const override { run<false>(call); }
    void record(const Forward<Real>& call) const override { run<true>(call); }

    // dz = the adjoints of the gates' sums;  dW += dz x', dU += dz h_before', db += sum of dz, dx = W' dz
    void reverse(const Backward<Real>& call) const override {
        const Index T = call.at.steps, B = call.at.batch, H = hidden_, positions = T * B, state = B * H;
        const Real* const x = call.tape;
        const Real* const gates = x + positions * inputs_;
        const Real* const c = gates + positions * 4 * H;
        Real* const dz = call.workspace;
        Real* const h = dz + positions * 4 * H;  // [T + 1][B][H]: before each step and, unused, after the last
        Real* const dh = call.dcarry;
        Real* const dc = dh + state;
        const auto U = matrix_view(call.parameters + 4 * H * inputs_, H, 4 * H);

        std::copy_n(call.carry_in, state, h);
        for (Index t = T; t-- > 0;) {
            const Real* const c_before = t > 0 ? c + (t - 1) * state : call.carry_in + state;
            for (Index b = 0; b < B; ++b) {
                const Index p = t * B + b;
                lstm_cell_reverse(H, gates + p * 4 * H, c_before + b * H, c + p * H, call.dy + p * H, dh + b * H,
                                  dc + b * H, dz + p * 4 * H, h + state + p * H);
            }
            auto dh_before = matrix_view(dh, H, B);
            dh_before = U * matrix_view(dz + t * 4 * state, 4 * H, B);
        }

        const auto dZ = matrix_view(dz, 4 * H, positions);
        auto dW = matrix_view(call.gradients, inputs_, 4 * H);
        auto dU = matrix_view(call.gradients + 4 * H * inputs_, H, 4 * H);
        dW += matrix_view(x, inputs_, positions) * dZ.t();
        dU += matrix_view(h, H, positions) * dZ.t();
        if (bias_) {
            Real* const sum = h + positions * H + state;
            Real* const db = call.gradients + 4 * H * (inputs_ + H);
            sum_columns(4 * H, positions, dz, sum);
            add(4 * H, sum, db);
            add(4 * H, sum, db + 4 * H);
        }
        if (call.dx) {
            auto dx = matrix_view(call.dx, inputs_, positions);
            dx = matrix_view(call.parameters, inputs_, 4 * H) * dZ;
        }
    }

private:
    /// keep: x is copied to the tape, gates and c are made there; else gates are made in the workspace, where c
    /// alternates between two places.
    template <bool keep>
    void run(const Forward<Real>& call) const {
        const Index T = call.at.steps, B = call.at.batch, H = hidden_, positions = T * B, state = B * H;
        Real* const bias = call.workspace;
        Real* const gates = keep ? call.tape + positions * inputs_ : bias + 4 * H + 2 * state;
        Real* const cells = keep ? gates + positions * 4 * H : bias + 4 * H;
        if constexpr (keep) std::copy_n(call.x, positions * inputs_, call.tape);

        const Real* const weights = call.parameters;
        const auto W = matrix_view(weights, inputs_, 4 * H);
        const auto U = matrix_view(weights + 4 * H * inputs_, H, 4 * H);
        const Real* const b_ih = weights + 4 * H * (inputs_ + H);
        std::fill_n(bias, 4 * H, Real{0});
        if (bias_) {
            add(4 * H, b_ih, bias);
            add(4 * H, b_ih + 4 * H, bias);
        }
        fill_columns(4 * H, positions, bias, gates);
        auto Z = matrix_view(gates, 4 * H, positions);
        Z += W.t() * matrix_view(call.x, inputs_, positions);

        const Real* h = call.carry_in;
        const Real* c = call.carry_in + state;
        for (Index t = 0; t < T; ++t) {
            Real* const z = gates + t * 4 * state;
            Real* const c_next = cells + (keep ? t : t % 2) * state;
            Real* const h_next = call.y + t * state;
            auto Z_t = matrix_view(z, 4 * H, B);
            Z_t += U.t() * matrix_view(h, H, B);
            for (Index b = 0; b < B; ++b) lstm_cell(H, z + b * 4 * H, c + b * H, c_next + b * H, h_next + b * H);
            h = h_next;
            c = c_next;
        }
        std::copy_n(h, state, call.carry_out);
        std::copy_n(c, state, call.carry_out + state);
    }

    Index inputs_, hidden_;
    bool bias_;
};

}  // namespace

template <class Real>
LayerPointer<Real> lstm(const LstmSpec& spec, Index layer) {
    return std::make_unique<Lstm<Real>>(spec, layer);
}

template LayerPointer<float> lstm(const LstmSpec&, Index);
template LayerPointer<double> lstm(const LstmSpec&, Index);

}  // namespace backsweep::cpu
