// One layer of an LSTM with layer normalisation [Ba16, eqs. (20) to (22)]: as the LSTM of lstm.cpp, but
//   z = gain_ih LN(W x) + shift_ih + b_ih + gain_hh LN(U h) + shift_hh + b_hh,   h = o tanh(gain_c LN(c) + shift_c)
// with LN(a) = (a - mean) / sqrt(variance + 1e-5) over all numbers of a, of the gates all four blocks, variance biased.
// Tape, (inputs + 9 hidden + 2) a position: x, LN(W x), LN(U h), c, 1 / deviations of the two products.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/arma.hpp"
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/state_marks.hpp"

#include <algorithm>

namespace backsweep::cpu {
namespace {

template <class Real>
class NormedLstm final : public DescribedLayer<Real> {
public:
    explicit NormedLstm(const RecurrentPart& part)
        : DescribedLayer<Real>(part.name(), parameters_of(part)),
          inputs_(part.inputs()),
          hidden_(part.spec.hidden),
          bias_(part.spec.bias),
          learned_(part.spec.learned_state) {}

    // Workspace of advance: shifts, gates of one position, zeros, LN(U h) of one step, two c, LN(W x); of reverse:
    // shifts, their adjoints, gates of one position, zeros, two scratch rows, adjoints of both products, h.
    Footprint footprint(Index steps, Index batch) const override {
        const Index H = hidden_, positions = steps * batch;
        return {inputs_, H, 2 * H, positions * (inputs_ + 9 * H + 2),
                std::max(H * (9 + 6 * batch + 4 * positions), H * (15 + 9 * positions + batch))};
    }

    void advance(const Forward<Real>& call) const override { run<false>(call); }
    void record(const Forward<Real>& call) const override { run<true>(call); }

