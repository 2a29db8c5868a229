// The attention layer of devices with plain memory: projections, heads, output product, and what of them the tape
// keeps. Math supplies the loops: products and tiles in vectors (cpu), or plain loops (reference).
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"
#include "backsweep/base/error.hpp"
#include "nn/attend.hpp"
#include "nn/catalogue.hpp"
#include "nn/described_layer.hpp"
#include "nn/rotary.hpp"
#include "nn/state_marks.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace backsweep {

/// Slopes of ALiBi [Press22]: of n heads, n a power of two, 2^(-8 (h + 1) / n); else those of the largest power of two
/// below, then every second of those of twice as many.
inline double alibi_slope(Index head, Index heads) {
    Index power = 1;
    while (2 * power <= heads) power *= 2;
    if (head < power) return std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(power));
    return std::exp2(-4.0 * static_cast<double>(2 * (head - power) + 1) / static_cast<double>(power));
}

/// Places of parts in a block, one behind the other, each aligned.
template <class Real>
class Parts {
public:
    Index take(Index count) {
        const Index at = size_;
        size_ += aligned<Real>(count);
        return at;
    }
    Index size() const noexcept { return size_; }

private:
    Index size_ = 0;
};

/// Equations at one segment of T steps with M' = rows_before(memory) rows before it; X: its inputs, R: the M' + T rows
/// of the memory (without one, X), or the context.
///   linear    Q = X Wq' + bq,  K = R Wk' + bk,  V = R Wv' + bv,  Y = O Wo' + bo
///   gated     Q = s(qs) LN(X W' + b),  K = s(ks) R,  V = s(vs) R,  Y = O
///   relative  as linear, and r_d = W_r R_d with R_d the sines, then the cosines, of d 10000^(-2k/features)
/// O is made head by head and sequence by sequence (nn/attend.hpp). Tape, [position][feature] each, aligned: what the
/// specification saves of O (T B H; gated, it is Y) with its log-sum-exp (T B heads), Q (T B H), K and V ((M + T) B H;
/// across neither), H being heads x head features. Without a memory reverse reads X.
template <class Real, class Math>
class AttentionLayer final : public DescribedLayer<Real> {
    using Position = AttentionSpec::Position;

public:
    AttentionLayer(const AttentionSpec& spec, std::uint32_t stream)
        : DescribedLayer<Real>(spec.name, parameters_of(spec)),
          spec_(spec),
          stream_(stream),
          gated_(spec.projection == AttentionSpec::Projection::gated),
          relative_(spec.position == Position::relative),
          E_(spec.features),
          H_(spec.heads * spec.head()) {
        const auto place = [&](const std::string& suffix) {
            Index at = 0;
            for (const ParameterShape& shape : this->parameters()) {
                if (shape.name == spec.name + "." + suffix) return at;
                at += shape.size();
            }
            return Index{-1};
        };
        if (gated_) {
            wq_ = place("q.weight"), bq_ = place("q.bias"), gain_ = place("qln.weight"), shift_ = place("qln.bias");
            qs_ = place("qs"), ks_ = place("ks"), vs_ = place("vs");
            return;
        }
        const Index whole = relative_ ? place("qkv_net.weight") : place("in_proj_weight");
        wq_ = whole >= 0 ? whole : place("q_proj_weight");
        wk_ = whole >= 0 ? whole + H_ * E_ : place("k_proj_weight");
        wv_ = whole >= 0 ? whole + 2 * H_ * E_ : place("v_proj_weight");
        bq_ = place(relative_ ? "qkv_net.bias" : "in_proj_bias");
        wo_ = place(relative_ ? "o_net.weight" : "out_proj.weight");
        bo_ = place(relative_ ? "o_net.bias" : "out_proj.bias");
        wr_ = place("r_net.weight"), u_ = place("r_w_bias"), w_ = place("r_r_bias");
    }

