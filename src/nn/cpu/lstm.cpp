// One layer of an LSTM [HS97]: one product with the inputs of the whole segment, then one with h per step; with
// projection [Sak14] h = R m of m = o tanh(c), else h = m.
// Tape, 5 hidden a position: the gates i f g o, c; or c alone, and reverse makes the gates again, of the whole segment by
// one product with x and one with h. h is y; m is o tanh(c) again, same bits.
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
class Lstm final : public RecurrentLayer<Real> {
public:
    explicit Lstm(const RecurrentPart& part)
        : RecurrentLayer<Real>(part),
          inputs_(part.inputs()),
          hidden_(part.spec.hidden),
          state_(part.spec.state()),
          bias_(part.spec.bias),
          projected_(part.spec.projection > 0),
          learned_(part.spec.learned_state),
          gates_kept_(part.spec.saves("gates")),
          product_(part.spec, 4 * hidden_) {}

    // Workspace of advance: sum of biases, two c, gates, m; of reverse: adjoints of gates, sum for biases, h before the
    // steps, an adjoint of h, m of one position, with projection of all, adjoints of m at one step and of h; gates of one
    // step, where those of all are made in the place of their adjoints.
    Footprint footprint(Index steps, Index batch) const override {
        const Index H = hidden_, S = state_, positions = steps * batch;
        const Index forward = 4 * H * (positions + 1) + 2 * H * batch + (projected_ ? H * batch : 0);
        const Index backward = 4 * H * (positions + 1) + S * (positions + batch) +
                               (projected_ ? H * (positions + batch) + S * positions : H) +
                               (gates_kept_ ? 0 : 4 * H * batch);
        return {inputs_, S, S + H, positions * (gates_kept_ ? 5 : 1) * H, std::max(forward, backward), true, true};
    }

    void advance(const Forward<Real>& call) const override { run(call, nullptr, nullptr); }
    void record(const Forward<Real>& call) const override {
        if (gates_kept_)
            run(call, call.tape, call.tape + call.at.steps * call.at.batch * 4 * hidden_);
        else
            run(call, nullptr, call.tape);
    }

