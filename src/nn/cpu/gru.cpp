// One layer of a GRU [Cho14] with the reset after the recurrent product, blocks r z n:
//   s = W x + b_ih, p = U h + b_hh;  r, z = sigmoid(s + p), n = tanh(s_n + r p_n);  h' = (1 - z) n + z h
// Layer norm [Ba16, eqs. (27) to (29)]: s = LN(W x) w_ih + c_ih + b_ih, p = LN(U h) w_hh + c_hh + b_hh, LN over blocks
// r and z together and over n apart. Tape, 4 hidden a position: r z n, p_n; with layer norm (9 hidden + 4): r z n,
// LN(W x), LN(U h), 1 / deviations; or nothing, and reverse makes it, by one product with x and one with h. h is y.
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
class Gru final : public RecurrentLayer<Real> {
public:
    explicit Gru(const RecurrentPart& part)
        : RecurrentLayer<Real>(part),
          inputs_(part.inputs()),
          hidden_(part.spec.hidden),
          bias_(part.spec.bias),
          norm_(part.spec.layer_norm),
          learned_state_(part.spec.learned_state),
          gates_kept_(part.spec.saves("gates")),
          product_(part.spec, 3 * part.spec.hidden) {}

    // Workspace of forward: shifts of s and p, p of a step, without tape r z n and one position's notes of layer norm;
    // of reverse: ds, dp, h before the steps, one position's p_n, sums for norm and biases; r z n of one position and what
    // layer norm keeps, where r z n and p of all are made in the place of ds and dp.
    Footprint footprint(Index steps, Index batch) const override {
        const Index positions = steps * batch, H = hidden_;
        const Index gates = 3 * H * positions, rest = positions * (norm_ ? 6 * H + 4 : H);
        return {inputs_, H, H, gates_kept_ ? gates + rest : 0,
                std::max(6 * H + 3 * H * batch + gates,
                         7 * H * positions + 7 * H + (gates_kept_ ? 0 : 3 * H + (norm_ ? rest : 0))),
                true, true};
    }

    Index prepared() const override { return product_.prepared(); }
    void prepare(const Real* parameters, Real* prepared) const override {
        product_.prepare(parts(parameters).U, prepared);
    }

    void advance(const Forward<Real>& call) const override { run<false>(call); }
    void record(const Forward<Real>& call) const override { gates_kept_ ? run<true>(call) : run<false>(call); }

    // dW += ds x', dU += dp h_before', db_ih += sum of ds, db_hh += sum of dp, dx = W' ds, dh_before = z dh + U' dp;
    // with layer norm all but the biases' sums take ds and dp behind its reverse.
    void reverse(const Backward<Real>& call) const override {
        const Index T = call.at.steps, B = call.at.batch, H = hidden_, positions = T * B, state = B * H;
        const Parts<const Real> w = parts(call.parameters);
        const Parts<Real> d = parts(call.gradients);
        Real* const ds = call.workspace;
        Real* const dp = ds + 3 * H * positions;
        Real* const before = dp + 3 * H * positions;
        Real* const p_n = before + H * positions;
        Real* const sums = p_n + H;  // 3 H for biases; with layer norm 3 H more
        Real* const one_position = sums + 6 * H;
        const Tape<const Real> tape = gates_kept_ ? taped(call.tape, call.tape + positions * 3 * H, positions)
                                                  : taped<const Real>(ds, one_position + 3 * H, positions);
        Real* const dh = call.dcarry;

        states_before(call.at, H, call.carry_in, w.h0, call.y, before);
        if (!gates_kept_) make(call, w, before, sums, dp, taped(ds, one_position + 3 * H, positions));
        std::fill_n(sums, 6 * H, Real{0});
        for (Index t = T; t-- > 0;) {
            for (Index b = 0; b < B; ++b) {
                const Index p = t * B + b;
                if (call.at.filler(t, b)) continue;
                const Real* gates = tape.gates + p * 3 * H;
                if (!gates_kept_) {
                    std::copy_n(gates, 3 * H, one_position);
                    std::copy_n(dp + p * 3 * H + 2 * H, H, p_n);
                    gates = one_position;
                } else if (norm_) {
                    std::copy_n(tape.normal_hh + p * 3 * H + 2 * H, H, p_n);
                    scale_shift(H, w.norm_hh + 2 * H, w.norm_hh + 5 * H, p_n);
                    if (bias_) add(H, w.b_hh + 2 * H, p_n);
                }
                gru_cell_reverse(H, gates, gates_kept_ && !norm_ ? tape.p_n + p * H : p_n, before + p * H, call.dy + p * H,
                                 dh + b * H, ds + p * 3 * H, dp + p * 3 * H);
            }
            clear_fillers(call.at, t, 3 * H, ds + t * 3 * state);
            clear_fillers(call.at, t, 3 * H, dp + t * 3 * state);
            if (norm_)
                normalise_reverse(B, w.norm_hh, tape.normal_hh + t * 3 * state, tape.inverse_hh + t * 2 * B,
                                  dp + t * 3 * state, sums);
            product_.reverse(B, w.U, call.prepared, dp + t * 3 * state, Real{1}, dh);
            start_states_reverse(call.at, t, H, d.h0, dh);
        }
        spend(positions, dp, sums, d.norm_hh, d.b_hh);
        product_.gradient(positions, before, dp, d.U);

        std::fill_n(sums, 6 * H, Real{0});
        if (norm_) normalise_reverse(positions, w.norm_ih, tape.normal_ih, tape.inverse_ih, ds, sums);
        spend(positions, ds, sums, d.norm_ih, d.b_ih);
        add_outer(3 * H, inputs_, positions, ds, call.x, d.W);
        if (call.dx) apply_transposed(3 * H, inputs_, positions, w.W, ds, Real{0}, call.dx);
    }

private:
    static constexpr Real epsilon = static_cast<Real>(1e-5);