    Footprint footprint(Index steps, Index batch) const override {
        // Across, K and V have as many rows as the context, which is the caller's: they are not kept on the tape.
        Sizes most{steps, batch, spec_.memory + steps, distances(spec_.memory + steps)};
        return {.inputs = E_,
                .outputs = E_,
                .tape = tape_of(most).size,
                .workspace = std::max(scratch_of(most, true).size, scratch_of(most, false).size),
                .reads_x = spec_.memory == 0,
                .reads_y = gated_ && spec_.saves("output")};
    }

    /// Pairs of a query and a key that it sees count, as if one sequence filled the segment and the memory before it; a
    /// context has as many steps as the segment.
    Work work(Index steps, Index batch) const override {
        Attend<Real> a;
        a.queries = steps, a.keys = spec_.memory + steps, a.offset = spec_.memory;
        a.causal = spec_.mask == AttentionSpec::Mask::causal, a.window = spec_.window;
        double pairs = 0.0;
        for (Index i = 0; i < steps; ++i) pairs += static_cast<double>(a.seen(i).size());
        const double each = 2.0 * static_cast<double>(H_ * batch);
        const auto product = [&](Index width, Index rows) { return each * static_cast<double>(width * rows); };
        const double query = product(E_, steps), key = gated_ ? 0.0 : product(spec_.keys(), a.keys),
                     value = gated_ ? 0.0 : product(spec_.values(), a.keys), output = gated_ ? 0.0 : query,
                     far = 2.0 * static_cast<double>(distances(a.keys) * E_ * H_), dot = each * pairs,
                     score = relative_ ? 2.0 * dot : dot, mixed = score + dot;
        Work all{query + key + value + output + far + mixed, 2.0 * (query + key + value + output) + 2.0 * far};
        all.reverse += 3.0 * score + 2.0 * dot;  // scores again, dQ and dK (dr); dP and dV
        if (!spec_.saves("query")) all.reverse += query;
        if (!kept("key")) all.reverse += key;
        if (!kept("value")) all.reverse += value;
        if (!spec_.saves("output")) all.reverse += mixed;
        return all;
    }

    std::vector<MemoryShape> memories() const override {
        if (spec_.memory == 0) return {};
        return {{spec_.memory, E_, !spec_.detached}};
    }

    void advance(const Forward<Real>& call) const override { forward(call, nullptr); }
    void record(const Forward<Real>& call) const override { forward(call, call.tape); }

