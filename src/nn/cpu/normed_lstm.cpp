// One layer of an LSTM with layer normalisation [Ba16, eqs. (20) to (22)]: as the LSTM of lstm.cpp, but
//   z = gain_ih LN(W x) + shift_ih + b_ih + gain_hh LN(U h) + shift_hh + b_hh,   h = o tanh(gain_c LN(c) + shift_c)
// with LN(a) = (a - mean) / sqrt(variance + 1e-5) over all numbers of a, of the gates all four blocks, variance biased.
// Tape, (9 hidden + 2) a position: c, LN(W x), LN(U h), 1 / deviations of the two products; or c alone, and reverse makes
// the rest again, of the whole segment by one product with x and one with h. h is y.
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
class NormedLstm final : public RecurrentLayer<Real> {
public:
    explicit NormedLstm(const RecurrentPart& part)
        : RecurrentLayer<Real>(part),
          inputs_(part.inputs()),
          hidden_(part.spec.hidden),
          bias_(part.spec.bias),
          learned_(part.spec.learned_state),
          gates_kept_(part.spec.saves("gates")),
          product_(part.spec, 4 * hidden_) {}

    // Workspace of advance: shifts, gates of one position, zeros, LN(U h) of one step, two c, LN(W x); of reverse:
    // shifts, their adjoints, gates of one position, zeros, two scratch rows, h of one position, adjoints of both products,
    // h before the steps, an adjoint of h; LN(W x), LN(U h) of one position and all 1 / deviations, where those of all are
    // made in the place of their adjoints.
    Footprint footprint(Index steps, Index batch) const override {
        const Index H = hidden_, positions = steps * batch;
        return {inputs_, H, 2 * H, positions * (gates_kept_ ? 9 * H + 2 : H),
                std::max(H * (9 + 6 * batch + 4 * positions),
                         H * (16 + 9 * positions + batch) + (gates_kept_ ? 0 : 8 * H + 2 * positions)),
                true, true};
    }

    Index prepared() const override { return product_.prepared(); }
    void prepare(const Real* parameters, Real* prepared) const override {
        product_.prepare(weights(parameters).U, prepared);
    }

    void advance(const Forward<Real>& call) const override { run(call, nullptr, {}); }
    void record(const Forward<Real>& call) const override {
        const Index positions = call.at.steps * call.at.batch;
        run(call, call.tape, gates_kept_ ? places(call.tape + positions * hidden_, positions) : Products<Real>{});
    }

