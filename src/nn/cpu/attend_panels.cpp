// Scores stand as [panel of queries][key][query of the panel]: the rows of a softmax are lanes, which no sum crosses,
// and scores are the left side of one product and the right side of another as they lie.
// SPDX-License-Identifier: MIT
#include "nn/cpu/attend_panels.hpp"

#include "nn/cpu/attend_tiles.hpp"
#include "nn/cpu/product.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/attend_panels.cpp"
#include "nn/cpu/targets.hpp"

#include <hwy/contrib/math/math-inl.h>

#ifndef BACKSWEEP_ATTEND_PANELS
#define BACKSWEEP_ATTEND_PANELS
namespace backsweep::cpu {
namespace {

// A tile of queries is as large as the second cache allows, for every tile of keys is copied for it, and its adjoints
// are added to rows far apart; scores of `together` queries lie in the first.
constexpr Index most_queries = 256, most_keys = 64, together = 64;

/// A tile of queries, in panels of panel_rows, by a tile of keys, in scratch. Queries that do not exist see what the
/// last one sees, and are 0.
template <class Real>
struct PanelTile {
    Index width = 0, value_width = 0;
    Real slope = 0;

    Index queries = 0;
    Real* q;                                  // [panel][width][query], times the scale
    Real* o;                                  // [panel][value_width][query]; in the reverse d_o
    std::array<Real, most_queries> max, sum;  // of what was seen so far
    std::array<Real, most_queries> lse, D;
    Real *key_q, *key_d_o;  // q times the scale, and d_o: [panel of features][query][feature]
    Real* dq;               // [panel][width][query], of q times the scale

    Index keys = 0;
    const std::int32_t* place = nullptr;  // [key]: its row, counted from first_row
    Index first_row = 0;
    Index first_key = 0;                                           // those before it are constants
    std::array<Range, most_queries / panel_rows<Real>> columns{};  // of each panel: the keys that one of it sees
    std::array<bool, most_queries / panel_rows<Real>> all{};       // of each panel: all of it see all of them
    std::array<Real, most_queries> first{}, last{};                // of each query: the keys that it sees, as numbers
    std::array<Real, most_queries> position{};                     // of each query, counted from first_row; with slope
    bool dropout = false;
    Real* factor;   // [panel][most_keys][query], with dropout
    Real *k, *v;    // [key][width], [key][value_width]
    Real *p, *d;    // [panel of `together` queries][most_keys][query]
    Real *dk, *dv;  // [panel of features][most_keys][feature]
};

}  // namespace
}  // namespace backsweep::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backsweep::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Columns of a tile of sums: as many as hide the time of an addition and fit the registers.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
constexpr Index most_columns = 12;
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
constexpr Index most_columns = 6;
#else
constexpr Index most_columns = 3;
#endif

/// Where the element of row k and column j of the right side lies: at k + j ld, at k ld + j, or in panels of rows, ld
/// apart.
enum class Right { columns, rows, panels };

/// C [column][row] := A B, or C + A B; A [inner][row], rows are a panel's.
template <class Real, int columns, Right right>
HWY_INLINE void tile(Index inner, const Real* HWY_RESTRICT A, const Real* HWY_RESTRICT B, Index ld, bool sum,
                     Real* HWY_RESTRICT C) {
    constexpr Index width = panel_rows<Real>;
    const hn::CappedTag<Real, static_cast<size_t>(width)> d;
    using V = hn::Vec<decltype(d)>;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(d)), vectors = static_cast<int>(width) / lanes;
    V sums[vectors][columns];
    HWY_UNROLL(16)
    for (int j = 0; j < columns; ++j) HWY_UNROLL(8)
    for (int v = 0; v < vectors; ++v) sums[v][j] = sum ? hn::LoadU(d, C + j * width + v * lanes) : hn::Zero(d);
    const Index block = right == Right::panels ? width : inner;
    for (Index left = inner; left > 0; left -= block, B += ld) {
        const Index count = right == Right::panels ? std::min(left, block) : inner;
        HWY_UNROLL(4)
        for (Index k = 0; k < count; ++k, A += width) {
            V a[vectors];
            HWY_UNROLL(8)
            for (int v = 0; v < vectors; ++v) a[v] = hn::LoadU(d, A + v * lanes);
            HWY_UNROLL(16)
            for (int j = 0; j < columns; ++j) {
                const V b = hn::Set(d, right == Right::columns ? B[k + j * ld]
                                       : right == Right::rows  ? B[k * ld + j]
                                                               : B[k + j * width]);
                HWY_UNROLL(8)
                for (int v = 0; v < vectors; ++v) sums[v][j] = hn::MulAdd(a[v], b, sums[v][j]);
            }
        }
    }
    HWY_UNROLL(16)
    for (int j = 0; j < columns; ++j) HWY_UNROLL(8)
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[v][j], d, C + j * width + v * lanes);
}