    void reverse(const Backward<Real>& call) const override {
        const Segment<Real>& at = call.at;
        const Sizes n = sizes(at);
        const Tape tape = tape_of(full(at));
        const Scratch own = scratch_of(n, true);
        Buffer<Real> context_room;
        Values v = values(n, const_cast<Real*>(call.tape), call.workspace, tape, own, context_room, true);
        if (gated_ && spec_.saves("output")) v.o = const_cast<Real*>(call.y);
        if (spec_.memory > 0) {
            v.rows = call.memory[0];
            v.x = v.rows + at.rows_before(spec_.memory) * at.batch * E_;
        } else {
            v.x = v.rows = without_fillers(at, call.x, call.workspace + own.x);
        }
        const Index positions = n.steps * n.batch, keys = n.rows * n.batch;
        make(at, call.parameters, n, v, !spec_.saves("query"), !kept("key"), !kept("value"), own, call.workspace);
        if (relative_) make_r(call.parameters, n, own, call.workspace);
        if (!spec_.saves("output")) mix(at, n, call.parameters, v, own, call.workspace);

        const Real* dy = call.dy;
        if (at.marks) {
            Real* const clean = call.workspace + own.dy;
            std::copy_n(call.dy, positions * E_, clean);
            clear_fillers(at, E_, clean);
            dy = clean;
        }
        const Real* d_o = dy;
        if (!gated_) {
            Real* const to = call.workspace + own.d_o;
            Math::outer(E_, H_, positions, dy, v.o, call.gradients + wo_);
            if (bo_ >= 0) Math::sum(E_, positions, dy, call.gradients + bo_);
            Math::transposed(E_, H_, positions, call.parameters + wo_, dy, Real{0}, to);
            d_o = to;
        }
        Real *const dq = call.workspace + own.dq, *dk = call.workspace + own.dk, *dv = call.workspace + own.dv;
        if (spec_.across) {
            dk = context_room.data() + 2 * keys * H_;
            dv = dk + keys * H_;
        }
        std::fill_n(dq, positions * H_, Real{0});
        std::fill_n(dk, keys * H_, Real{0});
        std::fill_n(dv, keys * H_, Real{0});
        Real* const dr = relative_ ? call.workspace + own.dr : nullptr;
        if (relative_) std::fill_n(dr, n.distances * H_, Real{0});
        each_head(at, n, call.parameters, own, call.workspace, [&](const Attend<Real>& a, const Place& p) {
            AttendReverse<Real> r;
            r.q = {v.q + p.query, n.batch * H_}, r.k = {v.k + p.key, n.batch * H_}, r.v = {v.v + p.key, n.batch * H_};
            r.o = {v.o + p.query, n.batch * H_}, r.d_o = {d_o + p.query, n.batch * H_};
            r.lse = v.lse + p.lse;
            r.dq = {dq + p.query, n.batch * H_}, r.dk = {dk + p.key, n.batch * H_}, r.dv = {dv + p.key, n.batch * H_};
            if (relative_) {
                r.dr = {dr + p.head * spec_.head(), H_};
                r.du = call.gradients + u_ + p.head * spec_.head();
                r.dw = call.gradients + w_ + p.head * spec_.head();
            }
            Math::attend_reverse(a, r, call.workspace + own.kernel);
        });
        if (relative_) Math::outer(H_, E_, n.distances, dr, call.workspace + own.waves, call.gradients + wr_);
        turn(at, n, dq, dk, Turn::back);
        if (gated_)
            reverse_gated(call, n, v, own, dq, dk, dv);
        else
            reverse_linear(call, n, v, spec_.across ? dv + keys * H_ : call.workspace + own.drows, dq, dk, dv);
    }

private:
    /// Steps and sequences of a segment, rows of keys (of one sequence), and distances where positions are relative.
    struct Sizes {
        Index steps, batch, rows, distances;
    };
    struct Tape {
        Index lse = 0, q = 0, k = 0, v = 0, o = 0, size = 0;
    };
    struct Scratch {
        Index x = 0, q = 0, k = 0, v = 0, o = 0, lse = 0, normal = 0, waves = 0, r = 0, hidden = 0, kernel = 0;
        Index dy = 0, d_o = 0, dq = 0, dk = 0, dv = 0, dr = 0, drows = 0, size = 0;
    };
    struct Values {
        const Real *x, *rows;
        Real *q, *k, *v, *o, *lse;
    };
    /// Of one head of one run: where its first query, key and log-sum-exp lie.
    struct Place {
        Index query, key, lse, head;
    };

    Index distances(Index rows) const {
        if (!relative_) return 0;
        return spec_.window > 0 ? std::min(rows, spec_.window) : rows;
    }
    bool kept(const char* what) const { return !spec_.across && spec_.saves(what); }

    Sizes full(const Segment<Real>& at) const {
        return {at.steps, at.batch, spec_.memory + at.steps, distances(spec_.memory + at.steps)};
    }
    Sizes sizes(const Segment<Real>& at) const {
        if (spec_.across) {
            if (!at.context || !at.context->keys)
                throw InvalidArgument(
                    "layer '" + this->name() +
                    "' attends to a context, but the segment has none; set Segment::context with its keys");
            return {at.steps, at.batch, at.context->steps, 0};
        }
        const Index rows = at.rows_before(spec_.memory) + at.steps;
        return {at.steps, at.batch, rows, distances(rows)};
    }