    // da, dr = the adjoints of W x and U h;  dW += da x', dU += dr h_before', dx = W' da
    void reverse(const Backward<Real>& call) const override {
        const Segment<Real>& at = call.at;
        const Index T = at.steps, B = at.batch, I = inputs_, H = hidden_, positions = T * B;
        const bool marks = marked(at);
        const Weights<const Real> w = weights(call.parameters);
        const Weights<Real> d = weights(call.gradients);
        const Real* const c = call.tape;
        Real* const shift = call.workspace;
        Real* const dshift = shift + 4 * H;
        Real* const gates = dshift + 4 * H;
        Real* const zeros = gates + 4 * H;
        Real* const scratch = zeros + H;
        Real* const h_again = scratch + 2 * H;  // not read
        Real* const da = h_again + H;
        Real* const dr = da + positions * 4 * H;
        Real* const h = dr + positions * 4 * H;
        Real* const dh_before = h + positions * H;  // where dh is held at fillers
        Real* const one_position = dh_before + B * H;
        Real* const inverses = one_position + 8 * H;
        const Products<const Real> kept =
            gates_kept_ ? places(c + positions * H, positions) : Products<const Real>{da, dr, inverses, inverses + positions};
        Real* const dh = call.dcarry;
        Real* const dc = dh + B * H;
        states_before(at, H, call.carry_in, w.h0, call.y, h);
        if (!gates_kept_) {
            apply(4 * H, I, positions, w.W, call.x, Real{0}, da);
            // Step by step, as forward: a product of another shape would round otherwise.
            product_.forward(positions, w.U, call.prepared, h, Real{0}, dr);
            for (Index p = 0; p < positions; ++p) {
                inverses[p] = standardise(4 * H, epsilon, da + p * 4 * H);
                inverses[positions + p] = standardise(4 * H, epsilon, dr + p * 4 * H);
            }
        }
        sum_shifts(w, shift);
        std::fill_n(dshift, 4 * H, Real{0});
        std::fill_n(zeros, H, Real{0});
        const Real* const fresh_c = learned_ ? w.c0 : zeros;

        for (Index t = T; t-- > 0;) {
            const Real* const c_before = t > 0 ? c + (t - 1) * B * H : call.carry_in + B * H;
            for (Index b = 0; b < B; ++b) {
                const Index p = t * B + b;
                Real* const da_p = da + p * 4 * H;
                Real* const dr_p = dr + p * 4 * H;
                if (at.filler(t, b)) {
                    std::fill_n(da_p, 4 * H, Real{0});
                    std::fill_n(dr_p, 4 * H, Real{0});
                    continue;
                }
                const Real* from_x = kept.from_x + p * 4 * H;
                const Real* from_h = kept.from_h + p * 4 * H;
                if (!gates_kept_) {
                    std::copy_n(from_x, 4 * H, one_position);
                    std::copy_n(from_h, 4 * H, one_position + 4 * H);
                    from_x = one_position;
                    from_h = one_position + 4 * H;
                }
                sums(w, shift, from_x, from_h, gates);
                lstm_gates(H, gates);
                normed_lstm_cell_reverse(H, epsilon, gates, at.starts(t, b) ? fresh_c : c_before + b * H,
                                         c + p * H, w.gain_c, w.shift_c, call.dy + p * H, dh + b * H, dc + b * H,
                                         da_p, h_again, d.gain_c, d.shift_c, scratch);
                add(4 * H, da_p, dshift);
                add_product(4 * H, da_p, from_x, d.gain_ih);
                add_product(4 * H, da_p, from_h, d.gain_hh);
                std::fill_n(dr_p, 4 * H, Real{0});
                add_product(4 * H, da_p, w.gain_hh, dr_p);
                standardise_reverse(4 * H, from_h, kept.inverse_h[p], dr_p);
                for (Index k = 0; k < 4 * H; ++k) da_p[k] *= w.gain_ih[k];
                standardise_reverse(4 * H, from_x, kept.inverse_x[p], da_p);
            }
            product_.reverse(B, w.U, call.prepared, dr + t * B * 4 * H, Real{0}, marks ? dh_before : dh);
            if (!marks) continue;
            update_states(at, t, H, dh_before, dh);
            start_states_reverse(at, t, H, d.h0, dh);
            start_states_reverse(at, t, H, d.c0, dc);
        }

        product_.gradient(positions, h, dr, d.U);
        add_outer(4 * H, I, positions, da, call.x, d.W);
        for (Real* const to : {d.shift_ih, d.shift_hh}) add(4 * H, dshift, to);
        if (bias_)
            for (Real* const to : {d.b_ih, d.b_hh}) add(4 * H, dshift, to);
        if (call.dx) apply_transposed(4 * H, I, positions, w.W, da, Real{0}, call.dx);
    }

private:
    static constexpr Real epsilon = static_cast<Real>(1e-5);

    template <class Number>
    struct Weights {
        Number *W, *U, *b_ih, *b_hh, *gain_ih, *shift_ih, *gain_hh, *shift_hh, *gain_c, *shift_c, *h0, *c0;
    };
    /// In canonical order; h0 and c0 are null where they are not learned.
    template <class Number>
    Weights<Number> weights(Number* W) const {
        const Index H = hidden_;
        Number* const U = W + 4 * H * inputs_;
        Number* const b = U + 4 * H * H;
        Number* const n = b + (bias_ ? 8 * H : 0);
        Number* const h0 = n + 18 * H;
        return {W,
                U,
                b,
                b + 4 * H,
                n,
                n + 4 * H,
                n + 8 * H,
                n + 12 * H,
                n + 16 * H,
                n + 17 * H,
                learned_ ? h0 : nullptr,
                learned_ ? h0 + H : nullptr};
    }

    /// LN(W x) and LN(U h) [position][4 hidden], and 1 / deviations.
    template <class Number>
    struct Products {
        Number *from_x = nullptr, *from_h = nullptr, *inverse_x = nullptr, *inverse_h = nullptr;
    };
    template <class Number>
    Products<Number> places(Number* from_x, Index positions) const {
        Number* const from_h = from_x + positions * 4 * hidden_;
        Number* const inverses = from_h + positions * 4 * hidden_;
        return {from_x, from_h, inverses, inverses + positions};
    }

