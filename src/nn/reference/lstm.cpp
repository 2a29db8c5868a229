// One layer of an LSTM [HS97] by plain loops, gates in PyTorch's order i f g o:
//   z = W x + b_ih + U h + b_hh;  i, f, o = sigmoid(z), g = tanh(z);  c' = f c + i g;  h' = o tanh(c')
// With projection [Sak14] h' = R (o tanh(c')); with heads a part of z reads its own part of h only; with layer_norm
// [Ba16, eqs. (20) to (22)] z = LN(W x) + b_ih + LN(U h) + b_hh and h' = o tanh(LN(c')), each LN over all its numbers.
// Tape, a position, whatever `save` says: i f g o, h, c (both before the step), c', what layer_norm's normalisations made.
// SPDX-License-Identifier: MIT
#include "nn/described_layer.hpp"
#include "nn/reference/layers.hpp"
#include "nn/reference/normalise.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace backsweep::reference {
namespace {

using std::exp, std::tanh;  // Dual has its own

template <class Real>
Real sigmoid(Real x) {
    return Real{1} / (Real{1} + exp(-x));
}

template <class Real>
class Lstm final : public RecurrentLayer<Real> {
public:
    explicit Lstm(const RecurrentPart& part)
        : RecurrentLayer<Real>(part),
          I(part.inputs()),
          H(part.spec.hidden),
          S(part.spec.state()),
          heads_(part.spec.heads),
          bias_(part.spec.bias),
          projected_(part.spec.projection > 0),
          normed_(part.spec.layer_norm),
          learned_(part.spec.learned_state) {}

    Footprint footprint(Index steps, Index batch) const override {
        return {.inputs = I, .outputs = S, .carry = S + H, .tape = steps * batch * Taped(*this).size, .reads_x = true};
    }

    void advance(const Forward<Real>& call) const override { run(call, nullptr); }
    void record(const Forward<Real>& call) const override { run(call, call.tape); }