    Tape tape_of(const Sizes& n) const {
        const Index positions = n.steps * n.batch, keys = n.rows * n.batch;
        Parts<Real> parts;
        Tape t;
        t.lse = parts.take(spec_.saves("output") ? positions * spec_.heads : 0);
        t.q = parts.take(spec_.saves("query") ? positions * H_ : 0);
        t.k = parts.take(kept("key") ? keys * H_ : 0);
        t.v = parts.take(kept("value") ? keys * H_ : 0);
        t.o = parts.take(spec_.saves("output") && !gated_ ? positions * H_ : 0);
        t.size = parts.size();
        return t;
    }

    /// Room for everything, whether or not the tape keeps it too: advance has no tape.
    Scratch scratch_of(const Sizes& n, bool reverse) const {
        const Index positions = n.steps * n.batch, keys = spec_.across ? 0 : n.rows * n.batch;
        Parts<Real> parts;
        Scratch s;
        const auto absent = [&](const char* what, Index count) {
            return parts.take(reverse && spec_.saves(what) ? 0 : count);
        };
        s.x = parts.take(spec_.memory > 0 ? 0 : positions * E_);
        s.q = absent("query", positions * H_);
        s.k = absent("key", keys * H_);
        s.v = absent("value", keys * H_);
        s.o = absent("output", gated_ && !reverse ? 0 : positions * H_);
        s.lse = absent("output", positions * spec_.heads);
        s.normal = parts.take(gated_ ? 2 * positions * H_ : 0);
        s.waves = parts.take(n.distances * E_);
        s.r = parts.take(n.distances * H_);
        // One byte a key; those of a context, whose length no footprint knows, have room of their own.
        const Index flags = spec_.across ? 0 : n.rows;
        s.hidden = parts.take((flags + static_cast<Index>(sizeof(Real)) - 1) / static_cast<Index>(sizeof(Real)));
        Attend<Real> a;
        a.width = a.value_width = spec_.head();
        const Real present{};
        a.r = relative_ ? &present : nullptr;
        s.kernel = parts.take(Math::workspace(a));
        if (reverse) {
            s.dy = parts.take(positions * E_);
            s.d_o = parts.take(gated_ ? 0 : positions * H_);
            s.dq = parts.take(positions * H_);
            s.dk = parts.take(keys * H_);
            s.dv = parts.take(keys * H_);
            s.dr = parts.take(n.distances * H_);
            s.drows = parts.take(spec_.across ? 0 : keys * E_);
        }
        s.size = parts.size();
        return s;
    }

    /// Where everything is. Keys and values of a context, whose length is the caller's, have room of their own.
    Values values(const Sizes& n, Real* tape, Real* workspace, const Tape& t, const Scratch& s, Buffer<Real>& context,
                  bool reverse) const {
        const auto at = [&](bool on_tape, Index place, Index scratch) {
            return tape && on_tape ? tape + place : workspace + scratch;
        };
        Values v{};
        v.q = at(spec_.saves("query"), t.q, s.q);
        v.k = at(kept("key"), t.k, s.k);
        v.v = at(kept("value"), t.v, s.v);
        v.o = at(spec_.saves("output"), t.o, s.o);
        v.lse = at(spec_.saves("output"), t.lse, s.lse);
        if (spec_.across) {
            const Index keys = n.rows * n.batch * H_;
            context.resize(reverse ? 4 * keys + n.rows * n.batch * std::max(spec_.keys(), spec_.values()) : 2 * keys);
            v.k = context.data();
            v.v = v.k + keys;
        }
        return v;
    }

