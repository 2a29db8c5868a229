// One layer of an LSTM [HS97]: one product with the inputs of the whole segment, then one with h per step; with
// projection [Sak14] h = R m of m = o tanh(c), else h = m.
// Tape, (inputs + 5 hidden) a position: x, the gates i f g o, c. m is o tanh(c) again, same bits, and h = R m one product.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/arma.hpp"
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/cpu/recurrent_product.hpp"
#include "nn/state_marks.hpp"

#include <algorithm>

namespace backsweep::cpu {
namespace {

template <class Real>
class Lstm final : public DescribedLayer<Real> {
public:
    explicit Lstm(const RecurrentPart& part)
        : DescribedLayer<Real>(part.name(), parameters_of(part)),
          inputs_(part.inputs()),
          hidden_(part.spec.hidden),
          state_(part.spec.state()),
          bias_(part.spec.bias),
          projected_(part.spec.projection > 0),
          learned_(part.spec.learned_state),
          product_(part.spec, 4 * hidden_) {}

    // Workspace of advance: sum of biases, two c, gates, m; of reverse: adjoints of gates, h, sum for biases, and with
    // projection m, adjoints of m at one step and of h.
    Footprint footprint(Index steps, Index batch) const override {
        const Index H = hidden_, S = state_, positions = steps * batch;
        const Index forward = 4 * H * (positions + 1) + 2 * H * batch + (projected_ ? H * batch : 0);
        const Index backward = 4 * H * (positions + 1) + S * (positions + batch) +
                               (projected_ ? H * (positions + batch) + S * positions : 0);
        return {inputs_, S, S + H, positions * (inputs_ + 5 * H), std::max(forward, backward)};
    }

    void advance(const Forward<Real>& call) const override { run<false>(call); }
    void record(const Forward<Real>& call) const override { run<true>(call); }

    // dz = the adjoints of the gates' sums;  dW += dz x', dU += dz h_before', db += sum of dz, dx = W' dz
    // dm = R' dh, dR += dh m'
    void reverse(const Backward<Real>& call) const override {
        const Segment<Real>& at = call.at;
        const Index T = at.steps, B = at.batch, I = inputs_, H = hidden_, S = state_, positions = T * B;
        const bool marks = marked(at);
        const Weights<const Real> w = weights(call.parameters);
        const Weights<Real> d = weights(call.gradients);
        const Real* const x = call.tape;
        const Real* const gates = x + positions * I;
        const Real* const c = gates + positions * 4 * H;
        Real* const dz = call.workspace;
        Real* const row = dz + positions * 4 * H;  // zeros until the end, then the sum for biases
        Real* const h = row + 4 * H;  // [T + 1][B][S]: before each step and, unused, after the last; first block: spare
        Real* const m = h + S * (projected_ ? positions + B : B);  // [T][B][H]
        Real* const dm = m + positions * H;
        Real* const dh_all = dm + B * H;
        Real* const dh = call.dcarry;
        Real* const dc = dh + B * S;
        std::fill_n(row, H, Real{0});
        const Real* const fresh_c = learned_ ? w.c0 : row;

        for (Index t = T; t-- > 0;) {
            const Real* const c_before = t > 0 ? c + (t - 1) * B * H : call.carry_in + B * S;
            const Real* dy = call.dy + t * B * S;
            if (projected_) {
                Real* const total = dh_all + t * B * S;
                std::copy_n(dy, B * S, total);
                add(B * S, dh, total);
                clear_fillers(at, t, S, total);
                auto dM = matrix_view(dm, H, B);
                dM = matrix_view(w.R, H, S) * matrix_view(total, S, B);
                dy = dm;
            }
            for (Index b = 0; b < B; ++b) {
                const Index p = t * B + b;
                if (at.filler(t, b)) {
                    std::fill_n(dz + p * 4 * H, 4 * H, Real{0});
                    std::fill_n(m + p * H, H, Real{0});
                    continue;
                }
                lstm_cell_reverse(H, gates + p * 4 * H, at.starts(t, b) ? fresh_c : c_before + b * H, c + p * H,
                                  dy + b * H, projected_ ? row : dh + b * H, dc + b * H, dz + p * 4 * H, m + p * H);
            }
            product_.reverse(B, w.U, dz + t * B * 4 * H, marks ? h : dh);
            if (!marks) continue;
            update_states(at, t, S, h, dh);
            start_states_reverse(at, t, S, d.h0, dh);
            start_states_reverse(at, t, H, d.c0, dc);
        }

        if (projected_) {
            const auto M = matrix_view(m, H, positions);
            auto H_after = matrix_view(h + B * S, S, positions);
            H_after = matrix_view(w.R, H, S).t() * M;
            auto dR = matrix_view(d.R, H, S);
            dR += M * matrix_view(dh_all, S, positions).t();
        }
        std::copy_n(call.carry_in, B * S, h);
        for (Index t = 0; marks && t < T; ++t) {
            start_states(at, t, S, w.h0, h + t * B * S);
            hold_states(at, t, S, h + t * B * S, h + (t + 1) * B * S);
        }
        product_.gradient(positions, h, dz, d.U);
        const auto dZ = matrix_view(dz, 4 * H, positions);
        auto dW = matrix_view(d.W, I, 4 * H);
        dW += matrix_view(x, I, positions) * dZ.t();
        if (bias_) {
            sum_columns(4 * H, positions, dz, row);
            add(4 * H, row, d.b_ih);
            add(4 * H, row, d.b_hh);
        }
        if (call.dx) {
            auto dx = matrix_view(call.dx, I, positions);
            dx = matrix_view(w.W, I, 4 * H) * dZ;
        }
    }

private:
    template <class Number>
    struct Weights {
        Number *W, *U, *b_ih, *b_hh, *R, *h0, *c0;
    };
    /// In canonical order; null where the layer has none and null means something.
    template <class Number>
    Weights<Number> weights(Number* W) const {
        Number* const U = W + 4 * hidden_ * inputs_;
        Number* const b = U + product_.size();
        Number* const R = b + (bias_ ? 8 * hidden_ : 0);
        Number* const h0 = R + (projected_ ? state_ * hidden_ : 0);
        return {W, U, b, b + 4 * hidden_, R, learned_ ? h0 : nullptr, learned_ ? h0 + state_ : nullptr};
    }