/// `columns` columns, or fewer.
template <class Real, int columns, Right right>
HWY_INLINE void tile_of(Index count, Index inner, const Real* A, const Real* B, Index ld, bool sum, Real* C) {
    if constexpr (columns > 1) {
        if (count < columns) {
            tile_of<Real, columns - 1, right>(count, inner, A, B, ld, sum, C);
            return;
        }
    }
    tile<Real, columns, right>(inner, A, B, ld, sum, C);
}

/// Calls f(first, count) for all columns, in tiles of nearly equal width.
template <class F>
HWY_INLINE void for_each_tile(Index cols, F f) {
    Index left = (cols + most_columns - 1) / most_columns;
    for (Index j = 0; j < cols; --left) {
        const Index count = (cols - j + left - 1) / left;
        f(j, count);
        j += count;
    }
}

template <class Real, Right right>
HWY_NOINLINE void product_of(Index cols, Index inner, const Real* A, const Real* B, Index ld, bool sum, Real* C) {
    for_each_tile(cols, [&](Index j, Index count) HWY_ATTR {
        tile_of<Real, static_cast<int>(most_columns), right>(
            count, inner, A, B + (right == Right::columns ? j * ld : j), ld, sum, C + j * panel_rows<Real>);
    });
}

/// exp(x), x <= 0 but for rounding; NaN stays NaN. float: as kernels.cpp has it, by fused multiply-adds; 0 below -87.
template <class D>
HWY_INLINE hn::Vec<D> exponential(D d, hn::Vec<D> x) {
    if constexpr (sizeof(hn::TFromD<D>) == 8) {
        return hn::IfThenElse(hn::Eq(x, x), hn::Exp(d, x), x);
    } else {
        const hn::Repartition<std::int32_t, D> bits;
        const auto rounder = hn::Set(d, 12582912.0F);
        const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504F), rounder);
        const auto n = hn::Sub(shifted, rounder);
        const auto r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x));
        auto q = hn::MulAdd(r, hn::Set(d, 1.38145383e-3F), hn::Set(d, 8.36874545e-3F));
        q = hn::MulAdd(q, r, hn::Set(d, 4.1668389e-2F));
        q = hn::MulAdd(q, r, hn::Set(d, 0.166665211F));
        q = hn::MulAdd(q, r, hn::Set(d, 0.49999994F));
        const auto rest = hn::MulAdd(hn::Mul(r, r), q, r);
        const auto power =
            hn::BitCast(d, hn::Add(hn::ShiftLeft<23>(hn::BitCast(bits, shifted)), hn::Set(bits, 127 << 23)));
        return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.0F)), hn::MulAdd(power, rest, power));
    }
}

/// The vectors of one panel, side by side.
template <class Real>
struct Lanes {
    static constexpr Index width = panel_rows<Real>;
    using D = hn::CappedTag<Real, static_cast<size_t>(width)>;
    using V = hn::Vec<D>;
    static constexpr Index lanes = static_cast<Index>(hn::MaxLanes(D())), vectors = width / lanes;
};