    void forward(const Forward<Real>& call, Real* tape) const {
        const Segment<Real>& at = call.at;
        const Sizes n = sizes(at);
        const Tape t = tape_of(full(at));
        const Scratch s = scratch_of(n, false);
        const Index positions = n.steps * n.batch;
        Buffer<Real> context_room;
        Values v = values(n, tape, call.workspace, t, s, context_room, false);
        if (spec_.memory > 0) {
            Real* const kept = call.memory[0] + at.rows_before(spec_.memory) * at.batch * E_;
            std::copy_n(call.x, positions * E_, kept);
            clear_fillers(at, E_, kept);
            v.x = kept;
            v.rows = call.memory[0];
        } else {
            v.x = v.rows = without_fillers(at, call.x, call.workspace + s.x);
        }
        if (gated_) v.o = call.y;
        const bool mixed = call.y || spec_.saves("output");
        make(at, call.parameters, n, v, mixed || spec_.saves("query"), mixed || kept("key"), mixed || kept("value"), s,
             call.workspace);
        if (!mixed) return;
        if (relative_) make_r(call.parameters, n, s, call.workspace);
        mix(at, n, call.parameters, v, s, call.workspace);
        if (!call.y) return;
        if (!gated_)
            Math::product(E_, H_, positions, call.parameters + wo_, bo_ >= 0 ? call.parameters + bo_ : nullptr, v.o,
                          call.y);
        clear_fillers(at, E_, call.y);
    }

    /// x with 0 in fillers, for 0 times what lies there need not be 0: in `spare`, if there are fillers.
    const Real* without_fillers(const Segment<Real>& at, const Real* x, Real* spare) const {
        const Index positions = at.steps * at.batch;
        if (!at.marks || std::find(at.marks, at.marks + positions, Mark::filler) == at.marks + positions) return x;
        std::copy_n(x, positions * E_, spare);
        clear_fillers(at, E_, spare);
        return spare;
    }

    /// r.
    void make_r(const Real* p, const Sizes& n, const Scratch& s, Real* workspace) const {
        Real* const waves = workspace + s.waves;
        for (Index k = 0; k < E_ / 2; ++k) {
            const double frequency = std::pow(10000.0, -2.0 * static_cast<double>(k) / static_cast<double>(E_));
            for (Index d = 0; d < n.distances; ++d) {
                const double angle = static_cast<double>(d) * frequency;
                waves[d * E_ + k] = static_cast<Real>(std::sin(angle));
                waves[d * E_ + E_ / 2 + k] = static_cast<Real>(std::cos(angle));
            }
        }
        Math::product(H_, E_, n.distances, p + wr_, static_cast<const Real*>(nullptr), waves, workspace + s.r);
    }

    /// Those of Q, K, V that are wanted.
    void make(const Segment<Real>& at, const Real* p, const Sizes& n, const Values& v, bool query, bool key, bool value,
              const Scratch& s, Real* workspace) const {
        const Index positions = n.steps * n.batch, keys = n.rows * n.batch;
        if (gated_) {
            if (query) normal(p, positions, v.x, workspace + s.normal, v.q);
            for (Index f = 0; f < H_; ++f) {
                const Real open = gate(p[qs_ + f]), gain = open * p[gain_ + f], shift = open * p[shift_ + f];
                const Real of_key = gate(p[ks_ + f]), of_value = gate(p[vs_ + f]);
                for (Index i = f; query && i < positions * H_; i += H_) v.q[i] = v.q[i] * gain + shift;
                for (Index i = f; key && i < keys * H_; i += H_) v.k[i] = of_key * v.rows[i];
                for (Index i = f; value && i < keys * H_; i += H_) v.v[i] = of_value * v.rows[i];
            }
        } else {
            const auto bias = [&](Index part) { return bq_ >= 0 ? p + bq_ + part * H_ : nullptr; };
            const Real* const of_keys = spec_.across ? at.context->keys : v.rows;
            const Real* const of_values =
                spec_.across ? (at.context->values ? at.context->values : at.context->keys) : v.rows;
            if (query) Math::product(H_, E_, positions, p + wq_, bias(0), v.x, v.q);
            if (key) Math::product(H_, spec_.keys(), keys, p + wk_, bias(1), of_keys, v.k);
            if (value) Math::product(H_, spec_.values(), keys, p + wv_, bias(2), of_values, v.v);
        }
        turn(at, n, query ? v.q : nullptr, key ? v.k : nullptr, Turn::forth);
    }