    template <class Number>
    struct Parts {
        Number *W, *U, *b_ih, *b_hh;
        Number *norm_ih, *norm_hh;  // weight, then bias, 3 hidden each
        Number* h0;                 // null where sequences start from 0
    };
    template <class Number>
    Parts<Number> parts(Number* p) const noexcept {
        const Index rows = 3 * hidden_;
        Number* const U = p + rows * inputs_;
        Number* const b = U + product_.size();
        Number* const norm = b + (bias_ ? 2 * rows : 0);
        return {p, U, b, b + rows, norm, norm + 2 * rows, learned_state_ ? norm + (norm_ ? 4 * rows : 0) : nullptr};
    }

    /// Parts of a tape; only one of p_n and what follows it is there.
    template <class Number>
    struct Tape {
        Number *gates, *p_n, *normal_ih, *normal_hh, *inverse_ih, *inverse_hh;
    };
    template <class Number>
    Tape<Number> taped(Number* gates, Number* rest, Index positions) const noexcept {
        Number* const normal_hh = rest + positions * 3 * hidden_;
        Number* const inverse = normal_hh + positions * 3 * hidden_;
        return {gates, rest, rest, normal_hh, inverse, inverse + 2 * positions};
    }

    /// keep: the tape is assigned; else r z n are made in the workspace. The state lives in carry_out.
    template <bool keep>
    void run(const Forward<Real>& call) const {
        const Index T = call.at.steps, B = call.at.batch, H = hidden_, positions = T * B, state = B * H;
        const Parts<const Real> w = parts(call.parameters);
        Tape<Real> tape{};
        if constexpr (keep) tape = taped(call.tape, call.tape + positions * 3 * H, positions);
        Real* const shift_ih = call.workspace;
        Real* const shift_hh = shift_ih + 3 * H;
        Real* const product = shift_hh + 3 * H;
        Real* const gates = keep ? tape.gates : product + 3 * state;

        input_sums<keep>(call.at, w, call.x, shift_ih, gates, tape);
        shift(w.b_hh, w.norm_hh, shift_hh);
        Real* const h = call.carry_out;
        std::copy_n(call.carry_in, state, h);
        for (Index t = 0; t < T; ++t) {
            start_states(call.at, t, H, w.h0, h);
            products<keep>(B, w, call.prepared, h, shift_hh, product, keep ? tape.normal_hh + t * 3 * state : nullptr,
                           keep ? tape.inverse_hh + t * 2 * B : nullptr);
            for (Index b = 0; b < B; ++b) {
                const Index p = t * B + b;
                if (!call.at.filler(t, b)) gru_cell(H, gates + p * 3 * H, product + b * 3 * H, h + b * H);
                if constexpr (keep)
                    if (!norm_) std::copy_n(product + b * 3 * H + 2 * H, H, tape.p_n + p * H);
            }
            std::copy_n(h, state, call.y + t * state);
            clear_fillers(call.at, t, H, call.y + t * state);
        }
    }