/// Rows of the keys, one behind the other, for a cache holds few rows that are far apart.
template <class Real>
HWY_INLINE void copy_rows(const PanelTile<Real>& t, Index features, Rows<const Real> rows, Real* HWY_RESTRICT to) {
    using L = Lanes<Real>;
    const typename L::D d;
    for (Index c = 0; c < t.keys; ++c, to += features) {
        const Real* const from = rows[t.first_row + t.place[c]];
        Index f = 0;
        for (; f + L::lanes <= features; f += L::lanes) hn::StoreU(hn::LoadU(d, from + f), d, to + f);
        for (; f < features; ++f) to[f] = from[f];
    }
}

/// Rows of the keys from first_key on += [panel of features][most_keys][feature].
template <class Real>
HWY_INLINE void add_rows(const PanelTile<Real>& t, Index first, Index features, const Real* HWY_RESTRICT from,
                         Rows<Real> rows) {
    using L = Lanes<Real>;
    const typename L::D d;
    for (Index c = first; c < t.keys; ++c) {
        Real* const row = rows[t.first_row + t.place[c]];
        for (Index f = 0; f < features; f += L::width) {
            const Real* const part = from + f * most_keys + c * L::width;
            if (f + L::width <= features)
                for (Index v = 0; v < L::width; v += L::lanes)
                    hn::StoreU(hn::Add(hn::LoadU(d, row + f + v), hn::Load(d, part + v)), d, row + f + v);
            else
                for (Index e = f; e < features; ++e) row[e] += part[e - f];
        }
    }
}

/// p := the logits of a panel, in the columns that one of its queries sees.
template <class Real>
HWY_INLINE void logits(const PanelTile<Real>& t, Index panel) {
    using L = Lanes<Real>;
    const typename L::D d;
    const Range columns = t.columns[static_cast<std::size_t>(panel)];
    Real* const p = t.p + panel * L::width % together * most_keys;
    product_of<Real, Right::columns>(columns.size(), t.width, t.q + panel * t.width * L::width,
                                     t.k + columns.first * t.width, t.width, false, p + columns.first * L::width);
    if (!(t.slope > Real{0})) return;
    const auto slope = hn::Set(d, t.slope);
    for (Index v = 0; v < L::width; v += L::lanes) {
        const auto position = hn::LoadU(d, t.position.data() + panel * L::width + v);
        for (Index c = columns.first; c < columns.last; ++c) {
            Real* const at = p + c * L::width + v;
            const auto distance = hn::Abs(hn::Sub(position, hn::Set(d, static_cast<Real>(t.place[c]))));
            hn::StoreU(hn::NegMulAdd(slope, distance, hn::LoadU(d, at)), d, at);
        }
    }
}

/// Which lanes see a column: those whose first and last column, as numbers, lie around it.
template <class D, bool all>
struct Seen {
    using V = hn::Vec<D>;
    HWY_INLINE V operator()(hn::TFromD<D> column, V then, V otherwise) const {
        if constexpr (all) return then;
        const D d;
        const V c = hn::Set(d, column);
        return hn::IfThenElse(hn::And(hn::Ge(c, first), hn::Lt(c, last)), then, otherwise);
    }
    V first, last;
};