    static Real gate(Real x) {
        using std::exp;  // Dual has its own
        return Real{1} / (Real{1} + exp(-x));
    }

    /// n = (z - mean z) / sqrt(var z + 1e-5), z = X W' + b; `inverses` gets 1 / sqrt(...) of every position.
    void normal(const Real* p, Index positions, const Real* x, Real* inverses, Real* n) const {
        Math::product(H_, E_, positions, p + wq_, bq_ >= 0 ? p + bq_ : nullptr, x, n);
        for (Index i = 0; i < positions; ++i) inverses[i] = Math::standardise(H_, static_cast<Real>(1e-5), n + i * H_);
    }

    void turn(const Segment<Real>& at, const Sizes& n, Real* q, Real* k, Turn which) const {
        if (spec_.position != Position::rotary) return;
        const Rotary rotary{spec_.rotary_features > 0 ? spec_.rotary_features : spec_.head(), spec_.rotary_base,
                            spec_.interleaved ? Rotary::Style::interleaved : Rotary::Style::half};
        const Index before = at.rows_before(spec_.memory);
        if (q) Math::rotate(rotary, which, before, n.steps, n.batch, spec_.heads, spec_.head(), {q, H_});
        if (k) Math::rotate(rotary, which, Index{0}, n.rows, n.batch, spec_.heads, spec_.head(), {k, H_});
    }

    /// O and the log-sum-exp.
    void mix(const Segment<Real>& at, const Sizes& n, const Real* p, const Values& v, const Scratch& s,
             Real* workspace) const {
        std::fill_n(v.o, n.steps * n.batch * H_, Real{0});
        std::fill_n(v.lse, n.steps * n.batch * spec_.heads, Real{0});
        each_head(at, n, p, s, workspace, [&](const Attend<Real>& a, const Place& place) {
            const Index stride = n.batch * H_;
            Math::attend(a, {v.q + place.query, stride}, {v.k + place.key, stride}, {v.v + place.key, stride},
                         {v.o + place.query, stride}, v.lse + place.lse, workspace + s.kernel);
        });
    }

    /// Whether no step sees row j of column b.
    bool hides(const Segment<Real>& at, const Sizes& n, Index j, Index b) const {
        if (spec_.across) return at.context->marks && at.context->marks[j * n.batch + b] == Mark::filler;
        const Index t = j - (n.rows - n.steps);
        if (t < 0) return !at.sees(-t, b);
        return at.filler(t, b) || (at.key_padding && at.key_padding[t * n.batch + b] != 0);
    }

    /// Rows with 0 in those that nothing sees, for 0 times what lies there need not be 0: in `spare`, if there are
    /// such.
    const Real* shown(const Segment<Real>& at, const Sizes& n, Index width, const Real* rows, Real* spare) const {
        bool any = false;
        for (Index j = 0; j < n.rows; ++j)
            for (Index b = 0; b < n.batch; ++b) {
                if (!hides(at, n, j, b)) continue;
                if (!any) std::copy_n(rows, n.rows * n.batch * width, spare);
                any = true;
                std::fill_n(spare + (j * n.batch + b) * width, width, Real{0});
            }
        return any ? spare : rows;
    }

