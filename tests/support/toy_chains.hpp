// Small chains with hand-written adjoints: the tests of the engine run on them.
// No tame values: time does not start at 0, parameters are odd numbers, lengths are primes.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"
#include "backsweep/chain/chain.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace backsweep::test {

/// Equal bits of two blocks of numbers; NaN equals NaN.
template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}
inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
    return same_bits(std::span(a), std::span(b));
}
inline bool same_bits(double a, double b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

/// How Oscillator keeps its state and tapes, and which of the optional functions it offers.
enum class Flavour {
    plain,       ///< std::vector states, no keep()
    keeps,       ///< keep() makes the tape without running the link and leaves NaN in x
    needs_state  ///< reverse reads x_i; the tape has none of it
};

/// q'' = -w^2 q - c q^3 - d q' + f cos(p t) by the classical Runge-Kutta method from t0; parameters w, c, d, f, p.
/// J = 0.8 q + q^2 / 2 - 1.3 v of x_n. The tape of a link are its four stage values; `gradient` is added to.
template <Flavour flavour = Flavour::plain>
class Oscillator {
public:
    using State = std::vector<double>;
    using Tape = std::vector<double>;
    using Adjoint = std::vector<double>;
    static constexpr bool needs_state = flavour == Flavour::needs_state;

    explicit Oscillator(Index links, double t0 = 0.75, double dt = 0.0625) : links_(links), t0_(t0), dt_(dt) {}

    std::array<double, 5> parameters{1.25, 0.375, 0.0625, 0.7, 1.9};
    std::array<double, 5> gradient{};

    std::optional<Index> length() const { return links_; }
    State initial() const { return {0.6, -0.35}; }

    Index advance(Range r, State& x) {
        Point stages[4];
        for (Index i = r.first; i < r.last; ++i) step(i, x, stages);
        return r.last;
    }
    Index record(Range r, State& x, Tape& tape) {
        Point stages[4];
        step(r.first, x, stages);
        write(stages, tape);
        return r.last;
    }
    void keep(Range r, State& x, Tape& tape)
        requires(flavour != Flavour::plain)
    {
        Point stages[4];
        stage_values(r.first, x, stages);
        write(stages, tape);
        if constexpr (flavour == Flavour::keeps) x.assign(3, std::numeric_limits<double>::quiet_NaN());
    }
    void seed(const State& x, Adjoint& a) { a = {0.8 + x[0], -1.3}; }
    std::vector<Blob> sums() { return blobs(gradient); }

    void reverse(Range r, State& x, Tape& tape, Adjoint& a) {
        Point stages[4];
        for (std::size_t k = 0; k < 4; ++k) stages[k] = {tape[2 * k], tape[2 * k + 1]};
        if constexpr (flavour == Flavour::needs_state) stages[0] = {x[0], x[1]};
        const double t = time(r.first);
        const Point out{a[0], a[1]};
        // x' = x + dt/6 (k1 + 2 k2 + 2 k3 + k4), stage s at x + c_s dt k_{s-1}
        Point k[4];
        for (std::size_t s = 0; s < 4; ++s) k[s] = {weight[s] * dt_ * out.q, weight[s] * dt_ * out.v};
        Point in = out;
        for (std::size_t s = 4; s-- > 0;) {
            const Point at = pull_back(t + node[s] * dt_, stages[s], k[s]);
            in.q += at.q;
            in.v += at.v;
            if (s > 0) {
                k[s - 1].q += node[s] * dt_ * at.q;
                k[s - 1].v += node[s] * dt_ * at.v;
            }
        }
        a = {in.q, in.v};
        tape.assign(8, std::numeric_limits<double>::quiet_NaN());
        x.assign(2, std::numeric_limits<double>::quiet_NaN());
    }

private:
    struct Point {
        double q, v;
    };
    static constexpr double node[4] = {0.0, 0.5, 0.5, 1.0};
    static constexpr double weight[4] = {1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0};

    double time(Index i) const { return t0_ + static_cast<double>(i) * dt_; }
    Point slope(double t, Point x) const {
        const auto [w, c, d, f, p] = parameters;
        return {x.v, -w * w * x.q - c * x.q * x.q * x.q - d * x.v + f * std::cos(p * t)};
    }
    /// Adjoint of slope(): what `k`, the adjoint of the slope, means for x; parameters are added to.
    Point pull_back(double t, Point x, Point k) {
        const auto [w, c, d, f, p] = parameters;
        gradient[0] += -2.0 * w * x.q * k.v;
        gradient[1] += -x.q * x.q * x.q * k.v;
        gradient[2] += -x.v * k.v;
        gradient[3] += std::cos(p * t) * k.v;
        gradient[4] += -f * t * std::sin(p * t) * k.v;
        return {(-w * w - 3.0 * c * x.q * x.q) * k.v, k.q - d * k.v};
    }
    void stage_values(Index i, const State& x, Point (&stages)[4]) const {
        const double t = time(i);
        stages[0] = {x[0], x[1]};
        for (std::size_t s = 1; s < 4; ++s) {
            const Point k = slope(t + node[s - 1] * dt_, stages[s - 1]);
            stages[s] = {x[0] + node[s] * dt_ * k.q, x[1] + node[s] * dt_ * k.v};
        }
    }
    void step(Index i, State& x, Point (&stages)[4]) const {
        stage_values(i, x, stages);
        Point sum{0.0, 0.0};
        for (std::size_t s = 0; s < 4; ++s) {
            const Point k = slope(time(i) + node[s] * dt_, stages[s]);
            sum.q += weight[s] * k.q;
            sum.v += weight[s] * k.v;
        }
        x[0] += dt_ * sum.q;
        x[1] += dt_ * sum.v;
    }
    static void write(const Point (&stages)[4], Tape& tape) {
        tape.clear();
        for (const Point& p : stages) tape.insert(tape.end(), {p.q, p.v});
        if constexpr (flavour == Flavour::needs_state) tape[0] = tape[1] = std::numeric_limits<double>::quiet_NaN();
    }

    Index links_;
    double t0_, dt_;
};

/// A field of `width` numbers in counted buffers: u_k' = u_k + 0.1 sin(u_{k-1} + 0.01 i), periodic in k. The tape is u.
class Field {
public:
    struct State {
        Buffer<double> u;
        void rebook(Kind kind) noexcept { u.rebook(kind); }
        friend void swap(State& a, State& b) noexcept { a.u.swap(b.u); }
        friend std::vector<Blob> blobs(State& x) { return backsweep::blobs(x.u); }
        friend std::span<double> values(State& x) { return x.u.span(); }
    };
    using Tape = Buffer<double>;
    using Adjoint = State;

    Field(Index links, Index width, Ledger& ledger = Ledger::process())
        : links_(links), width_(width), ledger_(&ledger), spare_(width, Kind::workspace, ledger) {}

    std::optional<Index> length() const { return links_; }
    State initial() const {
        State x{Buffer<double>(Kind::carry, *ledger_)};
        x.u.resize(width_);
        for (Index k = 0; k < width_; ++k) x.u[k] = 0.3 + 0.01 * static_cast<double>(k % 17);
        return x;
    }
    Index advance(Range r, State& x) {
        for (Index i = r.first; i < r.last; ++i) step(i, x);
        return r.last;
    }
    Index record(Range r, State& x, Tape& tape) {
        if (!tape.data()) tape = Buffer<double>(Kind::tape, *ledger_);
        tape.rebook(Kind::tape);
        tape = x.u;
        step(r.first, x);
        return r.last;
    }
    std::vector<Blob> sums() { return {}; }
    void seed(const State&, Adjoint& a) {
        if (!a.u.data()) a.u = Buffer<double>(width_, Kind::workspace, *ledger_);
        for (Index k = 0; k < width_; ++k) a.u[k] = 1.0 - 0.125 * static_cast<double>(k % 5);
    }
    void reverse(Range r, State&, Tape& tape, Adjoint& a) {
        for (Index k = 0; k < width_; ++k) {
            const Index left = k == 0 ? width_ - 1 : k - 1;
            spare_[left] = a.u[left] + a.u[k] * 0.1 * std::cos(tape[left] + 0.01 * static_cast<double>(r.first));
        }
        std::swap(spare_, a.u);
    }

private:
    void step(Index i, State& x) {
        for (Index k = 0; k < width_; ++k) {
            const Index left = k == 0 ? width_ - 1 : k - 1;
            spare_[k] = x.u[k] + 0.1 * std::sin(x.u[left] + 0.01 * static_cast<double>(i));
        }
        x.u.swap(spare_);
    }

    Index links_, width_;
    Ledger* ledger_;
    Buffer<double> spare_;
};

}  // namespace backsweep::test