    /// s of all positions; keep: layer norm's part of the tape is assigned.
    template <bool keep>
    void input_sums(const Segment<Real>& at, const Parts<const Real>& w, const Real* x, Real* shift_ih, Real* s,
                    const Tape<Real>& tape) const {
        const Index H = hidden_, positions = at.steps * at.batch;
        shift(w.b_ih, w.norm_ih, shift_ih);
        if (norm_)
            apply(3 * H, inputs_, positions, w.W, x, Real{0}, s);
        else
            apply(3 * H, inputs_, positions, w.W, x, shift_ih, s);
        clear_fillers(at, 3 * H, s);
        if (norm_) normalise<keep>(positions, w.norm_ih, shift_ih, s, tape.normal_ih, tape.inverse_ih);
    }

    /// p of `columns` positions, likewise.
    template <bool keep>
    void products(Index columns, const Parts<const Real>& w, const Real* prepared, const Real* h, const Real* shift_hh,
                  Real* p, Real* normal, Real* inverse) const {
        product_.forward(columns, w.U, prepared, h, Real{0}, p, norm_ ? nullptr : shift_hh);
        if (norm_) normalise<keep>(columns, w.norm_hh, shift_hh, p, normal, inverse);
    }

    /// The tape of the whole segment but p_n, and p, without recurrence; shifts holds 6 hidden.
    void make(const Backward<Real>& call, const Parts<const Real>& w, const Real* before, Real* shifts, Real* p,
              const Tape<Real>& tape) const {
        const Index H = hidden_, positions = call.at.steps * call.at.batch;
        input_sums<true>(call.at, w, call.x, shifts, tape.gates, tape);
        shift(w.b_hh, w.norm_hh, shifts + 3 * H);
        products<true>(positions, w, call.prepared, before, shifts + 3 * H, p, tape.normal_hh, tape.inverse_hh);
        for (Index k = 0; k < 3 * H * positions; k += 3 * H) gru_gates(H, tape.gates + k, p + k);
    }

    /// to := the sum of biases of the cell and of the layer norm, 0 where there are none.
    void shift(const Real* b, const Real* norm, Real* to) const {
        std::fill_n(to, 3 * hidden_, Real{0});
        if (bias_) add(3 * hidden_, b, to);
        if (norm_) add(3 * hidden_, norm + 3 * hidden_, to);
    }

    /// sums [columns][3 hidden] := LN(sums) w + shift; keep: LN(sums) and its two 1 / deviations go to the tape.
    template <bool keep>
    void normalise(Index columns, const Real* w, const Real* shift, Real* sums, Real* normal, Real* inverse) const {
        const Index H = hidden_;
        for (Index p = 0; p < columns; ++p, sums += 3 * H) {
            const Real inverse_rz = standardise(2 * H, epsilon, sums);
            const Real inverse_n = standardise(H, epsilon, sums + 2 * H);
            if constexpr (keep) {
                std::copy_n(sums, 3 * H, normal + p * 3 * H);
                inverse[2 * p] = inverse_rz;
                inverse[2 * p + 1] = inverse_n;
            }
            scale_shift(3 * H, w, shift, sums);
        }
    }

    /// d [columns][3 hidden]: in: adjoint of LN(sums) w + shift; out: of the sums. dnorm += adjoints of w, then of
    /// shift.
    void normalise_reverse(Index columns, const Real* w, const Real* normal, const Real* inverse, Real* d,
                           Real* dnorm) const {
        const Index H = hidden_;
        for (Index p = 0; p < columns; ++p, d += 3 * H, normal += 3 * H) {
            scale_shift_reverse(3 * H, w, normal, d, dnorm, dnorm + 3 * H);
            standardise_reverse(2 * H, normal, inverse[2 * p], d);
            standardise_reverse(H, normal + 2 * H, inverse[2 * p + 1], d + 2 * H);
        }
    }

    /// Adds to the gradients of a norm and a bias: with layer norm what `sums` has, else the sum of d.
    void spend(Index positions, const Real* d, Real* sums, Real* dnorm, Real* db) const {
        const Index rows = 3 * hidden_;
        if (norm_)
            add(2 * rows, sums, dnorm);
        else if (bias_)
            sum_columns(rows, positions, d, sums + rows);
        if (bias_) add(rows, sums + rows, db);
    }

    Index inputs_, hidden_;
    bool bias_, norm_, learned_state_, gates_kept_;
    RecurrentProduct<Real> product_;
};

}  // namespace

template <class Real>
LayerPointer<Real> gru(const RecurrentPart& part) {
    return std::make_unique<Gru<Real>>(part);
}

template LayerPointer<float> gru(const RecurrentPart&);
template LayerPointer<double> gru(const RecurrentPart&);
template LayerPointer<Dual<double>> gru(const RecurrentPart&);

}  // namespace backsweep::cpu