    /// f(question, place) for every sequence in every column, head by head. A sequence's steps stand one behind the
    /// other: from a first step, or the memory, to the next first step or the end.
    template <class F>
    void each_head(const Segment<Real>& at, const Sizes& n, const Real* p, const Scratch& s, Real* workspace,
                   F f) const {
        const Index before = spec_.across ? 0 : n.rows - n.steps, head = spec_.head();
        auto* const hidden = reinterpret_cast<std::uint8_t*>(workspace + s.hidden);
        std::vector<std::uint8_t> hidden_context;
        for (Index b = 0; b < n.batch; ++b) {
            std::uint8_t* flags = hidden;
            if (spec_.across) {
                hidden_context.resize(static_cast<std::size_t>(n.rows));
                flags = hidden_context.data();
            }
            bool any = false;
            for (Index j = 0; j < n.rows; ++j) {
                const bool hide = hides(at, n, j, b);
                flags[j] = hide;
                any = any || hide;
            }
            for (Index first = 0, last = 0; first < n.steps; first = last) {
                last = first + 1;
                while (last < n.steps && !at.starts(last, b)) ++last;
                if (spec_.across) last = n.steps;
                // In a packed column step 0 may go on with what stands before the segment.
                const Index key = spec_.across || (first == 0 && !at.starts(0, b)) ? 0 : before + first;
                Attend<Real> a;
                a.queries = last - first;
                a.keys = (spec_.across ? n.rows : before + last) - key;
                a.offset = spec_.across ? 0 : before + first - key;
                a.width = a.value_width = head;
                a.causal = spec_.mask == AttentionSpec::Mask::causal;
                a.window = spec_.window;
                a.scale = static_cast<Real>(spec_.scale ? *spec_.scale : 1.0 / std::sqrt(static_cast<double>(head)));
                a.hidden = any ? flags + key : nullptr;
                for (Index h = 0; h < spec_.heads; ++h) {
                    if (spec_.position == Position::alibi) a.slope = static_cast<Real>(alibi_slope(h, spec_.heads));
                    if (relative_) {
                        a.r = workspace + s.r + h * head, a.r_stride = H_;
                        a.u = p + u_ + h * head, a.w = p + w_ + h * head;
                    }
                    if (at.training && spec_.dropout > 0.0) {
                        a.dropout = {spec_.dropout, at.seed, stream_, at.first + first,
                                     (at.sequence + b) * spec_.heads + h};
                        // A context's keys are counted by themselves, whatever step asks.
                        if (spec_.across) a.offset = at.first;
                    }
                    f(a, Place{(first * n.batch + b) * H_ + h * head, (key * n.batch + b) * H_ + h * head,
                               (b * spec_.heads + h) * n.steps + first, h});
                }
            }
        }
    }

    /// drows: room for the rows and, but across, then for their adjoint.
    void reverse_linear(const Backward<Real>& call, const Sizes& n, const Values& v, Real* drows, const Real* dq,
                        const Real* dk, const Real* dv) const {
        const Segment<Real>& at = call.at;
        const Index positions = n.steps * n.batch, keys = n.rows * n.batch;
        const Real* const p = call.parameters;
        Real* const g = call.gradients;
        const Real* const of_keys = spec_.across ? at.context->keys : v.rows;
        const Real* const of_values =
            spec_.across ? (at.context->values ? at.context->values : at.context->keys) : v.rows;
        Math::outer(H_, E_, positions, dq, v.x, g + wq_);
        Math::outer(H_, spec_.keys(), keys, dk, shown(at, n, spec_.keys(), of_keys, drows), g + wk_);
        Math::outer(H_, spec_.values(), keys, dv, shown(at, n, spec_.values(), of_values, drows), g + wv_);
        if (bq_ >= 0) {
            Math::sum(H_, positions, dq, g + bq_);
            Math::sum(H_, keys, dk, g + bq_ + H_);
            Math::sum(H_, keys, dv, g + bq_ + 2 * H_);
        }
        if (spec_.across) {
            Real* const dkeys = at.context->dkeys;
            Real* const dvalues = at.context->values ? at.context->dvalues : dkeys;
            if (dkeys) Math::transposed(H_, spec_.keys(), keys, p + wk_, dk, Real{1}, dkeys);
            if (dvalues) Math::transposed(H_, spec_.values(), keys, p + wv_, dv, Real{1}, dvalues);
            if (call.dx) Math::transposed(H_, E_, positions, p + wq_, dq, Real{0}, call.dx);
            return;
        }
        Math::transposed(H_, E_, keys, p + wk_, dk, Real{0}, drows);
        Math::transposed(H_, E_, keys, p + wv_, dv, Real{1}, drows);
        if (call.dx) Math::transposed(H_, E_, positions, p + wq_, dq, Real{0}, call.dx);
        pass_on(call, n, drows);
    }