/// m' = max(m, max_c s_c),  e_c = exp(s_c - m'),  l' = l exp(m - m') + sum_c e_c,  o' = o exp(m - m'): [Milakov18].
template <class Real, bool all>
HWY_INLINE void softmax(PanelTile<Real>& t, Index panel) {
    using L = Lanes<Real>;
    using V = typename L::V;
    const typename L::D d;
    constexpr Index vectors = L::vectors, lanes = L::lanes;
    const Range columns = t.columns[static_cast<std::size_t>(panel)];
    const Index at = panel * L::width;
    Real* const p = t.p + at % together * most_keys;
    Seen<typename L::D, all> seen[vectors];
    V before[vectors], max[vectors], sum[vectors];
    HWY_UNROLL(8)
    for (Index v = 0; v < vectors; ++v) {
        seen[v] = {hn::LoadU(d, t.first.data() + at + v * lanes), hn::LoadU(d, t.last.data() + at + v * lanes)};
        max[v] = before[v] = hn::LoadU(d, t.max.data() + at + v * lanes);
        sum[v] = hn::Zero(d);
    }
    for (Index c = columns.first; c < columns.last; ++c) {
        HWY_UNROLL(8)
        for (Index v = 0; v < vectors; ++v)
            max[v] = seen[v](static_cast<Real>(c), hn::Max(max[v], hn::LoadU(d, p + c * L::width + v * lanes)), max[v]);
    }
    for (Index c = columns.first; c < columns.last; ++c) {
        HWY_UNROLL(8)
        for (Index v = 0; v < vectors; ++v) {
            Real* const s = p + c * L::width + v * lanes;
            const V e = seen[v](static_cast<Real>(c), exponential(d, hn::Sub(hn::LoadU(d, s), max[v])), hn::Zero(d));
            sum[v] = hn::Add(sum[v], e);
            hn::StoreU(e, d, s);
        }
    }
    HWY_UNROLL(8)
    for (Index v = 0; v < vectors; ++v) {
        const auto same = hn::Eq(before[v], max[v]);
        V old = hn::LoadU(d, t.sum.data() + at + v * lanes);
        if (!hn::AllTrue(d, same)) {
            const V shrunk = hn::IfThenElse(same, hn::Set(d, Real{1}), exponential(d, hn::Sub(before[v], max[v])));
            old = hn::Mul(old, shrunk);
            Real* const o = t.o + panel * t.value_width * L::width + v * lanes;
            for (Index f = 0; f < t.value_width; ++f)
                hn::StoreU(hn::Mul(hn::LoadU(d, o + f * L::width), shrunk), d, o + f * L::width);
            hn::StoreU(max[v], d, t.max.data() + at + v * lanes);
        }
        hn::StoreU(hn::Add(old, sum[v]), d, t.sum.data() + at + v * lanes);
    }
    if (!t.dropout) return;
    const Real* const factor = t.factor + at * most_keys;
    for (Index e = columns.first * L::width; e < columns.last * L::width; e += lanes)
        hn::StoreU(hn::Mul(hn::LoadU(d, p + e), hn::LoadU(d, factor + e)), d, p + e);
}

template <class Real>
HWY_INLINE void forward_of(PanelTile<Real>& t, Rows<const Real> k, Rows<const Real> v) {
    constexpr Index width = panel_rows<Real>;
    copy_rows(t, t.width, k, t.k);
    copy_rows(t, t.value_width, v, t.v);
    for (Index panel = 0; panel * width < t.queries; ++panel) {
        const Range columns = t.columns[static_cast<std::size_t>(panel)];
        if (columns.empty()) continue;
        logits(t, panel);
        if (t.all[static_cast<std::size_t>(panel)])
            softmax<Real, true>(t, panel);
        else
            softmax<Real, false>(t, panel);
        product_of<Real, Right::rows>(
            t.value_width, columns.size(), t.p + (panel * width % together * most_keys + columns.first * width),
            t.v + columns.first * t.value_width, t.value_width, true, t.o + panel * t.value_width * width);
    }
}

/// d := dS = P (factor dP - D),  p := factor P.
template <class Real, bool all, bool dropout>
HWY_INLINE void adjoints(const PanelTile<Real>& t, Index panel) {
    using L = Lanes<Real>;
    using V = typename L::V;
    const typename L::D tag;
    constexpr Index vectors = L::vectors, lanes = L::lanes;
    const Range columns = t.columns[static_cast<std::size_t>(panel)];
    const Index at = panel * L::width, block = at % together * most_keys;
    Real *const p = t.p + block, *const d = t.d + block;
    Seen<typename L::D, all> seen[vectors];
    V lse[vectors], D[vectors];
    HWY_UNROLL(8)
    for (Index v = 0; v < vectors; ++v) {
        seen[v] = {hn::LoadU(tag, t.first.data() + at + v * lanes), hn::LoadU(tag, t.last.data() + at + v * lanes)};
        lse[v] = hn::LoadU(tag, t.lse.data() + at + v * lanes);
        D[v] = hn::LoadU(tag, t.D.data() + at + v * lanes);
    }
    for (Index c = columns.first; c < columns.last; ++c) {
        HWY_UNROLL(8)
        for (Index v = 0; v < vectors; ++v) {
            const Index k = c * L::width + v * lanes;
            V P = exponential(tag, hn::Sub(hn::LoadU(tag, p + k), lse[v])), dP = hn::LoadU(tag, d + k), M = P;
            if constexpr (dropout) {
                const V factors = hn::LoadU(tag, t.factor + at * most_keys + k);
                dP = hn::Mul(factors, dP);
                M = hn::Mul(factors, P);
            }
            const V zero = hn::Zero(tag);
            hn::StoreU(seen[v](static_cast<Real>(c), hn::Mul(P, hn::Sub(dP, D[v])), zero), tag, d + k);
            hn::StoreU(seen[v](static_cast<Real>(c), M, zero), tag, p + k);
        }
    }
}