    void reverse(const Backward<Real>& call) const override {
        const Index B = call.at.batch;
        const Taped at(*this);
        const Weights<const Real> w = weights(call.parameters);
        const Weights<Real> d = weights(call.gradients);
        std::vector<Real> m(H), dm(H), tanh_c(H), dc_own(H), dz(4 * H), dr(4 * H);
        for (Index p = call.at.steps * B; p-- > 0;) {
            const Real* const tape = call.tape + p * at.size;
            const Real *const x = call.x + p * I, *const h = tape + at.h, *const c = tape + at.c;
            const Real* const c_next = tape + at.c_next;
            const Real *const i = tape + at.gates, *const f = i + H, *const g = f + H, *const o = g + H;
            Real* const dx = call.dx ? call.dx + p * I : nullptr;
            if (dx) std::fill_n(dx, I, Real{0});
            if (call.at.filler(p / B, p % B)) continue;
            Real* const dh = call.dcarry + (p % B) * S;
            Real* const dc = call.dcarry + B * S + (p % B) * H;

            for (Index k = 0; k < S; ++k) dh[k] += call.dy[p * S + k];
            for (Index k = 0; k < H; ++k) {
                tanh_c[k] = tanh(normed_ ? w.gain_c[k] * tape[at.c_hat + k] + w.shift_c[k] : c_next[k]);
                m[k] = o[k] * tanh_c[k];
                if (!projected_) dm[k] = dh[k];
            }
            if (projected_) {
                std::fill(dm.begin(), dm.end(), Real{0});
                for (Index s = 0; s < S; ++s)
                    for (Index k = 0; k < H; ++k) {
                        d.R[s * H + k] += dh[s] * m[k];
                        dm[k] += w.R[s * H + k] * dh[s];
                    }
            }
            for (Index k = 0; k < H; ++k) dc_own[k] = dm[k] * o[k] * (1 - tanh_c[k] * tanh_c[k]);
            if (normed_)
                normalise_reverse(H, tape + at.c_hat, tape[at.inverses + 2], w.gain_c, dc_own.data(), d.gain_c, d.shift_c);
            for (Index k = 0; k < H; ++k) {
                const Real dc_k = dc[k] + dc_own[k];
                dz[k] = dc_k * g[k] * i[k] * (1 - i[k]);
                dz[H + k] = dc_k * c[k] * f[k] * (1 - f[k]);
                dz[2 * H + k] = dc_k * i[k] * (1 - g[k] * g[k]);
                dz[3 * H + k] = dm[k] * tanh_c[k] * o[k] * (1 - o[k]);
                dc[k] = dc_k * f[k];
            }
            if (bias_)
                for (Index r = 0; r < 4 * H; ++r) {
                    d.b_ih[r] += dz[r];
                    d.b_hh[r] += dz[r];
                }
            std::copy(dz.begin(), dz.end(), dr.begin());
            if (normed_) {
                normalise_reverse(4 * H, tape + at.x_hat, tape[at.inverses], w.gain_ih, dz.data(), d.gain_ih, d.shift_ih);
                normalise_reverse(4 * H, tape + at.h_hat, tape[at.inverses + 1], w.gain_hh, dr.data(), d.gain_hh,
                                  d.shift_hh);
            }
            std::fill_n(dh, S, Real{0});
            const Index width = S / heads_;
            for (Index r = 0; r < 4 * H; ++r) {
                const Index part = part_of(r);
                for (Index j = 0; j < I; ++j) d.W[r * I + j] += dz[r] * x[j];
                for (Index j = 0; j < width; ++j) d.U[r * width + j] += dr[r] * h[part + j];
                for (Index j = 0; j < width; ++j) dh[part + j] += w.U[r * width + j] * dr[r];
                if (dx)
                    for (Index j = 0; j < I; ++j) dx[j] += w.W[r * I + j] * dz[r];
            }
            if (call.at.starts(p / B, p % B)) {
                for (Index k = 0; learned_ && k < S; ++k) d.h0[k] += dh[k];
                for (Index k = 0; learned_ && k < H; ++k) d.c0[k] += dc[k];
                std::fill_n(dh, S, Real{0});
                std::fill_n(dc, H, Real{0});
            }
        }
    }

private:
    /// Where the numbers of one position lie on the tape.
    struct Taped {
        explicit Taped(const Lstm& l)
            : gates(0), h(gates + 4 * l.H), c(h + l.S), c_next(c + l.H), x_hat(c_next + l.H), h_hat(x_hat + 4 * l.H),
              c_hat(h_hat + 4 * l.H), inverses(c_hat + l.H), size(l.normed_ ? inverses + 3 : x_hat) {}
        Index gates, h, c, c_next, x_hat, h_hat, c_hat, inverses, size;
    };

    template <class Number>
    struct Weights {
        Number *W, *U, *b_ih, *b_hh, *R, *gain_ih, *shift_ih, *gain_hh, *shift_hh, *gain_c, *shift_c, *h0, *c0;
    };
    /// In canonical order; null where the layer has none.
    template <class Number>
    Weights<Number> weights(Number* p) const noexcept {
        const auto next = [&p](bool there, Index size) {
            Number* const here = there ? p : nullptr;
            if (there) p += size;
            return here;
        };
        return {next(true, 4 * H * I),    next(true, 4 * H * S / heads_), next(bias_, 4 * H),      next(bias_, 4 * H),
                next(projected_, S * H),  next(normed_, 4 * H),           next(normed_, 4 * H),    next(normed_, 4 * H),
                next(normed_, 4 * H),     next(normed_, H),               next(normed_, H),        next(learned_, S),
                next(learned_, H)};
    }

    /// Where the part of h begins that row r of U reads.
    Index part_of(Index r) const noexcept { return r % H / (H / heads_) * (S / heads_); }

