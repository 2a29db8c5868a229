// One layer of a GRU [Cho14] by plain loops, the reset after the recurrent product, row blocks r z n:
//   s = W x + b_ih, p = U h + b_hh;  r, z = sigmoid(s + p), n = tanh(s + r p);  h' = (1 - z) n + z h
// Layer norm [Ba16, eqs. (27) to (29)]: s = LN(W x) w_ih + c_ih + b_ih, p = LN(U h) w_hh + c_hh + b_hh, LN being over
// the sums of r and z together, and over those of n apart. A filler holds h and gives y = 0. Tape, a position, whatever
// `save` says: r z n, p, h before the step, LN(W x), LN(U h), their 1 / deviations.
// SPDX-License-Identifier: MIT
#include "nn/described_layer.hpp"
#include "nn/reference/layers.hpp"

#include <cmath>
#include <vector>

namespace backsweep::reference {
namespace {

using std::exp, std::sqrt, std::tanh;  // Dual has its own

template <class Real>
Real sigmoid(Real x) {
    return Real{1} / (Real{1} + exp(-x));
}

/// LN of v[0 .. n), in place; returns 1 / deviation.
template <class Real>
Real normalise(Index n, Real* v) {
    Real mean = 0, variance = 0;
    for (Index k = 0; k < n; ++k) mean += v[k] / static_cast<Real>(n);
    for (Index k = 0; k < n; ++k) variance += (v[k] - mean) * (v[k] - mean) / static_cast<Real>(n);
    const Real inverse = 1 / sqrt(variance + static_cast<Real>(1e-5));
    for (Index k = 0; k < n; ++k) v[k] = (v[k] - mean) * inverse;
    return inverse;
}

/// d: in: adjoint of `normal` = LN(v); out: of v.
template <class Real>
void normalise_reverse(Index n, const Real* normal, Real inverse, Real* d) {
    Real mean = 0, along = 0;
    for (Index k = 0; k < n; ++k) mean += d[k] / static_cast<Real>(n);
    for (Index k = 0; k < n; ++k) along += d[k] * normal[k] / static_cast<Real>(n);
    for (Index k = 0; k < n; ++k) d[k] = inverse * (d[k] - mean - normal[k] * along);
}

template <class Real>
class Gru final : public RecurrentLayer<Real> {
public:
    explicit Gru(const RecurrentPart& part)
        : RecurrentLayer<Real>(part),
          I(part.inputs()),
          H(part.spec.hidden),
          S(part.spec.hidden / part.spec.heads),
          bias_(part.spec.bias),
          norm_(part.spec.layer_norm),
          learned_state_(part.spec.learned_state) {}

    Footprint footprint(Index steps, Index batch) const override {
        return {.inputs = I, .outputs = H, .carry = H, .tape = steps * batch * taped(), .reads_x = true};
    }

    void advance(const Forward<Real>& call) const override { run(call, nullptr); }
    void record(const Forward<Real>& call) const override { run(call, call.tape); }

    void reverse(const Backward<Real>& call) const override {
        const Index B = call.at.batch;
        const Weights<const Real> w = weights(call.parameters);
        const Weights<Real> d = weights(call.gradients);
        std::vector<Real> ds_all(static_cast<std::size_t>(3 * H)), dp_all(ds_all);
        Real *const ds = ds_all.data(), *const dp = dp_all.data();
        for (Index position = call.at.steps * B - 1; position >= 0; --position) {
            const Index step = position / B, sequence = position % B;
            const Real* const x = call.x + position * I;
            const Real *const r = call.tape + position * taped(), *const z = r + H, *const n = z + H;
            const Real* const p = n + H;
            const Real* const h = p + 3 * H;
            Real* const dh = call.dcarry + sequence * H;
            if (call.dx)
                for (Index j = 0; j < I; ++j) call.dx[position * I + j] = 0;
            if (call.at.filler(step, sequence)) continue;
            for (Index k = 0; k < H; ++k) {
                const Real dh_k = dh[k] + call.dy[position * H + k];
                const Real dn = dh_k * (1 - z[k]) * (1 - n[k] * n[k]);
                ds[k] = dp[k] = dn * p[2 * H + k] * r[k] * (1 - r[k]);
                ds[H + k] = dp[H + k] = dh_k * (h[k] - n[k]) * z[k] * (1 - z[k]);
                ds[2 * H + k] = dn;
                dp[2 * H + k] = dn * r[k];
                dh[k] = dh_k * z[k];
            }
            for (Index k = 0; k < 3 * H && bias_; ++k) {
                d.b_ih[k] += ds[k];
                d.b_hh[k] += dp[k];
            }
            if (norm_) {
                const Real *const normal_ih = h + H, *const normal_hh = normal_ih + 3 * H,
                                  *const inverse = normal_hh + 3 * H;
                norm_reverse(w.norm_ih, normal_ih, inverse, ds, d.norm_ih);
                norm_reverse(w.norm_hh, normal_hh, inverse + 2, dp, d.norm_hh);
            }
            for (Index k = 0; k < 3 * H; ++k) {
                const Index head = k % H / S * S;  // its first unit
                for (Index j = 0; j < I; ++j) d.W[k * I + j] += ds[k] * x[j];
                for (Index j = 0; j < S; ++j) d.U[k * S + j] += dp[k] * h[head + j];
                for (Index j = 0; j < S; ++j) dh[head + j] += w.U[k * S + j] * dp[k];
                if (call.dx)
                    for (Index j = 0; j < I; ++j) call.dx[position * I + j] += w.W[k * I + j] * ds[k];
            }
            if (!call.at.starts(step, sequence)) continue;
            for (Index k = 0; k < H; ++k) {
                if (learned_state_) d.h0[k] += dh[k];
                dh[k] = 0;
            }
        }
    }

private:
    /// Numbers on the tape for one position.
    Index taped() const noexcept { return 7 * H + (norm_ ? 6 * H + 4 : 0); }