template <class Real, bool all>
HWY_INLINE void adjoints(const PanelTile<Real>& t, Index panel) {
    if (t.dropout)
        adjoints<Real, all, true>(t, panel);
    else
        adjoints<Real, all, false>(t, panel);
}

/// Of every key: += the sum over those of queries [from, to) that see it. `of` is P or dS.
template <class Real>
HWY_NOINLINE void add_to_keys(const PanelTile<Real>& t, Range of_queries, Index features, const Real* queries,
                              const Real* of, Real* to) {
    constexpr Index width = panel_rows<Real>, block = most_keys * width;
    const Range panels{of_queries.first / width, (of_queries.last + width - 1) / width};
    for (Index f = 0; f < features; f += width, queries += t.queries * width, to += block)
        for_each_tile(t.keys, [&](Index c, Index count) HWY_ATTR {
            const auto sees = [&](Index panel) {
                return t.columns[static_cast<std::size_t>(panel)].first < c + count &&
                       t.columns[static_cast<std::size_t>(panel)].last > c;
            };
            Range some = panels;
            while (!some.empty() && !sees(some.first)) ++some.first;
            while (!some.empty() && !sees(some.last - 1)) --some.last;
            const Index before = some.first * width,
                        inner = std::max<Index>(0, std::min(some.last * width, of_queries.last) - before);
            tile_of<Real, static_cast<int>(most_columns), Right::panels>(
                count, inner, queries + before * width, of + (some.first - panels.first) * block + c * width, block,
                of_queries.first > 0, to + c * width);
        });
}

template <class Real>
HWY_INLINE void reverse_of(PanelTile<Real>& t, Rows<const Real> k, Rows<const Real> v, Rows<Real> dk, Rows<Real> dv) {
    constexpr Index width = panel_rows<Real>;
    copy_rows(t, t.width, k, t.k);
    copy_rows(t, t.value_width, v, t.v);
    for (Index first = 0; first < t.queries; first += together) {
        const Range queries{first, std::min(first + together, t.queries)};
        for (Index panel = first / width; panel * width < queries.last; ++panel) {
            const Range columns = t.columns[static_cast<std::size_t>(panel)];
            Real *const p = t.p + (panel * width - first) * most_keys, *const d =
                                                                           t.d + (panel * width - first) * most_keys;
            for (Real* const scores : {p, d}) {  // a panel beside this one may see more
                std::fill(scores, scores + columns.first * width, Real{0});
                std::fill(scores + columns.last * width, scores + t.keys * width, Real{0});
            }
            if (columns.empty()) continue;
            logits(t, panel);
            product_of<Real, Right::columns>(columns.size(), t.value_width, t.o + panel * t.value_width * width,
                                             t.v + columns.first * t.value_width, t.value_width, false,
                                             d + columns.first * width);
            if (t.all[static_cast<std::size_t>(panel)])
                adjoints<Real, true>(t, panel);
            else
                adjoints<Real, false>(t, panel);
            product_of<Real, Right::rows>(t.width, columns.size(), d + columns.first * width,
                                          t.k + columns.first * t.width, t.width, true, t.dq + panel * t.width * width);
        }
        if (t.first_key == t.keys) continue;
        add_to_keys(t, queries, t.value_width, t.key_d_o, t.p, t.dv);
        add_to_keys(t, queries, t.width, t.key_q, t.d, t.dk);
    }
    add_rows(t, t.first_key, t.value_width, t.dv, dv);
    add_rows(t, t.first_key, t.width, t.dk, dk);
}

}  // namespace