    void run(const Forward<Real>& call, Real* tape) const {
        const Index B = call.at.batch;
        const Taped at(*this);
        const Weights<const Real> w = weights(call.parameters);
        std::copy_n(call.carry_in, B * (S + H), call.carry_out);
        std::vector<Real> scratch(at.size);
        for (Index p = 0; p < call.at.steps * B; ++p) {
            const Real* const x = call.x + p * I;
            Real* const y = call.y ? call.y + p * S : nullptr;
            Real* const h = call.carry_out + (p % B) * S;
            Real* const c = call.carry_out + B * S + (p % B) * H;
            Real* const made = tape ? tape + p * at.size : scratch.data();
            if (call.at.filler(p / B, p % B)) {
                if (y) std::fill_n(y, S, Real{0});
                std::fill_n(made, at.size, Real{0});
                continue;
            }
            if (call.at.starts(p / B, p % B)) {
                for (Index k = 0; k < S; ++k) h[k] = learned_ ? w.h0[k] : 0;
                for (Index k = 0; k < H; ++k) c[k] = learned_ ? w.c0[k] : 0;
            }
            std::copy_n(h, S, made + at.h);
            std::copy_n(c, H, made + at.c);

            const std::vector<Real> z = sums(w, at, x, made);
            for (Index r = 0; r < 4 * H; ++r) made[at.gates + r] = r / H == 2 ? tanh(z[r]) : sigmoid(z[r]);
            const Real *const i = made + at.gates, *const f = i + H, *const g = f + H, *const o = g + H;
            std::vector<Real> m(H);
            for (Index k = 0; k < H; ++k) {
                c[k] = f[k] * c[k] + i[k] * g[k];
                made[at.c_next + k] = c[k];
                m[k] = c[k];
            }
            if (normed_) {
                made[at.inverses + 2] = normalise(H, m.data());
                for (Index k = 0; k < H; ++k) {
                    made[at.c_hat + k] = m[k];
                    m[k] = w.gain_c[k] * m[k] + w.shift_c[k];
                }
            }
            for (Index k = 0; k < H; ++k) m[k] = o[k] * tanh(m[k]);
            for (Index s = 0; s < S; ++s) {
                h[s] = projected_ ? 0 : m[s];
                for (Index k = 0; projected_ && k < H; ++k) h[s] += w.R[s * H + k] * m[k];
            }
            if (y) std::copy_n(h, S, y);
        }
    }

    /// z of x and the h in `made`, which keeps what the normalisations make.
    std::vector<Real> sums(const Weights<const Real>& w, const Taped& at, const Real* x, Real* made) const {
        const Real* const h = made + at.h;
        const Index width = S / heads_;
        std::vector<Real> from_x(4 * H), from_h(4 * H);
        for (Index r = 0; r < 4 * H; ++r) {
            for (Index j = 0; j < I; ++j) from_x[r] += w.W[r * I + j] * x[j];
            for (Index j = 0; j < width; ++j) from_h[r] += w.U[r * width + j] * h[part_of(r) + j];
        }
        if (normed_) {
            made[at.inverses] = normalise(4 * H, from_x.data());
            made[at.inverses + 1] = normalise(4 * H, from_h.data());
            std::copy(from_x.begin(), from_x.end(), made + at.x_hat);
            std::copy(from_h.begin(), from_h.end(), made + at.h_hat);
        }
        for (Index r = 0; r < 4 * H; ++r) {
            if (normed_) {
                from_x[r] = w.gain_ih[r] * from_x[r] + w.shift_ih[r];
                from_h[r] = w.gain_hh[r] * from_h[r] + w.shift_hh[r];
            }
            if (bias_) {
                from_x[r] += w.b_ih[r];
                from_h[r] += w.b_hh[r];
            }
            from_x[r] += from_h[r];
        }
        return from_x;
    }

    Index I, H, S, heads_;
    bool bias_, projected_, normed_, learned_;
};

}  // namespace

template <class Real>
LayerPointer<Real> lstm(const RecurrentPart& part) {
    return std::make_unique<Lstm<Real>>(part);
}

template LayerPointer<float> lstm(const RecurrentPart&);
template LayerPointer<double> lstm(const RecurrentPart&);
template LayerPointer<Dual<double>> lstm(const RecurrentPart&);

}  // namespace backsweep::reference