    template <class Number>
    struct Weights {
        Number *W, *U, *b_ih, *b_hh;
        Number *norm_ih, *norm_hh;  // weight, then bias
        Number* h0;
    };
    template <class Number>
    Weights<Number> weights(Number* p) const noexcept {
        Number* const b = p + 3 * H * (I + S);
        Number* const norm = b + (bias_ ? 6 * H : 0);
        return {p, p + 3 * H * I, b, b + 3 * H, norm, norm + 6 * H, norm + (norm_ ? 12 * H : 0)};
    }

    void run(const Forward<Real>& call, Real* tape) const {
        const Index B = call.at.batch;
        const Weights<const Real> w = weights(call.parameters);
        for (Index k = 0; k < B * H; ++k) call.carry_out[k] = call.carry_in[k];
        std::vector<Real> s_all(static_cast<std::size_t>(3 * H)), p_all(s_all),
            normals(static_cast<std::size_t>(6 * H + 4));
        Real *const s = s_all.data(), *const p = p_all.data();
        Real *const normal_ih = normals.data(), *const normal_hh = normal_ih + 3 * H,
                    *const inverse = normal_hh + 3 * H;
        for (Index position = 0; position < call.at.steps * B; ++position) {
            const Index step = position / B, sequence = position % B;
            const Real* const x = call.x + position * I;
            Real* const h = call.carry_out + sequence * H;
            if (call.at.filler(step, sequence)) {
                for (Index k = 0; call.y && k < H; ++k) call.y[position * H + k] = 0;
                for (Index k = 0; tape && k < taped(); ++k) *tape++ = 0;
                continue;
            }
            if (call.at.starts(step, sequence))
                for (Index k = 0; k < H; ++k) h[k] = learned_state_ ? w.h0[k] : 0;
            for (Index k = 0; k < 3 * H; ++k) {
                s[k] = p[k] = 0;
                for (Index j = 0; j < I; ++j) s[k] += w.W[k * I + j] * x[j];
                for (Index j = 0; j < S; ++j) p[k] += w.U[k * S + j] * h[k % H / S * S + j];
            }
            if (norm_) {
                norm(w.norm_ih, s, normal_ih, inverse);
                norm(w.norm_hh, p, normal_hh, inverse + 2);
            }
            for (Index k = 0; k < 3 * H && bias_; ++k) {
                s[k] += w.b_ih[k];
                p[k] += w.b_hh[k];
            }
            for (Index k = 0; k < 2 * H; ++k) s[k] = sigmoid(s[k] + p[k]);
            for (Index k = 0; k < H; ++k) s[2 * H + k] = tanh(s[2 * H + k] + s[k] * p[2 * H + k]);
            if (tape) {
                for (const Real gate : s_all) *tape++ = gate;
                for (const Real sum : p_all) *tape++ = sum;
                for (Index k = 0; k < H; ++k) *tape++ = h[k];
                for (Index k = 0; k < 6 * H + 4 && norm_; ++k) *tape++ = normals[static_cast<std::size_t>(k)];
            }
            for (Index k = 0; k < H; ++k) {
                const Real z = s[H + k], n = s[2 * H + k];
                h[k] = (1 - z) * n + z * h[k];
                if (call.y) call.y[position * H + k] = h[k];
            }
        }
    }

    /// v := LN(v) w + c for both parts of v; LN(v) and the two 1 / deviations are assigned.
    void norm(const Real* w, Real* v, Real* normal, Real* inverse) const {
        inverse[0] = normalise(2 * H, v);
        inverse[1] = normalise(H, v + 2 * H);
        for (Index k = 0; k < 3 * H; ++k) {
            normal[k] = v[k];
            v[k] = v[k] * w[k] + w[3 * H + k];
        }
    }

    /// d: in: adjoint of LN(v) w + c; out: of v. Gradients of w and c are added to.
    void norm_reverse(const Real* w, const Real* normal, const Real* inverse, Real* d, Real* dw) const {
        for (Index k = 0; k < 3 * H; ++k) {
            dw[k] += d[k] * normal[k];
            dw[3 * H + k] += d[k];
            d[k] *= w[k];
        }
        normalise_reverse(2 * H, normal, inverse[0], d);
        normalise_reverse(H, normal + 2 * H, inverse[1], d + 2 * H);
    }

    Index I, H, S;  // S: units of a head
    bool bias_, norm_, learned_state_;
};

}  // namespace

template <class Real>
LayerPointer<Real> gru(const RecurrentPart& part) {
    return std::make_unique<Gru<Real>>(part);
}

template LayerPointer<float> gru(const RecurrentPart&);
template LayerPointer<double> gru(const RecurrentPart&);
template LayerPointer<Dual<double>> gru(const RecurrentPart&);

}  // namespace backsweep::reference
