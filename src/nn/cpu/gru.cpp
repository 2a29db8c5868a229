// One layer of a GRU [Cho14] with the reset after the recurrent product, blocks r z n:
//   s = W x + b_ih, p = U h + b_hh;  r, z = sigmoid(s + p), n = tanh(s_n + r p_n);  h' = (1 - z) n + z h
// Layer norm [Ba16, eqs. (27) to (29)]: s = LN(W x) w_ih + c_ih + b_ih, p = LN(U h) w_hh + c_hh + b_hh, LN over blocks
// r and z together and over n apart. Tape, 4 hidden a position: r z n, p_n; with layer norm (9 hidden + 4): r z n,
// LN(W x), LN(U h), 1 / deviations; or nothing, and reverse makes it block by block of steps. h is y.
// SPDX-License-Identifier: MIT
#include "backsweep/base/buffer.hpp"
#include "nn/cpu/input_product.hpp"
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

    // Workspace: W packed; of advance: shifts of s and p, p of a step, r z n of a block; of reverse: shifts, where p is
    // made again, sums for norm and biases, ds, dp and h before the steps of a block; W packed for s and what layer
    // norm keeps of a block, where those are made again.
    Footprint footprint(Index steps, Index batch) const override {
        const Index H = hidden_, positions = steps * batch, block_of = block_steps(H, steps, batch),
                    block = block_of * batch, Z = gates_apart<Real>(3 * H);
        const Index room = aligned<Real>(InputProduct<Real>::room(3 * H, inputs_, steps, block_of));
        const Index forward = 6 * H + 3 * H * batch + 3 * H * block;
        const Index backward = shifts() + sums() + (2 * Z + H) * block + (gates_kept_ || !norm_ ? 0 : rest(block));
        return {inputs_,
                H,
                H,
                gates_kept_ ? 3 * H * positions + rest(positions) : 0,
                std::max(room + forward, (gates_kept_ ? 1 : 2) * room + backward),
                true,
                true};
    }

    Index prepared() const override { return product_.prepared(); }
    void prepare(const Real* parameters, Real* prepared) const override {
        product_.prepare(parts(parameters).U, prepared);
    }

    void advance(const Forward<Real>& call) const override { run<false>(call); }
    void record(const Forward<Real>& call) const override { gates_kept_ ? run<true>(call) : run<false>(call); }

    // dW += ds x', dU += dp h_before', db_ih += sum of ds, db_hh += sum of dp, dx = W' ds, dh_before = z dh + U' dp;
    // with layer norm all but the biases' sums take ds and dp behind its reverse.
    // Block by block from the last: ds and dp are used while they are near.
    void reverse(const Backward<Real>& call) const override {
        const Index T = call.at.steps, B = call.at.batch, H = hidden_, block = block_steps(H, T, B);
        const Parts<const Real> w = parts(call.parameters);
        const Parts<Real> d = parts(call.gradients);
        const Index room = aligned<Real>(InputProduct<Real>::room(3 * H, inputs_, T, block));
        const InputProduct<Real> backward(true, 3 * H, inputs_, w.W, T, block, call.dx ? call.workspace : nullptr);
        Scratch scratch;
        scratch.shift_hh = call.workspace + (gates_kept_ ? 1 : 2) * room;
        scratch.shift_ih = scratch.shift_hh + 3 * H;
        scratch.sums = scratch.shift_hh + shifts();
        scratch.ds = scratch.sums + sums();
        scratch.dp = scratch.ds + gates_apart<Real>(3 * H) * block * B;
        scratch.before = scratch.dp + gates_apart<Real>(3 * H) * block * B;
        scratch.rest = scratch.before + H * block * B;
        if (shifts() > 0) shift(w.b_hh, w.norm_hh, scratch.shift_hh);
        if (!gates_kept_) shift(w.b_ih, w.norm_ih, scratch.shift_ih);
        const InputProduct<Real> forward =
            gates_kept_ ? backward : InputProduct<Real>(false, 3 * H, inputs_, w.W, T, block, call.workspace + room);
        for (Index last = T; last > 0;) {
            const Index first = (last - 1) / block * block;
            reverse_block(call, {first, last}, w, d, forward, backward, scratch);
            last = first;
        }
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

    /// Places in the workspace of reverse. `rest` is of layer norm that is made again.
    struct Scratch {
        Real *shift_hh, *shift_ih, *sums, *ds, *dp, *before, *rest;
    };
    Index shifts() const noexcept { return gates_kept_ ? norm_ ? 3 * hidden_ : 0 : 6 * hidden_; }
    Index sums() const noexcept { return (norm_ ? 6 : bias_ ? 3 : 0) * hidden_; }

    /// Parts of a tape, and the distance of the gates of two positions; only one of p_n and what follows it is there.
    template <class Number>
    struct Tape {
        Number* gates;
        Index apart;
        Number *p_n, *normal_ih, *normal_hh, *inverse_ih, *inverse_hh;
    };
    /// Elements behind the gates.
    Index rest(Index positions) const noexcept { return positions * (norm_ ? 6 * hidden_ + 4 : hidden_); }
    template <class Number>
    Tape<Number> taped(Number* gates, Index apart, Number* rest, Index positions) const noexcept {
        Number* const normal_hh = rest + positions * 3 * hidden_;
        Number* const inverse = normal_hh + positions * 3 * hidden_;
        return {gates, apart, rest, rest, normal_hh, inverse, inverse + 2 * positions};
    }
    /// Its parts from a position on.
    template <class Number>
    Tape<Number> behind(const Tape<Number>& tape, Index position) const noexcept {
        const Index H = hidden_;
        return {tape.gates + position * tape.apart,
                tape.apart,
                tape.p_n + position * H,
                tape.normal_ih + position * 3 * H,
                tape.normal_hh + position * 3 * H,
                tape.inverse_ih + 2 * position,
                tape.inverse_hh + 2 * position};
    }

    void reverse_block(const Backward<Real>& call, Range steps, const Parts<const Real>& w, const Parts<Real>& d,
                       const InputProduct<Real>& forward, const InputProduct<Real>& backward, const Scratch& s) const {
        const Segment<Real>& at = call.at;
        const Index B = at.batch, H = hidden_, Z = gates_apart<Real>(3 * H), from = steps.first * B,
                    positions = steps.size() * B;
        const Real* const x = call.x + from * inputs_;
        Real* const dh = call.dcarry;
        const Real* const before = states_before(at, steps, H, call.carry_in, w.h0, call.y, s.before);
        if (!gates_kept_) make(call, steps, w, forward, before, s);
        const Tape<const Real> tape =
            gates_kept_ ? behind(taped(call.tape, 3 * H, call.tape + at.steps * B * 3 * H, at.steps * B), from)
                        : taped<const Real>(s.ds, Z, s.rest, positions);
        if (norm_) std::fill_n(s.sums, sums(), Real{0});
        for (Index t = steps.last; t-- > steps.first;) {
            const Index first = t * B - from;
            Real* const ds = s.ds + first * Z;
            Real* const dp = s.dp + first * Z;
            for (Index b = 0; b < B; ++b) {
                const Index p = first + b;
                if (t > 0 && gates_kept_) {  // what the step before reads
                    fetch(3 * H, tape.gates + (p - B) * 3 * H);
                    if (!norm_) fetch(H, tape.p_n + (p - B) * H);
                }
                if (at.filler(t, b)) {
                    std::fill_n(ds + b * Z, 3 * H, Real{0});
                    std::fill_n(dp + b * Z, 3 * H, Real{0});
                    continue;
                }
                Real* const p_n = dp + b * Z + 2 * H;
                if (gates_kept_ && norm_) {
                    std::copy_n(tape.normal_hh + p * 3 * H + 2 * H, H, p_n);
                    scale_shift(H, w.norm_hh + 2 * H, s.shift_hh + 2 * H, p_n);
                }
                gru_cell_reverse(H, tape.gates + p * tape.apart, gates_kept_ && !norm_ ? tape.p_n + p * H : p_n,
                                 before + p * H, call.dy + (from + p) * H, dh + b * H, ds + b * Z, dp + b * Z);
            }
            if (norm_)
                normalise_reverse(B, w.norm_hh, tape.normal_hh + first * 3 * H, tape.inverse_hh + first * 2, dp, Z,
                                  s.sums);
            product_.reverse(B, w.U, call.prepared, dp, Z, Real{1}, dh);
            start_states_reverse(at, t, H, d.h0, dh);
        }
        spend(positions, s.dp, Z, s.sums, d.norm_hh, d.b_hh);
        product_.gradient(positions, before, s.dp, Z, d.U);

        if (norm_) {
            std::fill_n(s.sums, sums(), Real{0});
            normalise_reverse(positions, w.norm_ih, tape.normal_ih, tape.inverse_ih, s.ds, Z, s.sums);
        }
        spend(positions, s.ds, Z, s.sums, d.norm_ih, d.b_ih);
        multiply('N', 'T', inputs_, 3 * H, positions, x, inputs_, s.ds, Z, Real{1}, d.W, inputs_);
        if (call.dx) backward.reverse(positions, s.ds, Z, call.dx + from * inputs_);
    }

    /// keep: the tape is assigned; else r z n are made in the workspace, block by block.
    template <bool keep>
    void run(const Forward<Real>& call) const {
        const Segment<Real>& at = call.at;
        const Index T = at.steps, B = at.batch, H = hidden_, state = B * H, block = block_steps(H, T, B);
        const Parts<const Real> w = parts(call.parameters);
        const InputProduct<Real> inputs(false, 3 * H, inputs_, w.W, T, block, call.workspace);
        Real* const shift_ih = call.workspace + aligned<Real>(InputProduct<Real>::room(3 * H, inputs_, T, block));
        Real* const shift_hh = shift_ih + 3 * H;
        Real* const product = shift_hh + 3 * H;
        Real* const spare = product + 3 * state;
        Tape<Real> tape{};
        if constexpr (keep) tape = taped(call.tape, 3 * H, call.tape + T * 3 * state, T * B);

        shift(w.b_ih, w.norm_ih, shift_ih);
        shift(w.b_hh, w.norm_hh, shift_hh);
        const bool marks = marked(at);
        const Real* h = call.carry_in;
        if (marks) h = std::copy_n(h, state, call.carry_out) - state;  // where it is passed on in place
        for (Index t = 0; t < T; ++t) {
            Tape<Real> here{};
            if constexpr (keep) here = behind(tape, t * B);
            Real* const y = call.y + t * state;
            Real* const gates = keep ? here.gates : spare + t % block * 3 * state;
            if (t % block == 0)
                input_sums<keep>(at, {t, std::min(t + block, T)}, w, inputs, call.x, shift_ih, gates, 3 * H, here);
            if (marks) start_states(at, t, H, w.h0, call.carry_out);
            products<keep>(B, w, call.prepared, h, shift_hh, product, 3 * H, here);
            for (Index b = 0; b < B; ++b) {
                if (at.filler(t, b))
                    std::fill_n(y + b * H, H, Real{0});
                else
                    gru_cell(H, gates + b * 3 * H, product + b * 3 * H, h + b * H, y + b * H);
                if constexpr (keep)
                    if (!norm_) std::copy_n(product + b * 3 * H + 2 * H, H, here.p_n + b * H);
            }
            if (marks)
                update_states(at, t, H, y, call.carry_out);
            else
                h = y;
        }
        if (!marks) std::copy_n(h, state, call.carry_out);
    }

    /// s of some steps; keep: layer norm's part of the tape, from their first position on, is assigned.
    template <bool keep>
    void input_sums(const Segment<Real>& at, Range steps, const Parts<const Real>& w, const InputProduct<Real>& inputs,
                    const Real* x, const Real* shift_ih, Real* s, Index apart, const Tape<Real>& tape) const {
        const Index positions = steps.size() * at.batch;
        inputs.forward(positions, x + steps.first * at.batch * inputs_, norm_ ? nullptr : shift_ih, s, apart);
        for (Index t = steps.first; t < steps.last; ++t)
            clear_fillers(at, t, 3 * hidden_, s + (t - steps.first) * at.batch * apart, apart);
        if (norm_) normalise<keep>(positions, w.norm_ih, shift_ih, s, apart, tape.normal_ih, tape.inverse_ih);
    }

    /// p of `columns` positions, likewise.
    template <bool keep>
    void products(Index columns, const Parts<const Real>& w, const Real* prepared, const Real* h, const Real* shift_hh,
                  Real* p, Index apart, const Tape<Real>& tape) const {
        product_.forward(columns, w.U, prepared, h, Real{0}, p, apart, norm_ ? nullptr : shift_hh);
        if (norm_) normalise<keep>(columns, w.norm_hh, shift_hh, p, apart, tape.normal_hh, tape.inverse_hh);
    }

    /// r z n of a block in the place of ds, p in that of dp, and what layer norm keeps, without recurrence.
    void make(const Backward<Real>& call, Range steps, const Parts<const Real>& w, const InputProduct<Real>& forward,
              const Real* before, const Scratch& s) const {
        const Index H = hidden_, Z = gates_apart<Real>(3 * H), positions = steps.size() * call.at.batch;
        const Tape<Real> tape = norm_ ? taped(s.ds, Z, s.rest, positions) : Tape<Real>{};
        input_sums<true>(call.at, steps, w, forward, call.x, s.shift_ih, s.ds, Z, tape);
        products<true>(positions, w, call.prepared, before, s.shift_hh, s.dp, Z, tape);
        for (Index k = 0; k < Z * positions; k += Z) gru_gates(H, s.ds + k, s.dp + k);
    }

    /// to := the sum of biases of the cell and of the layer norm, 0 where there are none.
    void shift(const Real* b, const Real* norm, Real* to) const {
        std::fill_n(to, 3 * hidden_, Real{0});
        if (bias_) add(3 * hidden_, b, to);
        if (norm_) add(3 * hidden_, norm + 3 * hidden_, to);
    }

    /// sums [columns][3 hidden], `apart` elements apart, := LN(sums) w + shift; keep: LN(sums) and its two 1 /
    /// deviations go to the tape.
    template <bool keep>
    void normalise(Index columns, const Real* w, const Real* shift, Real* sums, Index apart, Real* normal,
                   Real* inverse) const {
        const Index H = hidden_;
        for (Index p = 0; p < columns; ++p, sums += apart) {
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

    /// d [columns][3 hidden], likewise: in: adjoint of LN(sums) w + shift; out: of the sums. dnorm += adjoints of w,
    /// then of shift.
    void normalise_reverse(Index columns, const Real* w, const Real* normal, const Real* inverse, Real* d, Index apart,
                           Real* dnorm) const {
        const Index H = hidden_;
        for (Index p = 0; p < columns; ++p, d += apart, normal += 3 * H) {
            scale_shift_reverse(3 * H, w, normal, d, dnorm, dnorm + 3 * H);
            standardise_reverse(2 * H, normal, inverse[2 * p], d);
            standardise_reverse(H, normal + 2 * H, inverse[2 * p + 1], d + 2 * H);
        }
    }

    /// Adds to the gradients of a norm and a bias: with layer norm what `sums` has, else the sum of d.
    void spend(Index positions, const Real* d, Index apart, Real* sums, Real* dnorm, Real* db) const {
        const Index rows = 3 * hidden_;
        if (norm_)
            add(2 * rows, sums, dnorm);
        else if (bias_)
            sum_columns(rows, positions, d, apart, sums);
        if (bias_) add(rows, norm_ ? sums + rows : sums, db);
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