    // da, dr = the adjoints of W x and U h;  dW += da x', dU += dr h_before', dx = W' da
    void reverse(const Backward<Real>& call) const override {
        const Segment<Real>& at = call.at;
        const Index T = at.steps, B = at.batch, I = inputs_, H = hidden_, positions = T * B;
        const bool marks = marked(at);
        const Weights<const Real> w = weights(call.parameters);
        const Weights<Real> d = weights(call.gradients);
        const Tape<const Real> tape = places(call.tape, positions);
        Real* const shift = call.workspace;
        Real* const dshift = shift + 4 * H;
        Real* const gates = dshift + 4 * H;
        Real* const zeros = gates + 4 * H;
        Real* const scratch = zeros + H;
        Real* const da = scratch + 2 * H;
        Real* const dr = da + positions * 4 * H;
        Real* const h =
            dr + positions * 4 * H;  // [T + 1][B][H]: before each step and, unused, after; first block: spare
        Real* const dh = call.dcarry;
        Real* const dc = dh + B * H;
        sum_shifts(w, shift);
        std::fill_n(dshift, 4 * H, Real{0});
        std::fill_n(zeros, H, Real{0});
        const Real* const fresh_c = learned_ ? w.c0 : zeros;
        const auto U = matrix_view(w.U, H, 4 * H);

        for (Index t = T; t-- > 0;) {
            const Real* const c_before = t > 0 ? tape.c + (t - 1) * B * H : call.carry_in + B * H;
            for (Index b = 0; b < B; ++b) {
                const Index p = t * B + b;
                Real* const da_p = da + p * 4 * H;
                Real* const dr_p = dr + p * 4 * H;
                if (at.filler(t, b)) {
                    std::fill_n(da_p, 4 * H, Real{0});
                    std::fill_n(dr_p, 4 * H, Real{0});
                    std::fill_n(h + (p + B) * H, H, Real{0});
                    continue;
                }
                const Real* const from_x = tape.from_x + p * 4 * H;
                const Real* const from_h = tape.from_h + p * 4 * H;
                sums(w, shift, from_x, from_h, gates);
                lstm_gates(H, gates);
                normed_lstm_cell_reverse(H, epsilon, gates, at.starts(t, b) ? fresh_c : c_before + b * H,
                                         tape.c + p * H, w.gain_c, w.shift_c, call.dy + p * H, dh + b * H, dc + b * H,
                                         da_p, h + (p + B) * H, d.gain_c, d.shift_c, scratch);
                add(4 * H, da_p, dshift);
                add_product(4 * H, da_p, from_x, d.gain_ih);
                add_product(4 * H, da_p, from_h, d.gain_hh);
                std::fill_n(dr_p, 4 * H, Real{0});
                add_product(4 * H, da_p, w.gain_hh, dr_p);
                standardise_reverse(4 * H, from_h, tape.inverse_h[p], dr_p);
                for (Index k = 0; k < 4 * H; ++k) da_p[k] *= w.gain_ih[k];
                standardise_reverse(4 * H, from_x, tape.inverse_x[p], da_p);
            }
            auto dh_before = matrix_view(marks ? h : dh, H, B);
            dh_before = U * matrix_view(dr + t * B * 4 * H, 4 * H, B);
            if (!marks) continue;
            update_states(at, t, H, h, dh);
            start_states_reverse(at, t, H, d.h0, dh);
            start_states_reverse(at, t, H, d.c0, dc);
        }

        std::copy_n(call.carry_in, B * H, h);
        for (Index t = 0; marks && t < T; ++t) {
            start_states(at, t, H, w.h0, h + t * B * H);
            hold_states(at, t, H, h + t * B * H, h + (t + 1) * B * H);
        }
        const auto dA = matrix_view(da, 4 * H, positions);
        auto dU = matrix_view(d.U, H, 4 * H);
        auto dW = matrix_view(d.W, I, 4 * H);
        dU += matrix_view(h, H, positions) * matrix_view(dr, 4 * H, positions).t();
        dW += matrix_view(tape.x, I, positions) * dA.t();
        for (Real* const to : {d.shift_ih, d.shift_hh}) add(4 * H, dshift, to);
        if (bias_)
            for (Real* const to : {d.b_ih, d.b_hh}) add(4 * H, dshift, to);
        if (call.dx) {
            auto dx = matrix_view(call.dx, I, positions);
            dx = matrix_view(w.W, I, 4 * H) * dA;
        }
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

    template <class Number>
    struct Tape {
        Number *x, *from_x, *from_h, *c, *inverse_x, *inverse_h;
    };
    template <class Number>
    Tape<Number> places(Number* x, Index positions) const {
        Number* const from_x = x + positions * inputs_;
        Number* const from_h = from_x + positions * 4 * hidden_;
        Number* const c = from_h + positions * 4 * hidden_;
        Number* const inverses = c + positions * hidden_;
        return {x, from_x, from_h, c, inverses, inverses + positions};
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

    /// keep: the tape is made; else LN(W x) stands in the workspace, LN(U h) and c for as long as they are needed.
    template <bool keep>
    void run(const Forward<Real>& call) const {
        const Segment<Real>& at = call.at;
        const Index T = at.steps, B = at.batch, I = inputs_, H = hidden_, positions = T * B;
        const bool marks = marked(at);
        const Weights<const Real> w = weights(call.parameters);
        Real* const shift = call.workspace;
        Real* const gates = shift + 4 * H;
        Real* const zeros = gates + 4 * H;
        Real* const one_step = zeros + H;
        Real* const two_cells = one_step + B * 4 * H;
        Tape<Real> tape{};
        if constexpr (keep) {
            tape = places(call.tape, positions);
            std::copy_n(call.x, positions * I, tape.x);
            clear_fillers(at, I, tape.x);
        }
        Real* const from_x = keep ? tape.from_x : two_cells + 2 * B * H;
        sum_shifts(w, shift);
        std::fill_n(zeros, H, Real{0});
        const Real* const fresh_c = learned_ ? w.c0 : zeros;
        auto X = matrix_view(from_x, 4 * H, positions);
        X = matrix_view(w.W, I, 4 * H).t() * matrix_view(call.x, I, positions);
        const auto U = matrix_view(w.U, H, 4 * H);

        const Real* h = call.carry_in;
        const Real* c = call.carry_in + B * H;
        if (marks) h = std::copy_n(h, B * H, call.carry_out) - B * H;  // where it is passed on in place
        for (Index t = 0; t < T; ++t) {
            Real* const from_h = keep ? tape.from_h + t * B * 4 * H : one_step;
            Real* const c_next = keep ? tape.c + t * B * H : two_cells + t % 2 * B * H;
            Real* const y = call.y + t * B * H;
            if (marks) start_states(at, t, H, w.h0, call.carry_out);
            auto H_t = matrix_view(from_h, 4 * H, B);
            H_t = U.t() * matrix_view(h, H, B);
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
                if constexpr (keep) {
                    tape.inverse_x[p] = inverse_x;
                    tape.inverse_h[p] = inverse_h;
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
    bool bias_, learned_;
};

}  // namespace

template <class Real>
LayerPointer<Real> normed_lstm(const RecurrentPart& part) {
    return std::make_unique<NormedLstm<Real>>(part);
}

template LayerPointer<float> normed_lstm(const RecurrentPart&);
template LayerPointer<double> normed_lstm(const RecurrentPart&);

}  // namespace backsweep::cpu