// Dispatch wants functions that are no templates.
#define BACKSWEEP_FUNCTIONS(Real)                                                                                      \
    void forward_##Real(PanelTile<Real>& tile, Rows<const Real> k, Rows<const Real> v) {                               \
        forward_of(tile, k, v);                                                                                        \
    }                                                                                                                  \
    void reverse_##Real(PanelTile<Real>& tile, Rows<const Real> k, Rows<const Real> v, Rows<Real> dk, Rows<Real> dv) { \
        reverse_of(tile, k, v, dk, dv);                                                                                \
    }
BACKSWEEP_FUNCTIONS(float)
BACKSWEEP_FUNCTIONS(double)
#undef BACKSWEEP_FUNCTIONS

}  // namespace HWY_NAMESPACE
}  // namespace backsweep::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backsweep::cpu {
namespace {

HWY_EXPORT(forward_float);
HWY_EXPORT(forward_double);
HWY_EXPORT(reverse_float);
HWY_EXPORT(reverse_double);

#define BACKSWEEP_DEFINE(Real)                                                                                  \
    void forward(PanelTile<Real>& tile, Rows<const Real> k, Rows<const Real> v) {                               \
        HWY_DYNAMIC_DISPATCH(forward_##Real)(tile, k, v);                                                       \
    }                                                                                                           \
    void reverse(PanelTile<Real>& tile, Rows<const Real> k, Rows<const Real> v, Rows<Real> dk, Rows<Real> dv) { \
        HWY_DYNAMIC_DISPATCH(reverse_##Real)(tile, k, v, dk, dv);                                               \
    }
BACKSWEEP_DEFINE(float)
BACKSWEEP_DEFINE(double)
#undef BACKSWEEP_DEFINE

/// A PanelTile in the caller's memory, and what of a call goes into it and comes out of it.
template <class Real>
class Panels : public PanelTile<Real> {
    static constexpr Index width_of_panel = panel_rows<Real>;

public:
    Panels(const Attend<Real>& a, Real* memory) : a_(a), factors_(a.dropout) {
        this->width = a.width;
        this->value_width = a.value_width;
        this->slope = a.slope;
        this->dropout = !factors_.all_one();
        if (memory) memory = reinterpret_cast<Real*>((reinterpret_cast<std::uintptr_t>(memory) + 63) / 64 * 64);
        const auto take = [&](Index part) {
            Real* const from = memory ? memory + size_ : nullptr;
            size_ += rounded(part);
            return from;
        };
        const Index features = rounded(a.width), values = rounded(a.value_width);
        this->q = take(most_queries * a.width);
        this->o = take(most_queries * a.value_width);
        this->key_q = take(most_queries * features);
        this->key_d_o = take(most_queries * values);
        this->dq = take(most_queries * a.width);
        this->factor = take(most_queries * most_keys);
        this->k = take(most_keys * a.width);
        this->v = take(most_keys * a.value_width);
        this->p = take(together * most_keys);
        this->d = take(together * most_keys);
        this->dk = take(most_keys * features);
        this->dv = take(most_keys * values);
        turned_ = take(width_of_panel * std::max(features, values));
        size_ += width_of_panel;  // lost where `memory` is not aligned
    }

    /// Elements, with those that aligning may cost.
    Index size() const noexcept { return size_; }

    /// [panel][feature][query] := times rows.
    void pack_queries(Index features, Rows<const Real> rows, Real times, Real* to) const {
        pack('T', this->queries, features, rows[first_query_], rows.stride, to);
        for (Index e = 0; e < rounded(this->queries) * features; ++e) to[e] *= times;
    }
    /// [panel of features][query][feature] := times rows.
    void pack_features(Index features, Rows<const Real> rows, Real times, Real* to) const {
        pack('N', features, this->queries, rows[first_query_], rows.stride, to);
        for (Index e = 0; e < this->queries * rounded(features); ++e) to[e] *= times;
    }
    /// rows := times [panel][feature][query]; times is one of a query.
    void unpack_queries(Index features, const Real* from, const Real* times, Rows<Real> rows) const {
        for (Index i = 0; i < this->queries; ++i) {
            if (i % width_of_panel == 0)  // turned: [panel of features][query][feature]
                pack('T', features, width_of_panel, from + i * features, width_of_panel, turned_);
            Real* const row = rows[first_query_ + i];
            for (Index f = 0; f < features; f += width_of_panel) {
                const Real* const part = turned_ + f * width_of_panel + i % width_of_panel * width_of_panel;
                const Index count = std::min(width_of_panel, features - f);
                for (Index e = 0; e < count; ++e) row[f + e] = times[i] * part[e];
            }
        }
    }

    void begin(QueryTile queries) {
        this->queries = queries.count;
        first_query_ = queries.first;
        blind_.fill(true);
    }
    bool blind(Index query) const noexcept { return blind_[static_cast<std::size_t>(query)]; }

    void begin_forward(QueryTile queries, Rows<const Real> q) {
        begin(queries);
        pack_queries(a_.width, q, a_.scale, this->q);
        std::fill_n(this->o, rounded(queries.count) * a_.value_width, Real{0});
        this->max.fill(-std::numeric_limits<Real>::infinity());
        this->sum.fill(Real{0});
    }
    void end_forward(Rows<Real> o, Real* lse) {
        for (Index i = 0; i < this->queries; ++i) {
            Real& sum = this->sum[static_cast<std::size_t>(i)];
            lse[first_query_ + i] = blind(i) ? -std::numeric_limits<Real>::infinity()
                                             : this->max[static_cast<std::size_t>(i)] + std::log(sum);
            sum = blind(i) ? Real{0} : Real{1} / sum;
        }
        unpack_queries(a_.value_width, this->o, this->sum.data(), o);
    }

    void begin_reverse(QueryTile queries, const AttendReverse<Real>& call) {
        begin(queries);
        pack_queries(a_.width, call.q, a_.scale, this->q);
        pack_features(a_.width, call.q, a_.scale, this->key_q);
        pack_queries(a_.value_width, call.d_o, Real{1}, this->o);
        pack_features(a_.value_width, call.d_o, Real{1}, this->key_d_o);
        std::fill_n(this->dq, rounded(queries.count) * a_.width, Real{0});
        this->lse.fill(Real{0});
        std::copy_n(call.lse + first_query_, queries.count, this->lse.begin());
        this->D.fill(Real{0});
        for (Index i = 0; i < queries.count; ++i) {
            const Real *const o = call.o[first_query_ + i], *const d_o = call.d_o[first_query_ + i];
            Real part[width_of_panel] = {};
            Index f = 0;
            for (; f + width_of_panel <= a_.value_width; f += width_of_panel)
                for (Index e = 0; e < width_of_panel; ++e) part[e] += o[f + e] * d_o[f + e];
            for (Index e = 0; f + e < a_.value_width; ++e) part[e] += o[f + e] * d_o[f + e];
            for (const Real sum : part) this->D[static_cast<std::size_t>(i)] += sum;
        }
    }
    void end_reverse(Rows<Real> dq) {
        this->sum.fill(a_.scale);
        unpack_queries(a_.width, this->dq, this->sum.data(), dq);
    }

    void take(const PlacedKeys<most_keys>& tile, Index first_key) {
        this->keys = tile.count;
        this->place = tile.place.data();
        this->first_row = tile.span.first;
        this->first_key = tile.columns({first_key, tile.span.last}).first;
        look(tile);
        if (this->slope > Real{0})
            for (Index i = 0; i < this->queries; ++i)
                this->position[static_cast<std::size_t>(i)] =
                    static_cast<Real>(a_.offset + first_query_ + i - tile.span.first);
        for (Index i = 0; this->dropout && i < this->queries; ++i) {
            factors_.make(a_.offset, first_query_ + i, tile.span);
            Real* const column = this->factor + i / width_of_panel * most_keys * width_of_panel + i % width_of_panel;
            for (Index c = 0; c < tile.count; ++c)
                column[c * width_of_panel] = factors_[tile.place[static_cast<std::size_t>(c)]];
        }
    }

private:
    static constexpr Index rounded(Index count) noexcept {
        return (count + width_of_panel - 1) / width_of_panel * width_of_panel;
    }

    /// Who sees what.
    void look(const PlacedKeys<most_keys>& tile) {
        const Range whole{0, tile.count};
        const auto sees = [&](Index i) { return tile.columns(a_.seen(first_query_ + std::min(i, this->queries - 1))); };
        this->columns.fill(whole);
        this->all.fill(true);
        if (sees(0) == whole && sees(this->queries - 1) == whole) {  // and so do those between
            blind_.fill(false);
            return;
        }
        for (Index panel = 0; panel * width_of_panel < this->queries; ++panel) {
            const Range of_first = sees(panel * width_of_panel);
            Range any{0, 0};
            bool same = true;
            for (Index i = panel * width_of_panel; i < (panel + 1) * width_of_panel; ++i) {
                const Range seen = sees(i);
                const auto at = static_cast<std::size_t>(i);
                this->first[at] = static_cast<Real>(seen.first);
                this->last[at] = static_cast<Real>(seen.last);
                same = same && seen == of_first;
                if (seen.empty()) continue;
                blind_[at] = false;
                any = any.empty() ? seen : Range{std::min(any.first, seen.first), std::max(any.last, seen.last)};
            }
            this->columns[static_cast<std::size_t>(panel)] = any;
            this->all[static_cast<std::size_t>(panel)] = same;
        }
    }

    const Attend<Real>& a_;
    Factors<Real, most_keys> factors_;
    Index size_ = 0, first_query_ = 0;
    Real* turned_;
    std::array<bool, most_queries> blind_{};  // of each query: it has seen no key
};

}  // namespace

template <class Real>
Index panels_workspace(const Attend<Real>& a) {
    return Panels<Real>(a, nullptr).size();
}

template <class Real>
void attend_by_panels(const Attend<Real>& a, Rows<const Real> q, Rows<const Real> k, Rows<const Real> v, Rows<Real> o,
                      Real* lse, Real* workspace) {
    Panels<Real> panels(a, workspace);
    for_each_query_tile<most_queries>(a, [&](QueryTile queries) {
        panels.begin_forward(queries, q);
        for_each_key_tile<most_keys>(a, queries, [&](const PlacedKeys<most_keys>& keys) {
            panels.take(keys, 0);
            forward(panels, k, v);
        });
        panels.end_forward(o, lse);
    });
}

// The equations of attend.cpp.
template <class Real>
void attend_reverse_by_panels(const Attend<Real>& a, const AttendReverse<Real>& call, Real* workspace) {
    Panels<Real> panels(a, workspace);
    for_each_query_tile<most_queries>(a, [&](QueryTile queries) {
        panels.begin_reverse(queries, call);
        for_each_key_tile<most_keys>(a, queries, [&](const PlacedKeys<most_keys>& keys) {
            panels.take(keys, call.first_key);
            reverse(panels, call.k, call.v, call.dk, call.dv);
        });
        panels.end_reverse(call.dq);
    });
}

template Index panels_workspace(const Attend<float>&);
template Index panels_workspace(const Attend<double>&);
template void attend_by_panels(const Attend<float>&, Rows<const float>, Rows<const float>, Rows<const float>,
                               Rows<float>, float*, float*);
template void attend_by_panels(const Attend<double>&, Rows<const double>, Rows<const double>, Rows<const double>,
                               Rows<double>, double*, double*);
template void attend_reverse_by_panels(const Attend<float>&, const AttendReverse<float>&, float*);
template void attend_reverse_by_panels(const Attend<double>&, const AttendReverse<double>&, double*);

}  // namespace backsweep::cpu
#endif