    void reverse_gated(const Backward<Real>& call, const Sizes& n, const Values& v, const Scratch& s, Real* dq,
                       const Real* dk, const Real* dv) const {
        const Index positions = n.steps * n.batch, keys = n.rows * n.batch;
        const Real* const p = call.parameters;
        Real* const g = call.gradients;
        Real* const inverses = call.workspace + s.normal;
        Real* const z = inverses + positions * H_;
        Real* const drows = call.workspace + s.drows;
        const Real* const shown_rows = shown(call.at, n, E_, v.rows, drows);
        normal(p, positions, v.x, inverses, z);
        for (Index f = 0; f < H_; ++f) {
            const Real open = gate(p[qs_ + f]), of_key = gate(p[ks_ + f]), of_value = gate(p[vs_ + f]);
            Real along = 0, across = 0, key = 0, value = 0;  // sums of dq z, dq, dk row, dv row
            for (Index i = f; i < positions * H_; i += H_) {
                along += dq[i] * z[i];
                across += dq[i];
                dq[i] *= open * p[gain_ + f];
            }
            for (Index i = f; i < keys * H_; i += H_) {
                key += dk[i] * shown_rows[i];
                value += dv[i] * shown_rows[i];
                drows[i] = dk[i] * of_key + dv[i] * of_value;
            }
            g[qs_ + f] += (along * p[gain_ + f] + across * p[shift_ + f]) * open * (Real{1} - open);
            g[gain_ + f] += along * open;
            g[shift_ + f] += across * open;
            g[ks_ + f] += key * of_key * (Real{1} - of_key);
            g[vs_ + f] += value * of_value * (Real{1} - of_value);
        }
        for (Index i = 0; i < positions; ++i) Math::standardise_reverse(H_, z + i * H_, inverses[i], dq + i * H_);
        Math::outer(H_, E_, positions, dq, v.x, g + wq_);
        if (bq_ >= 0) Math::sum(H_, positions, dq, g + bq_);
        if (call.dx) Math::transposed(H_, E_, positions, p + wq_, dq, Real{0}, call.dx);
        pass_on(call, n, drows);
    }

    /// Adjoints of the rows: of those before the segment into the memory's, of its own into dx.
    void pass_on(const Backward<Real>& call, const Sizes& n, const Real* drows) const {
        const Index before = (n.rows - n.steps) * n.batch * E_, own = n.steps * n.batch * E_;
        Real* const dmemory = spec_.memory > 0 && call.dmemory ? call.dmemory[0] : nullptr;
        for (Index i = 0; dmemory && i < before; ++i) dmemory[i] += drows[i];
        if (!call.dx) return;
        for (Index i = 0; i < own; ++i) call.dx[i] += drows[before + i];
        for (Index i = 0; dmemory && i < own; ++i) call.dx[i] += dmemory[before + i];
        clear_fillers(call.at, E_, call.dx);
    }

    AttentionSpec spec_;
    std::uint32_t stream_;
    bool gated_, relative_;
    Index E_, H_;  // features; heads x head features
    Index wq_ = -1, wk_ = -1, wv_ = -1, bq_ = -1, wo_ = -1, bo_ = -1, wr_ = -1, u_ = -1, w_ = -1;
    Index gain_ = -1, shift_ = -1, qs_ = -1, ks_ = -1, vs_ = -1;
};

}  // namespace backsweep