    /// keep: x is copied to the tape, gates and c are made there; else gates are made in the workspace, where c
    /// alternates between two places.
    template <bool keep>
    void run(const Forward<Real>& call) const {
        const Segment<Real>& at = call.at;
        const Index T = at.steps, B = at.batch, I = inputs_, H = hidden_, S = state_, positions = T * B;
        const bool marks = marked(at);
        const Weights<const Real> w = weights(call.parameters);
        Real* const row = call.workspace;  // the sum of biases, then zeros
        Real* const m = row + 4 * H;
        Real* const spare = m + (projected_ ? B * H : 0);
        Real* const gates = keep ? call.tape + positions * I : spare + 2 * B * H;
        Real* const cells = keep ? gates + positions * 4 * H : spare;
        if constexpr (keep) {
            std::copy_n(call.x, positions * I, call.tape);
            clear_fillers(at, I, call.tape);
        }

        std::fill_n(row, 4 * H, Real{0});
        if (bias_) {
            add(4 * H, w.b_ih, row);
            add(4 * H, w.b_hh, row);
        }
        fill_columns(4 * H, positions, row, gates);
        auto Z = matrix_view(gates, 4 * H, positions);
        Z += matrix_view(w.W, I, 4 * H).t() * matrix_view(call.x, I, positions);
        std::fill_n(row, H, Real{0});
        const Real* const fresh_c = learned_ ? w.c0 : row;

        const Real* h = call.carry_in;
        const Real* c = call.carry_in + B * S;
        if (marks) h = std::copy_n(h, B * S, call.carry_out) - B * S;  // where it is passed on in place
        for (Index t = 0; t < T; ++t) {
            Real* const z = gates + t * B * 4 * H;
            Real* const c_next = cells + (keep ? t : t % 2) * B * H;
            Real* const y = call.y + t * B * S;
            Real* const m_next = projected_ ? m : y;
            if (marks) start_states(at, t, S, w.h0, call.carry_out);
            product_.add(B, w.U, h, z);
            for (Index b = 0; b < B; ++b) {
                if (at.filler(t, b)) {
                    std::fill_n(z + b * 4 * H, 4 * H, Real{0});
                    std::copy_n(c + b * H, H, c_next + b * H);
                    std::fill_n(m_next + b * H, H, Real{0});
                    continue;
                }
                lstm_cell(H, z + b * 4 * H, at.starts(t, b) ? fresh_c : c + b * H, c_next + b * H, m_next + b * H);
            }
            if (projected_) {
                auto Y = matrix_view(y, S, B);
                Y = matrix_view(w.R, H, S).t() * matrix_view(m, H, B);
            }
            if (marks)
                update_states(at, t, S, y, call.carry_out);
            else
                h = y;
            c = c_next;
        }
        if (!marks) std::copy_n(h, B * S, call.carry_out);
        std::copy_n(c, B * H, call.carry_out + B * S);
    }

    Index inputs_, hidden_, state_;
    bool bias_, projected_, learned_;
    RecurrentProduct<Real> product_;
};

}  // namespace

template <class Real>
LayerPointer<Real> lstm(const RecurrentPart& part) {
    if (part.spec.layer_norm) return normed_lstm<Real>(part);
    return std::make_unique<Lstm<Real>>(part);
}

template LayerPointer<float> lstm(const RecurrentPart&);
template LayerPointer<double> lstm(const RecurrentPart&);

}  // namespace backsweep::cpu
