// One layer of an LSTM with layer normalisation [Ba16, eqs. (20) to (22)]: as the LSTM of lstm.cpp, but
//   z = gain_ih LN(W x) + shift_ih + b_ih + gain_hh LN(U h) + shift_hh + b_hh,   h = o tanh(gain_c LN(c) + shift_c)
// with LN(a) = (a - mean) / sqrt(variance + 1e-5) over all numbers of a, of the gates all four blocks, variance biased.
// Tape, (9 hidden + 2) a position: c, LN(W x), LN(U h), 1 / deviations of the two products; or c alone, and reverse
// makes the rest again, block by block of steps. h is y.
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

    // Workspace: W packed; of advance: shifts, gates of one position, zeros, LN(U h) of one step, two c, LN(W x) of a
    // block; of reverse: shifts, their adjoint, gates of one position and the adjoints of their sums, zeros, two
    // scratch rows, h of one position, an adjoint of h, adjoints of both products and h before the steps of a block; W
    // packed for them and 1 / deviations of a block, where those are made again in the place of their adjoints.
    Footprint footprint(Index steps, Index batch) const override {
        const Index H = hidden_, positions = steps * batch, block_of = block_steps(H, steps, batch),
                    block = block_of * batch;
        const Index room = aligned<Real>(InputProduct<Real>::room(4 * H, inputs_, steps, block_of));
        const Index forward = H * (9 + 6 * batch + 4 * block);
        const Index backward = H * (20 + batch + block) + 2 * gates_apart<Real>(4 * H) * block;
        return {inputs_,
                H,
                2 * H,
                positions * (gates_kept_ ? 9 * H + 2 : H),
                std::max(room + forward, gates_kept_ ? room + backward : 2 * room + backward + 2 * block),
                true,
                true};
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
    // Block by block from the last: da and dr are used while they are near.
    void reverse(const Backward<Real>& call) const override {
        const Index T = call.at.steps, B = call.at.batch, H = hidden_, block = block_steps(H, T, B);
        const Weights<const Real> w = weights(call.parameters);
        const Weights<Real> d = weights(call.gradients);
        const Index room = aligned<Real>(InputProduct<Real>::room(4 * H, inputs_, T, block));
        const InputProduct<Real> backward(true, 4 * H, inputs_, w.W, T, block, call.dx ? call.workspace : nullptr);
        Scratch scratch;
        scratch.shift = call.workspace + (gates_kept_ ? 1 : 2) * room;
        scratch.dshift = scratch.shift + 4 * H;
        scratch.gates = scratch.dshift + 4 * H;
        scratch.dz = scratch.gates + 4 * H;
        scratch.zeros = scratch.dz + 4 * H;
        scratch.rows = scratch.zeros + H;
        scratch.h_again = scratch.rows + 2 * H;
        scratch.dh_before = scratch.h_again + H;
        scratch.da = scratch.dh_before + B * H;
        scratch.dr = scratch.da + block * B * gates_apart<Real>(4 * H);
        scratch.h = scratch.dr + block * B * gates_apart<Real>(4 * H);
        scratch.inverses = scratch.h + block * B * H;
        sum_shifts(w, scratch.shift);
        std::fill_n(scratch.dshift, 4 * H, Real{0});
        std::fill_n(scratch.zeros, H, Real{0});
        const InputProduct<Real> forward =
            gates_kept_ ? backward : InputProduct<Real>(false, 4 * H, inputs_, w.W, T, block, call.workspace + room);
        for (Index last = T; last > 0;) {
            const Index first = (last - 1) / block * block;
            reverse_block(call, {first, last}, w, d, forward, backward, scratch);
            last = first;
        }
        add(4 * H, scratch.dshift, d.shift_ih);
        add(4 * H, scratch.dshift, d.shift_hh);
        if (!bias_) return;
        add(4 * H, scratch.dshift, d.b_ih);
        add(4 * H, scratch.dshift, d.b_hh);
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

    /// Places in the workspace of reverse. h_again is not read, dh_before is where dh is held at fillers; the last is
    /// of products that are made again.
    struct Scratch {
        Real *shift, *dshift, *gates, *dz, *zeros, *rows, *h_again, *dh_before, *da, *dr, *h, *inverses;
    };

    void reverse_block(const Backward<Real>& call, Range steps, const Weights<const Real>& w, const Weights<Real>& d,
                       const InputProduct<Real>& forward, const InputProduct<Real>& backward, const Scratch& s) const {
        const Segment<Real>& at = call.at;
        const Index B = at.batch, I = inputs_, H = hidden_, from = steps.first * B, positions = steps.size() * B,
                    all = at.steps * B, Z = gates_apart<Real>(4 * H), apart = gates_kept_ ? 4 * H : Z;
        const bool marks = marked(at);
        const Real* const c = call.tape;
        const Real* const x = call.x + from * I;
        const Real* const fresh_c = learned_ ? w.c0 : s.zeros;
        Real* const dh = call.dcarry;
        Real* const dc = dh + B * H;
        const Real* const before = states_before(at, steps, H, call.carry_in, w.h0, call.y, s.h);
        Products<const Real> kept{s.da, s.dr, s.inverses, s.inverses + positions};
        if (gates_kept_) {
            kept = places(c + all * H, all);
            kept = {kept.from_x + from * 4 * H, kept.from_h + from * 4 * H, kept.inverse_x + from,
                    kept.inverse_h + from};
        } else {
            forward.forward(positions, x, nullptr, s.da, Z);
            product_.forward(positions, w.U, call.prepared, before, Real{0}, s.dr, Z);
            for (Index p = 0; p < positions; ++p) {
                s.inverses[p] = standardise(4 * H, epsilon, s.da + p * Z);
                s.inverses[positions + p] = standardise(4 * H, epsilon, s.dr + p * Z);
            }
        }
        for (Index t = steps.last; t-- > steps.first;) {
            const Real* const c_before = t > 0 ? c + (t - 1) * B * H : call.carry_in + B * H;
            for (Index b = 0; b < B; ++b) {
                const Index p = t * B + b - from;
                Real* const da = s.da + p * Z;
                Real* const dr = s.dr + p * Z;
                if (t > 0) {  // what the step before reads
                    if (gates_kept_) {
                        fetch(4 * H, kept.from_x + (p - B) * 4 * H);
                        fetch(4 * H, kept.from_h + (p - B) * 4 * H);
                    }
                    fetch(H, c + (from + p - B) * H);
                }
                if (at.filler(t, b)) {
                    std::fill_n(da, 4 * H, Real{0});
                    std::fill_n(dr, 4 * H, Real{0});
                    continue;
                }
                const Real* from_x = kept.from_x + p * apart;
                const Real* from_h = kept.from_h + p * apart;
                normed_lstm_gates(H, w.gain_ih, from_x, w.gain_hh, from_h, s.shift, s.gates);
                normed_lstm_cell_reverse(H, epsilon, s.gates, at.starts(t, b) ? fresh_c : c_before + b * H,
                                         c + (from + p) * H, w.gain_c, w.shift_c, call.dy + (from + p) * H, dh + b * H,
                                         dc + b * H, s.dz, s.h_again, d.gain_c, d.shift_c, s.rows);
                add(4 * H, s.dz, s.dshift);
                normed_sums_reverse(4 * H, w.gain_hh, from_h, kept.inverse_h[p], s.dz, d.gain_hh, dr);
                normed_sums_reverse(4 * H, w.gain_ih, from_x, kept.inverse_x[p], s.dz, d.gain_ih, da);
            }
            product_.reverse(B, w.U, call.prepared, s.dr + (t * B - from) * Z, Z, Real{0}, marks ? s.dh_before : dh);
            if (!marks) continue;
            update_states(at, t, H, s.dh_before, dh);
            start_states_reverse(at, t, H, d.h0, dh);
            start_states_reverse(at, t, H, d.c0, dc);
        }

        product_.gradient(positions, before, s.dr, Z, d.U);
        multiply('N', 'T', I, 4 * H, positions, x, I, s.da, Z, Real{1}, d.W, I);
        if (call.dx) backward.reverse(positions, s.da, Z, call.dx + from * I);
    }

    /// What z has at every position.
    void sum_shifts(const Weights<const Real>& w, Real* shift) const {
        std::copy_n(w.shift_ih, 4 * hidden_, shift);
        add(4 * hidden_, w.shift_hh, shift);
        if (!bias_) return;
        add(4 * hidden_, w.b_ih, shift);
        add(4 * hidden_, w.b_hh, shift);
    }

    /// c and products are made where the tape keeps them; null: in the workspace, LN(W x) block by block, LN(U h) and c
    /// for as long as they are needed.
    void run(const Forward<Real>& call, Real* kept_c, const Products<Real>& kept) const {
        const Segment<Real>& at = call.at;
        const Index T = at.steps, B = at.batch, I = inputs_, H = hidden_, block = block_steps(H, T, B);
        const bool marks = marked(at);
        const Weights<const Real> w = weights(call.parameters);
        const InputProduct<Real> inputs(false, 4 * H, I, w.W, T, block, call.workspace);
        Real* const shift = call.workspace + aligned<Real>(InputProduct<Real>::room(4 * H, I, T, block));
        Real* const gates = shift + 4 * H;
        Real* const zeros = gates + 4 * H;
        Real* const one_step = zeros + H;
        Real* const two_cells = one_step + B * 4 * H;
        Real* const spare = two_cells + 2 * B * H;
        sum_shifts(w, shift);
        std::fill_n(zeros, H, Real{0});
        const Real* const fresh_c = learned_ ? w.c0 : zeros;

        const Real* h = call.carry_in;
        const Real* c = call.carry_in + B * H;
        if (marks) h = std::copy_n(h, B * H, call.carry_out) - B * H;  // where it is passed on in place
        for (Index t = 0; t < T; ++t) {
            Real* const from_x = kept.from_x ? kept.from_x + t * B * 4 * H : spare + t % block * B * 4 * H;
            Real* const from_h = kept.from_h ? kept.from_h + t * B * 4 * H : one_step;
            Real* const c_next = kept_c ? kept_c + t * B * H : two_cells + t % 2 * B * H;
            Real* const y = call.y + t * B * H;
            if (t % block == 0) inputs.forward(std::min(block, T - t) * B, call.x + t * B * I, nullptr, from_x, 4 * H);
            if (marks) start_states(at, t, H, w.h0, call.carry_out);
            product_.forward(B, w.U, call.prepared, h, Real{0}, from_h, 4 * H);
            for (Index b = 0; b < B; ++b) {
                const Index p = t * B + b;
                Real* const x_p = from_x + b * 4 * H;
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
                    normed_lstm_gates(H, w.gain_ih, x_p, w.gain_hh, h_p, shift, gates);
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