    /// What z has at every position.
    void sum_shifts(const Weights<const Real>& w, Real* shift) const {
        std::copy_n(w.shift_ih, 4 * hidden_, shift);
        add(4 * hidden_, w.shift_hh, shift);
        if (!bias_) return;
        add(4 * hidden_, w.b_ih, shift);
        add(4 * hidden_, w.b_hh, shift);
    }

    /// z of one position.
    void sums(const Weights<const Real>& w, const Real* shift, const Real* from_x, const Real* from_h, Real* z) const {
        std::copy_n(shift, 4 * hidden_, z);
        add_product(4 * hidden_, w.gain_ih, from_x, z);
        add_product(4 * hidden_, w.gain_hh, from_h, z);
    }

    /// c and products are made where the tape keeps them; null: LN(W x) in the workspace, LN(U h) and c there for as long as
    /// they are needed.
    void run(const Forward<Real>& call, Real* kept_c, const Products<Real>& kept) const {
        const Segment<Real>& at = call.at;
        const Index T = at.steps, B = at.batch, I = inputs_, H = hidden_, positions = T * B;
        const bool marks = marked(at);
        const Weights<const Real> w = weights(call.parameters);
        Real* const shift = call.workspace;
        Real* const gates = shift + 4 * H;
        Real* const zeros = gates + 4 * H;
        Real* const one_step = zeros + H;
        Real* const two_cells = one_step + B * 4 * H;
        Real* const from_x = kept.from_x ? kept.from_x : two_cells + 2 * B * H;
        sum_shifts(w, shift);
        std::fill_n(zeros, H, Real{0});
        const Real* const fresh_c = learned_ ? w.c0 : zeros;
        apply(4 * H, I, positions, w.W, call.x, Real{0}, from_x);

        const Real* h = call.carry_in;
        const Real* c = call.carry_in + B * H;
        if (marks) h = std::copy_n(h, B * H, call.carry_out) - B * H;  // where it is passed on in place
        for (Index t = 0; t < T; ++t) {
            Real* const from_h = kept.from_h ? kept.from_h + t * B * 4 * H : one_step;
            Real* const c_next = kept_c ? kept_c + t * B * H : two_cells + t % 2 * B * H;
            Real* const y = call.y + t * B * H;
            if (marks) start_states(at, t, H, w.h0, call.carry_out);
            product_.forward(B, w.U, call.prepared, h, Real{0}, from_h);
            for (Index b = 0; b < B; ++b) {
                const Index p = t * B + b;
                Real* const x_p = from_x + p * 4 * H;
                Real* const h_p = from_h + b * 4 * H;
                Real inverse_x = 0, inverse_h = 0;
                if (at.filler(t, b)) {
                    std::fill_n(x_p, 4 * H, Real{0});
                    std::fill_n(h_p, 4 * H, Real{0});
                    std::copy_n(c + b * H, H, c_next + b * H);
                    std::fill_n(y + b * H, H, Real{0});
                } else {
                    inverse_x = standardise(4 * H, epsilon, x_p);
                    inverse_h = standardise(4 * H, epsilon, h_p);
                    sums(w, shift, x_p, h_p, gates);
                    normed_lstm_cell(H, epsilon, gates, at.starts(t, b) ? fresh_c : c + b * H, w.gain_c, w.shift_c,
                                     c_next + b * H, y + b * H);
                }
                if (kept.inverse_x) {
                    kept.inverse_x[p] = inverse_x;
                    kept.inverse_h[p] = inverse_h;
                }
            }
            if (marks)
                update_states(at, t, H, y, call.carry_out);
            else
                h = y;
            c = c_next;
        }
        if (!marks) std::copy_n(h, B * H, call.carry_out);
        std::copy_n(c, B * H, call.carry_out + B * H);
    }

    Index inputs_, hidden_;
    bool bias_, learned_, gates_kept_;
    RecurrentProduct<Real> product_;
};

}  // namespace

template <class Real>
LayerPointer<Real> normed_lstm(const RecurrentPart& part) {
    return std::make_unique<NormedLstm<Real>>(part);
}

template LayerPointer<float> normed_lstm(const RecurrentPart&);
template LayerPointer<double> normed_lstm(const RecurrentPart&);
template LayerPointer<Dual<double>> normed_lstm(const RecurrentPart&);

}  // namespace backsweep::cpu
