// One layer of an LSTM [HS97]: one product with the inputs of a block of steps, then one with h per step; with
// projection [Sak14] h = R m of m = o tanh(c), else h = m.
// Tape, 5 hidden a position: the gates i f g o, c; or c alone, and reverse makes the gates again, by one product with x
// and one with h for a block of steps. h is y; m is o tanh(c) again, same bits.
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

    // Workspace: W packed; of advance: sum of biases, zeros, two c, m, gates of a block; of reverse: sum of biases or
    // for them, zeros, adjoints of a block's gates, h before its steps, an adjoint of h, m of one position, with
    // projection of the block, adjoints of m at one step and of its h; W packed for the gates, where those are made
    // again.
    Footprint footprint(Index steps, Index batch) const override {
        const Index H = hidden_, S = state_, block_of = block_steps(hidden_, steps, batch), block = block_of * batch,
                    Z = gates_apart<Real>(4 * H);
        const Index room = aligned<Real>(InputProduct<Real>::room(4 * H, inputs_, steps, block_of));
        const Index forward = 5 * H + 2 * H * batch + (projected_ ? H * batch : 0) + 4 * H * block;
        const Index backward =
            5 * H + Z * block + S * (block + batch) + (projected_ ? H * (block + batch) + S * block : H);
        return {inputs_,
                S,
                S + H,
                steps * batch * (gates_kept_ ? 5 : 1) * H,
                std::max(room + forward, (gates_kept_ ? 1 : 2) * room + backward),
                true,
                true};
    }

    Index prepared() const override { return product_.prepared(); }
    void prepare(const Real* parameters, Real* prepared) const override {
        product_.prepare(weights(parameters).U, prepared);
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
    // Block by block from the last: dz is used while it is near.
    void reverse(const Backward<Real>& call) const override {
        const Index T = call.at.steps, B = call.at.batch, H = hidden_, S = state_, block = block_steps(H, T, B);
        const Weights<const Real> w = weights(call.parameters);
        const Weights<Real> d = weights(call.gradients);
        const Real* const c = call.tape + (gates_kept_ ? T * B * 4 * H : 0);
        const Index room = aligned<Real>(InputProduct<Real>::room(4 * H, inputs_, T, block));
        const InputProduct<Real> backward(true, 4 * H, inputs_, w.W, T, block, call.dx ? call.workspace : nullptr);
        Scratch scratch;
        scratch.row = call.workspace + (gates_kept_ ? 1 : 2) * room;
        scratch.zeros = scratch.row + 4 * H;
        scratch.dz = scratch.zeros + H;
        scratch.h = scratch.dz + gates_apart<Real>(4 * H) * block * B;
        scratch.dh_before = scratch.h + S * block * B;
        scratch.m = scratch.dh_before + S * B;
        scratch.dm = scratch.m + H * block * B;
        scratch.dh_all = scratch.dm + H * B;
        std::fill_n(scratch.zeros, H, Real{0});
        const InputProduct<Real> forward =
            gates_kept_ ? backward : InputProduct<Real>(false, 4 * H, inputs_, w.W, T, block, call.workspace + room);
        for (Index last = T; last > 0;) {
            const Index first = (last - 1) / block * block;
            reverse_block(call, {first, last}, w, d, forward, backward, c, scratch);
            last = first;
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

    /// Places in the workspace of reverse. m, dm and dh_all are of layers with projection; else m is of one position.
    struct Scratch {
        Real *row, *zeros, *dz, *h, *dh_before, *m, *dm, *dh_all;
    };

    void reverse_block(const Backward<Real>& call, Range steps, const Weights<const Real>& w, const Weights<Real>& d,
                       const InputProduct<Real>& forward, const InputProduct<Real>& backward, const Real* c,
                       const Scratch& s) const {
        const Segment<Real>& at = call.at;
        const Index B = at.batch, I = inputs_, H = hidden_, S = state_, Z = gates_apart<Real>(4 * H),
                    from = steps.first * B, positions = steps.size() * B, apart = gates_kept_ ? 4 * H : Z;
        const bool marks = marked(at);
        const Real* const fresh_c = learned_ ? w.c0 : s.zeros;
        const Real* const x = call.x + from * I;
        Real* const dh = call.dcarry;
        Real* const dc = dh + B * S;
        const Real* const before = states_before(at, steps, S, call.carry_in, w.h0, call.y, s.h);
        if (!gates_kept_) {
            sum_biases(w, s.row);
            forward.forward(positions, x, s.row, s.dz, Z);
            product_.forward(positions, w.U, call.prepared, before, Real{1}, s.dz, Z);
            for (Index p = 0; p < positions; ++p) lstm_gates(H, s.dz + p * Z);
        }
        for (Index t = steps.last; t-- > steps.first;) {
            const Real* const c_before = t > 0 ? c + (t - 1) * B * H : call.carry_in + B * S;
            Real* const dz = s.dz + (t * B - from) * Z;
            const Real* const gates = gates_kept_ ? call.tape + t * B * 4 * H : dz;
            const Real* dy = call.dy + t * B * S;
            if (projected_) {
                Real* const total = s.dh_all + (t * B - from) * S;
                std::copy_n(dy, B * S, total);
                add(B * S, dh, total);
                clear_fillers(at, t, S, total);
                apply_transposed(S, H, B, w.R, total, Real{0}, s.dm);
                dy = s.dm;
            }
            for (Index b = 0; b < B; ++b) {
                const Index p = t * B + b;
                if (t > 0) {  // what the step before reads
                    if (gates_kept_) fetch(4 * H, call.tape + (p - B) * 4 * H);
                    fetch(H, c + (p - B) * H);
                }
                Real* const m = s.m + (projected_ ? (p - from) * H : 0);
                if (at.filler(t, b)) {
                    std::fill_n(dz + b * Z, 4 * H, Real{0});
                    if (projected_) std::fill_n(m, H, Real{0});
                    continue;
                }
                lstm_cell_reverse(H, gates + b * apart, at.starts(t, b) ? fresh_c : c_before + b * H, c + p * H,
                                  dy + b * H, projected_ ? s.zeros : dh + b * H, dc + b * H, dz + b * Z, m);
            }
            product_.reverse(B, w.U, call.prepared, dz, Z, Real{0}, marks ? s.dh_before : dh);
            if (!marks) continue;
            update_states(at, t, S, s.dh_before, dh);
            start_states_reverse(at, t, S, d.h0, dh);
            start_states_reverse(at, t, H, d.c0, dc);
        }

        if (projected_) add_outer(S, H, positions, s.dh_all, s.m, d.R);
        product_.gradients(positions, before, s.dz, Z, d.U, I, x, d.W);
        if (bias_) {
            sum_columns(4 * H, positions, s.dz, Z, s.row);
            add(4 * H, s.row, d.b_ih);
            add(4 * H, s.row, d.b_hh);
        }
        if (call.dx) backward.reverse(positions, s.dz, Z, call.dx + from * I);
    }

    void sum_biases(const Weights<const Real>& w, Real* row) const {
        std::fill_n(row, 4 * hidden_, Real{0});
        if (!bias_) return;
        add(4 * hidden_, w.b_ih, row);
        add(4 * hidden_, w.b_hh, row);
    }

    /// Gates and c are made where the tape keeps them; null: in the workspace, gates block by block, c in two places by
    /// turns.
    void run(const Forward<Real>& call, Real* kept_gates, Real* kept_c) const {
        const Segment<Real>& at = call.at;
        const Index T = at.steps, B = at.batch, I = inputs_, H = hidden_, S = state_, block = block_steps(H, T, B);
        const bool marks = marked(at);
        const Weights<const Real> w = weights(call.parameters);
        const InputProduct<Real> inputs(false, 4 * H, I, w.W, T, block, call.workspace);
        Real* const row = call.workspace + aligned<Real>(InputProduct<Real>::room(4 * H, I, T, block));
        Real* const zeros = row + 4 * H;
        Real* const cells = kept_c ? kept_c : zeros + H;
        Real* const m = zeros + H + 2 * B * H;
        Real* const spare = m + (projected_ ? B * H : 0);
        sum_biases(w, row);
        std::fill_n(zeros, H, Real{0});
        const Real* const fresh_c = learned_ ? w.c0 : zeros;

        const Real* h = call.carry_in;
        const Real* c = call.carry_in + B * S;
        if (marks) h = std::copy_n(h, B * S, call.carry_out) - B * S;  // where it is passed on in place
        for (Index t = 0; t < T; ++t) {
            if (t % block == 0)
                inputs.forward(std::min(block, T - t) * B, call.x + t * B * I, row,
                               kept_gates ? kept_gates + t * B * 4 * H : spare, 4 * H);
            Real* const z = kept_gates ? kept_gates + t * B * 4 * H : spare + t % block * B * 4 * H;
            Real* const c_next = cells + (kept_c ? t : t % 2) * B * H;
            Real* const y = call.y + t * B * S;
            Real* const m_next = projected_ ? m : y;
            if (marks) start_states(at, t, S, w.h0, call.carry_out);
            product_.forward(B, w.U, call.prepared, h, Real{1}, z, 4 * H);
            for (Index b = 0; b < B; ++b) {
                if (at.filler(t, b)) {
                    std::fill_n(z + b * 4 * H, 4 * H, Real{0});
                    std::copy_n(c + b * H, H, c_next + b * H);
                    std::fill_n(m_next + b * H, H, Real{0});
                    continue;
                }
                lstm_cell(H, z + b * 4 * H, at.starts(t, b) ? fresh_c : c + b * H, c_next + b * H, m_next + b * H);
            }
            if (projected_) apply(S, H, B, w.R, m, nullptr, y, S);
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