    // dz = the adjoints of the gates' sums;  dW += dz x', dU += dz h_before', db += sum of dz, dx = W' dz
    // dm = R' dh, dR += dh m'
    void reverse(const Backward<Real>& call) const override {
        const Segment<Real>& at = call.at;
        const Index T = at.steps, B = at.batch, I = inputs_, H = hidden_, S = state_, positions = T * B;
        const bool marks = marked(at);
        const Weights<const Real> w = weights(call.parameters);
        const Weights<Real> d = weights(call.gradients);
        const Real* const c = call.tape + (gates_kept_ ? positions * 4 * H : 0);
        Real* const dz = call.workspace;
        Real* const row = dz + positions * 4 * H;  // zeros until the end, then the sum for biases
        Real* const h = row + 4 * H;
        Real* const dh_before = h + S * positions;  // where dh is held at fillers
        Real* const m = dh_before + S * B;          // [T][B][H], without projection [H], not read
        Real* const dm = m + positions * H;
        Real* const dh_all = dm + B * H;
        Real* const one_step = projected_ ? dh_all + positions * S : m + H;
        Real* const dh = call.dcarry;
        Real* const dc = dh + B * S;
        states_before(at, S, call.carry_in, w.h0, call.y, h);
        if (!gates_kept_) {
            input_sums(w, positions, call.x, row, dz);
            // Step by step, as forward: a product of another shape would round otherwise.
            for (Index t = 0; t < T; ++t) product_.add(B, w.U, h + t * B * S, dz + t * B * 4 * H);
            for (Index p = 0; p < positions; ++p) lstm_gates(H, dz + p * 4 * H);
        }
        std::fill_n(row, H, Real{0});
        const Real* const fresh_c = learned_ ? w.c0 : row;

        for (Index t = T; t-- > 0;) {
            const Real* const c_before = t > 0 ? c + (t - 1) * B * H : call.carry_in + B * S;
            const Real* const gates = gates_kept_ ? call.tape + t * B * 4 * H : one_step;
            const Real* dy = call.dy + t * B * S;
            if (!gates_kept_) std::copy_n(dz + t * B * 4 * H, B * 4 * H, one_step);
            if (projected_) {
                Real* const total = dh_all + t * B * S;
                std::copy_n(dy, B * S, total);
                add(B * S, dh, total);
                clear_fillers(at, t, S, total);
                apply_transposed(S, H, B, w.R, total, Real{0}, dm);
                dy = dm;
            }
            for (Index b = 0; b < B; ++b) {
                const Index p = t * B + b;
                if (at.filler(t, b)) {
                    std::fill_n(dz + p * 4 * H, 4 * H, Real{0});
                    if (projected_) std::fill_n(m + p * H, H, Real{0});
                    continue;
                }
                lstm_cell_reverse(H, gates + b * 4 * H, at.starts(t, b) ? fresh_c : c_before + b * H, c + p * H,
                                  dy + b * H, projected_ ? row : dh + b * H, dc + b * H, dz + p * 4 * H,
                                  m + (projected_ ? p * H : 0));
            }
            product_.reverse(B, w.U, dz + t * B * 4 * H, marks ? dh_before : dh);
            if (!marks) continue;
            update_states(at, t, S, dh_before, dh);
            start_states_reverse(at, t, S, d.h0, dh);
            start_states_reverse(at, t, H, d.c0, dc);
        }

        if (projected_) add_outer(S, H, positions, dh_all, m, d.R);
        product_.gradient(positions, h, dz, d.U);
        add_outer(4 * H, I, positions, dz, call.x, d.W);
        if (bias_) {
            sum_columns(4 * H, positions, dz, row);
            add(4 * H, row, d.b_ih);
            add(4 * H, row, d.b_hh);
        }
        if (call.dx) apply_transposed(4 * H, I, positions, w.W, dz, Real{0}, call.dx);
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

    /// z [position][4 hidden] := W x and the biases, whose sum goes to `row`.
    void input_sums(const Weights<const Real>& w, Index positions, const Real* x, Real* row, Real* z) const {
        std::fill_n(row, 4 * hidden_, Real{0});
        if (bias_) {
            add(4 * hidden_, w.b_ih, row);
            add(4 * hidden_, w.b_hh, row);
        }
        fill_columns(4 * hidden_, positions, row, z);
        apply(4 * hidden_, inputs_, positions, w.W, x, Real{1}, z);
    }

    /// Gates and c are made where the tape keeps them; null: in the workspace, where c alternates between two places.
    void run(const Forward<Real>& call, Real* kept_gates, Real* kept_c) const {
        const Segment<Real>& at = call.at;
        const Index T = at.steps, B = at.batch, H = hidden_, S = state_;
        const bool marks = marked(at);
        const Weights<const Real> w = weights(call.parameters);
        Real* const row = call.workspace;  // the sum of biases, then zeros
        Real* const m = row + 4 * H;
        Real* const spare = m + (projected_ ? B * H : 0);
        Real* const gates = kept_gates ? kept_gates : spare + 2 * B * H;
        Real* const cells = kept_c ? kept_c : spare;
        input_sums(w, T * B, call.x, row, gates);
        std::fill_n(row, H, Real{0});
        const Real* const fresh_c = learned_ ? w.c0 : row;

        const Real* h = call.carry_in;
        const Real* c = call.carry_in + B * S;
        if (marks) h = std::copy_n(h, B * S, call.carry_out) - B * S;  // where it is passed on in place
        for (Index t = 0; t < T; ++t) {
            Real* const z = gates + t * B * 4 * H;
            Real* const c_next = cells + (kept_c ? t : t % 2) * B * H;
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
            if (projected_) apply(S, H, B, w.R, m, Real{0}, y);
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
    bool bias_, projected_, learned_, gates_kept_;
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
template LayerPointer<Dual<double>> lstm(const RecurrentPart&);

}  // namespace backsweep::cpu
