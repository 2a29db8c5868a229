// Register tiles of whole panels of rows by a few columns [GvdG08]; a panel of A stays in the first cache, a block of
// columns of B in the second.
// SPDX-License-Identifier: MIT
#include "nn/cpu/product.hpp"

#include "nn/cpu/team.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/product.cpp"
#include "nn/cpu/targets.hpp"

#ifndef BACKSWEEP_SUMS
#define BACKSWEEP_SUMS
namespace backsweep::cpu {

/// Sums of `inner` products are assigned at `to`, columns `ld` apart; they begin with what stands at `from` (null: 0).
template <class Real>
struct Sums {
    const Real* from;
    Index ld_from;
    Real* to;
    Index ld;

    Sums at(Index row, Index column) const noexcept {
        return {from ? from + row + column * ld_from : nullptr, ld_from, to + row + column * ld, ld};
    }
    /// Goes on from what was assigned.
    Sums on() const noexcept { return {to, ld, to, ld}; }
};

/// The left side of one of several products with the same right side: op(A), and what the product is added to.
template <class Real>
struct Left {
    bool transposed;
    Index rows;
    const Real* A;
    Index ld;
    Sums<Real> C;
};

}  // namespace backsweep::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backsweep::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The most columns of a tile, and the panels that a tile of so many columns takes together: as many sums as hide the
/// time of an addition and fit the registers.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
constexpr Index most_columns = 8;
constexpr int panels_of(Index columns) {
    return columns < 5 ? 4 : 2;
}
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
constexpr Index most_columns = 6;
constexpr int panels_of(Index columns) {
    return columns < 2 ? 4 : columns < 3 ? 2 : 1;
}
#else
constexpr Index most_columns = 3;
constexpr int panels_of(Index columns) {
    return columns < 2 ? 2 : 1;
}
#endif

/// Where the element of row k and column j of B lies: at k + j ld, or packed in strips of most_columns columns.
enum class Right { columns, strips };

/// What comes nearer during a tile: the place of the tile that follows, and `share` rows of each of its panels, `panel`
/// elements apart.
template <class Real>
struct Next {
    const Real* C;
    const Real* A;
    Index share;
};

template <class Real, int panels, int columns, Right right>
HWY_INLINE void tile(Index inner, const Real* HWY_RESTRICT A, Index panel, const Real* HWY_RESTRICT B, Index ld_b,
                     Sums<Real> C, Next<Real> next) {
    constexpr Index width = panel_rows<Real>;
    const hn::CappedTag<Real, static_cast<size_t>(width)> d;
    using V = hn::Vec<decltype(d)>;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(d)), each = static_cast<int>(width) / lanes,
                  vectors = panels * each;
    V sums[vectors][columns];
    HWY_UNROLL(8)
    for (int j = 0; j < columns; ++j) HWY_UNROLL(8)
    for (int v = 0; v < vectors; ++v)
        sums[v][j] = C.from ? hn::LoadU(d, C.from + j * C.ld_from + v * lanes) : hn::Zero(d);
    Index k = 0;
    for (int q = 0; q < columns; ++q) {
        // Column by column: few lines are on their way at a time.
        for (int p = 0; p < panels; ++p) {
            __builtin_prefetch(next.C + p * width + q * C.ld, 1);
            for (Index l = q; l < next.share; l += columns) __builtin_prefetch(next.A + p * panel + l * width, 0, 2);
        }
        const Index until = q + 1 < columns ? k + inner / columns : inner;
        for (; k < until; ++k) {
            V a[vectors];
            HWY_UNROLL(8)
            for (int v = 0; v < vectors; ++v)
                a[v] = hn::LoadU(d, A + (v / each) * panel + k * width + (v % each) * lanes);
            HWY_UNROLL(8)
            for (int j = 0; j < columns; ++j) {
                const V b = hn::Set(d, right == Right::columns ? B[k + j * ld_b] : B[k * most_columns + j]);
                HWY_UNROLL(8)
                for (int v = 0; v < vectors; ++v) sums[v][j] = hn::MulAdd(a[v], b, sums[v][j]);
            }
        }
    }
    HWY_UNROLL(8)
    for (int j = 0; j < columns; ++j) HWY_UNROLL(8)
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[v][j], d, C.to + j * C.ld + v * lanes);
}

/// `columns` columns, or fewer.
template <class Real, int panels, int columns, Right right>
HWY_INLINE void tile_of(Index count, Index inner, const Real* A, Index panel, const Real* B, Index ld_b, Sums<Real> C,
                        Next<Real> next) {
    if constexpr (columns > 1) {
        if (count < columns) {
            tile_of<Real, panels, columns - 1, right>(count, inner, A, panel, B, ld_b, C, next);
            return;
        }
    }
    tile<Real, panels, columns, right>(inner, A, panel, B, ld_b, C, next);
}

/// Some panels by all columns, in tiles of nearly equal width, or strip by strip. far: A does not fit the second cache.
template <class Real, int panels, int most, Right right>
HWY_INLINE void tiles(Index cols, Index inner, const Real* A, Index panel, bool far, const Real* B, Index ld_b,
                      Sums<Real> C) {
    Index left = (cols + most - 1) / most;
    const Index share = far && left >= 8 ? 1 + inner / left : 0;  // of the panels that follow
    const Real* fetched = A + panels * panel;
    for (Index j = 0; j < cols; --left) {
        const Index count = right == Right::strips ? std::min<Index>(most, cols - j) : (cols - j + left - 1) / left;
        const Next<Real> next{j + count < cols ? C.to + (j + count) * C.ld : C.to + panels * panel_rows<Real>, fetched,
                              share};
        tile_of<Real, panels, most, right>(count, inner, A, panel, B + j * ld_b, ld_b, C.at(0, j), next);
        fetched += share * panel_rows<Real>;
        j += count;
    }
}

/// Rows of the last panel that exist, by way of a tile of its own.
template <class Real, Right right>
HWY_INLINE void last_panel(Index rows, Index cols, Index inner, const Real* A, const Real* B, Index ld_b,
                           Sums<Real> C) {
    constexpr Index width = panel_rows<Real>;
    HWY_ALIGN Real own[width * most_columns] = {};
    for (Index j = 0; j < cols; j += most_columns) {
        const Index count = std::min(most_columns, cols - j);
        const Sums<Real> here = C.at(0, j);
        for (Index q = 0; here.from && q < count; ++q) std::copy_n(here.from + q * here.ld_from, rows, own + q * width);
        tiles<Real, 1, most_columns, right>(count, inner, A, 0, false, B + j * ld_b, ld_b,
                                            {here.from ? own : nullptr, width, own, width});
        for (Index q = 0; q < count; ++q) std::copy_n(own + q * width, rows, here.to + q * here.ld);
    }
}

/// Panels are `panel` elements apart.
template <class Real, int together, int most, Right right>
HWY_INLINE void panels_by_columns(Index rows, Index cols, Index inner, const Real* A, Index panel, const Real* B,
                                  Index ld_b, Sums<Real> C) {
    constexpr Index width = panel_rows<Real>;
    const bool far = rows * inner * static_cast<Index>(sizeof(Real)) > (256 << 10);
    Index r = 0;
    for (; r + together * width <= rows; r += together * width, A += together * panel)
        tiles<Real, together, most, right>(cols, inner, A, panel, far, B, ld_b, C.at(r, 0));
    if constexpr (together > 1) {
        if (r < rows)
            panels_by_columns<Real, together / 2, most, right>(rows - r, cols, inner, A, panel, B, ld_b, C.at(r, 0));
        return;
    }
    if (r < rows) last_panel<Real, right>(rows - r, cols, inner, A, B, ld_b, C.at(r, 0));
}

template <class Real, Right right>
HWY_INLINE void by_width(Index rows, Index cols, Index inner, const Real* A, Index panel, const Real* B, Index ld_b,
                         Sums<Real> C) {
    if (cols == 1)
        panels_by_columns<Real, panels_of(1), 1, right>(rows, cols, inner, A, panel, B, ld_b, C);
    else if (cols == 2)
        panels_by_columns<Real, panels_of(2), 2, right>(rows, cols, inner, A, panel, B, ld_b, C);
    else if (panels_of(4) > panels_of(most_columns) && cols < 5)
        panels_by_columns<Real, panels_of(4), 4, right>(rows, cols, inner, A, panel, B, ld_b, C);
    else
        panels_by_columns<Real, panels_of(most_columns), most_columns, right>(rows, cols, inner, A, panel, B, ld_b, C);
}

/// to [inner][width] := rows [count][inner], `ld` apart; rows up to `width` are 0.
template <class Real, Index width>
HWY_INLINE void transpose(Index count, Index inner, const Real* from, Index ld, Real* to) {
    Index k = 0;
#if HWY_TARGET != HWY_SCALAR
    constexpr Index lanes = 16 / static_cast<Index>(sizeof(Real));
    const hn::CappedTag<Real, static_cast<size_t>(lanes)> d;
    if (count == width && width % lanes == 0)
        for (; k + lanes <= inner; k += lanes)
            for (Index i = 0; i < width; i += lanes) {
                const Real* const f = from + i * ld + k;
                Real* const t = to + k * width + i;
                const auto a = hn::LoadU(d, f), b = hn::LoadU(d, f + ld);
                if constexpr (lanes == 4) {
                    const hn::RepartitionToWide<decltype(d)> pairs;
                    const auto as = [&](auto v) HWY_ATTR { return hn::BitCast(pairs, v); };
                    const auto back = [&](auto v) HWY_ATTR { return hn::BitCast(d, v); };
                    const auto c = hn::LoadU(d, f + 2 * ld), e = hn::LoadU(d, f + 3 * ld);
                    const auto ab = hn::InterleaveLower(d, a, b), ce = hn::InterleaveLower(d, c, e),
                               ab_up = hn::InterleaveUpper(d, a, b), ce_up = hn::InterleaveUpper(d, c, e);
                    hn::StoreU(back(hn::InterleaveLower(pairs, as(ab), as(ce))), d, t);
                    hn::StoreU(back(hn::InterleaveUpper(pairs, as(ab), as(ce))), d, t + width);
                    hn::StoreU(back(hn::InterleaveLower(pairs, as(ab_up), as(ce_up))), d, t + 2 * width);
                    hn::StoreU(back(hn::InterleaveUpper(pairs, as(ab_up), as(ce_up))), d, t + 3 * width);
                } else {
                    hn::StoreU(hn::InterleaveLower(d, a, b), d, t);
                    hn::StoreU(hn::InterleaveUpper(d, a, b), d, t + width);
                }
            }
#endif
    for (; k < inner; ++k)
        for (Index i = 0; i < width; ++i) to[k * width + i] = i < count ? from[i * ld + k] : Real{0};
}

/// Strips of `width` rows of op(A), [strip][inner][width].
template <class Real, Index width>
HWY_INLINE void pack_strips(bool transposed, Index rows, Index inner, const Real* A, Index ld, Real* to) {
    if (transposed) {
        for (Index r = 0; r < rows; r += width, to += inner * width)
            transpose<Real, width>(std::min(width, rows - r), inner, A + r * ld, ld, to);
        return;
    }
    // As many strips as a line of A has, and a few lines of each: what is written lies together.
    constexpr Index together = std::max<Index>(1, panel_rows<Real> / width) * width, lines = 16;
    for (Index first = 0; first < inner; first += lines) {
        const Index last = std::min(inner, first + lines);
        Index r = 0;
        for (; r + together <= rows; r += together)
            for (Index k = first; k < last; ++k)
                for (Index s = r; s < r + together; s += width)
                    std::memcpy(to + s * inner + k * width, A + k * ld + s, sizeof(Real) * static_cast<size_t>(width));
        for (; r < rows; r += width)
            for (Index k = first; k < last; ++k)
                for (Index i = 0; i < width; ++i)
                    to[r * inner + k * width + i] = r + i < rows ? A[k * ld + r + i] : Real{0};
    }
}

template <class Real>
void pack_of(bool transposed, Index rows, Index inner, const Real* A, Index ld, Real* to) {
    pack_strips<Real, panel_rows<Real>>(transposed, rows, inner, A, ld, to);
}

/// Blocks: a panel of inner_block stays in the first cache, column_block columns of B in the second.
constexpr Index inner_block = 256, row_block = 512, column_block = 192;
/// Copied columns are so far apart that those of a tile lie in different sets of a cache.
constexpr Index column_room = inner_block + 16;

/// Columns that lie in the same sets of a cache, while others stay empty, drive each other out of it.
template <class Real>
bool in_the_way(Index deep, Index ld_b) {
    constexpr auto size = static_cast<Index>(sizeof(Real));
    return std::gcd(ld_b * size, Index{4096}) > deep * size;
}

template <class Real>
void by_columns(Index rows, Index cols, Index deep, const Real* A, Index panel, const Real* B, Index ld_b, Sums<Real> C,
                Real* chunk) {
    if (cols > most_columns && in_the_way<Real>(deep, ld_b)) {
        for (Index j = 0; j < cols; ++j) std::copy_n(B + j * ld_b, deep, chunk + j * column_room);
        B = chunk;
        ld_b = column_room;
    }
    by_width<Real, Right::columns>(rows, cols, deep, A, panel, B, ld_b, C);
}

template <class Real>
void packed_product_of(Index rows, Index cols, Index inner, const Real* A, const Real* B, Index ld_b, Sums<Real> C,
                       bool down, Real* scratch) {
    constexpr Index width = panel_rows<Real>;
    const Index panel = inner * width;
    if (cols <= most_columns) {
        const Index group = panels_of(cols) * width, groups = (rows + group - 1) / group;
        for (Index g = 0; g < groups; ++g) {
            const Index r = (down ? groups - 1 - g : g) * group;
            by_width<Real, Right::columns>(std::min(group, rows - r), cols, inner, A + r * inner, panel, B, ld_b,
                                           C.at(r, 0));
        }
        return;
    }
    for (Index k = 0; k < inner; k += inner_block)
        for (Index j = 0; j < cols; j += column_block)
            by_columns(rows, std::min(column_block, cols - j), std::min(inner_block, inner - k), A + k * width, panel,
                       B + k + j * ld_b, ld_b, (k > 0 ? C.on() : C).at(0, j), scratch);
}

template <class Real>
void product_of(bool transposed, Index rows, Index cols, Index inner, const Real* A, Index ld_a, const Real* B,
                Index ld_b, Sums<Real> C, Real* scratch) {
    constexpr Index width = panel_rows<Real>;
    Real* const left = scratch + column_room * column_block;
    for (Index k = 0; k < inner; k += inner_block) {
        const Index deep = std::min(inner_block, inner - k);
        for (Index i = 0; i < rows; i += row_block) {
            const Index high = std::min(row_block, rows - i);
            pack_of(transposed, high, deep, A + (transposed ? k + i * ld_a : i + k * ld_a), ld_a, left);
            for (Index j = 0; j < cols; j += column_block)
                by_columns(high, std::min(column_block, cols - j), deep, left, deep * width, B + k + j * ld_b, ld_b,
                           (k > 0 ? C.on() : C).at(i, j), scratch);
        }
    }
}

/// With B transposed, packed once for all left sides that fit a block.
template <class Real>
void outer_products_of(const Left<Real>* lefts, Index count, Index cols, Index inner, const Real* B, Index ld_b,
                       Real* scratch) {
    constexpr Index width = panel_rows<Real>;
    Real* const packed = scratch + column_room * column_block;
    for (Index k = 0; k < inner; k += inner_block) {
        const Index deep = std::min(inner_block, inner - k);
        Index l = 0, row = 0;
        while (l < count) {
            // Parts of left sides, as many as the block has room for; a part begins a panel.
            struct Part {
                Index high, at;
                Sums<Real> C;
            };
            Part parts[2];
            Index number = 0, room = row_block;
            while (l < count && number < 2 && room >= width) {
                const Left<Real>& left = lefts[l];
                const Index high = std::min(room, left.rows - row), at = row_block - room;
                pack_of(left.transposed, high, deep, left.A + (left.transposed ? k + row * left.ld : row + k * left.ld),
                        left.ld, packed + at * deep);
                parts[number++] = {high, at, (k > 0 ? left.C.on() : left.C).at(row, 0)};
                room -= (high + width - 1) / width * width;
                row += high;
                if (row == left.rows) ++l, row = 0;
            }
            for (Index j = 0; j < cols; j += column_block) {
                const Index wide = std::min(column_block, cols - j);
                pack_strips<Real, most_columns>(false, wide, deep, B + j + k * ld_b, ld_b, scratch);
                for (Index p = 0; p < number; ++p)
                    by_width<Real, Right::strips>(parts[p].high, wide, deep, packed + parts[p].at * deep, deep * width,
                                                  scratch, deep, parts[p].C.at(0, j));
            }
        }
    }
}

}  // namespace

// Dispatch wants functions that are no templates.
#define BACKSWEEP_FUNCTIONS(Real)                                                                             \
    void pack_##Real(bool transposed, Index rows, Index inner, const Real* A, Index ld, Real* to) {           \
        pack_of(transposed, rows, inner, A, ld, to);                                                          \
    }                                                                                                         \
    void packed_product_##Real(Index rows, Index cols, Index inner, const Real* A, const Real* B, Index ld_b, \
                               Sums<Real> C, bool down, Real* scratch) {                                      \
        packed_product_of(rows, cols, inner, A, B, ld_b, C, down, scratch);                                   \
    }                                                                                                         \
    void product_##Real(bool transposed, Index rows, Index cols, Index inner, const Real* A, Index ld_a,      \
                        const Real* B, Index ld_b, Sums<Real> C, Real* scratch) {                             \
        product_of(transposed, rows, cols, inner, A, ld_a, B, ld_b, C, scratch);                              \
    }                                                                                                         \
    void outer_products_##Real(const Left<Real>* lefts, Index count, Index cols, Index inner, const Real* B,  \
                               Index ld_b, Real* scratch) {                                                   \
        outer_products_of(lefts, count, cols, inner, B, ld_b, scratch);                                       \
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

HWY_EXPORT(pack_float);
HWY_EXPORT(pack_double);
HWY_EXPORT(packed_product_float);
HWY_EXPORT(packed_product_double);
HWY_EXPORT(product_float);
HWY_EXPORT(product_double);
HWY_EXPORT(outer_products_float);
HWY_EXPORT(outer_products_double);

/// Elements that one member of a team copies parts into.
constexpr Index scratch_size =
    HWY_NAMESPACE::inner_block * HWY_NAMESPACE::row_block + HWY_NAMESPACE::column_room * HWY_NAMESPACE::column_block;

template <class Real>
Real* scratch_of_thread(Index members) {
    struct Free {
        void operator()(Real* p) const noexcept { ::operator delete[](p, std::align_val_t{64}); }
    };
    thread_local std::unique_ptr<Real[], Free> scratch;
    thread_local Index held = 0;
    if (members > held) {
        const auto bytes = static_cast<std::size_t>(members * scratch_size) * sizeof(Real);
        scratch.reset(static_cast<Real*>(::operator new[](bytes, std::align_val_t{64})));
        held = members;
    }
    return scratch.get();
}

/// How a product is cut: in rows, or columns where rows are too few; or in columns. What is not cut, every part packs.
enum class Cut { rows, columns };

/// f(rows, columns, scratch) for parts that cover C [rows x cols], by this thread's team where that pays.
template <class Real, class F>
void in_parts(Cut cut, Index rows, Index cols, Index inner, const F& f) {
    Team* const team = team_of_thread();
    const Index members = team ? team->members() : 1;
    Real* const scratch = scratch_of_thread<Real>(members);
    // Whole tiles, in every kind of vectors. A part takes some three microseconds; one column takes the time of three.
    constexpr Index high = 4 * panel_rows<Real>, wide = 24, worth = Index{1} << 20;
    const Index bytes = rows * inner * std::max<Index>(cols, 3) * static_cast<Index>(sizeof(Real)),
                most = std::min({bytes / worth, 2 * members, Team::most_parts}), along = (rows + high - 1) / high,
                across = (cols + wide - 1) / wide;
    const bool by_rows = cut == Cut::rows && along >= std::min(most, across);
    const Index each = by_rows ? high : wide, tiles = by_rows ? along : across, enough = std::min(most, tiles),
                parts = enough > members ? enough / members * members : enough;  // as many for every member
    if (members == 1 || parts < 2) {
        f(Range{0, rows}, Range{0, cols}, scratch);
        return;
    }
    team->run(parts, [&](Index part, Index member) noexcept {
        const Index begin = part * tiles / parts * each, end = (part + 1) * tiles / parts * each;
        Real* const own = scratch + member * scratch_size;
        if (by_rows)
            f(Range{begin, std::min(end, rows)}, Range{0, cols}, own);
        else
            f(Range{0, rows}, Range{begin, std::min(end, cols)}, own);
    });
}

/// What the columns of C begin with.
template <class Real>
Sums<Real> sums_of(Real beta, const Real* column, Real* C, Index ld_c) noexcept {
    if (column) return {column, 0, C, ld_c};
    return {beta == Real{0} ? nullptr : C, ld_c, C, ld_c};
}
/// A sum of no products is what it begins with; answers whether it is one.
template <class Real>
bool assigned_if_empty(Index inner, Index rows, Index cols, const Sums<Real>& C) noexcept {
    for (Index j = 0; inner == 0 && j < cols; ++j)
        for (Index i = 0; i < rows; ++i) C.to[i + j * C.ld] = C.from ? C.from[i + j * C.ld_from] : Real{0};
    return inner == 0;
}

}  // namespace

#define BACKSWEEP_DEFINE(Real)                                                                                        \
    template <>                                                                                                       \
    void pack(char op, Index rows, Index inner, const Real* A, Index ld, Real* to) noexcept {                         \
        HWY_DYNAMIC_DISPATCH(pack_##Real)(op == 'T', rows, inner, A, ld, to);                                         \
    }                                                                                                                 \
    template <>                                                                                                       \
    void packed_product(Index rows, Index cols, Index inner, const Real* A, const Real* B, Index ld_b, Real beta,     \
                        Real* C, Index ld_c, const Real* column) {                                                    \
        const Sums<Real> sums = sums_of(beta, column, C, ld_c);                                                       \
        if (assigned_if_empty(inner, rows, cols, sums)) return;                                                       \
        thread_local bool down = false; /* to and fro: the panels that were last are near still */                    \
        down = !down;                                                                                                 \
        in_parts<Real>(Cut::rows, rows, cols, inner, [&, down = down](Range r, Range c, Real* scratch) {              \
            HWY_DYNAMIC_DISPATCH(packed_product_##Real)                                                               \
            (r.size(), c.size(), inner, A + r.first * inner, B + c.first * ld_b, ld_b, sums.at(r.first, c.first),     \
             down, scratch);                                                                                          \
        });                                                                                                           \
    }                                                                                                                 \
    template <>                                                                                                       \
    void product(char op_a, char op_b, Index rows, Index cols, Index inner, const Real* A, Index ld_a, const Real* B, \
                 Index ld_b, Real beta, Real* C, Index ld_c, const Real* column) {                                    \
        if (rows == 1 && cols > 1 && ld_c == 1 && !column) { /* a row is a column of the transposed product */        \
            product(op_b == 'T' ? 'N' : 'T', op_a == 'T' ? 'N' : 'T', cols, rows, inner, B, ld_b, A, ld_a, beta, C,   \
                    cols);                                                                                            \
            return;                                                                                                   \
        }                                                                                                             \
        const Sums<Real> sums = sums_of(beta, column, C, ld_c);                                                       \
        if (assigned_if_empty(inner, rows, cols, sums)) return;                                                       \
        const bool transposed = op_a == 'T', outer = op_b == 'T';                                                     \
        in_parts<Real>(outer && cols >= rows ? Cut::columns : Cut::rows, rows, cols, inner,                           \
                       [&](Range r, Range c, Real* scratch) {                                                         \
                           const Left<Real> left{transposed, r.size(), A + r.first * (transposed ? ld_a : 1), ld_a,   \
                                                 sums.at(r.first, c.first)};                                          \
                           if (outer) {                                                                               \
                               HWY_DYNAMIC_DISPATCH(outer_products_##Real)                                            \
                               (&left, 1, c.size(), inner, B + c.first, ld_b, scratch);                               \
                               return;                                                                                \
                           }                                                                                          \
                           HWY_DYNAMIC_DISPATCH(product_##Real)                                                       \
                           (transposed, left.rows, c.size(), inner, left.A, ld_a, B + c.first * ld_b, ld_b, left.C,   \
                            scratch);                                                                                 \
                       });                                                                                            \
    }                                                                                                                 \
    template <>                                                                                                       \
    void add_outers(Index count, const Outer<Real>* outers, Index cols, Index inner, const Real* B, Index ld_b) {     \
        if (inner == 0) return;                                                                                       \
        for (; count > 0; count -= std::min<Index>(2, count), outers += 2) {                                          \
            const Index together = std::min<Index>(2, count),                                                         \
                        rows = outers[0].rows + (together > 1 ? outers[1].rows : 0);                                  \
            in_parts<Real>(Cut::columns, rows, cols, inner, [&](Range, Range c, Real* scratch) {                      \
                Left<Real> lefts[2];                                                                                  \
                for (Index l = 0; l < together; ++l) {                                                                \
                    const Outer<Real>& o = outers[l];                                                                 \
                    lefts[l] = {false, o.rows, o.A, o.ld, Sums<Real>{o.C, o.ld_c, o.C, o.ld_c}.at(0, c.first)};       \
                }                                                                                                     \
                HWY_DYNAMIC_DISPATCH(outer_products_##Real)                                                           \
                (lefts, together, c.size(), inner, B + c.first, ld_b, scratch);                                       \
            });                                                                                                       \
        }                                                                                                             \
    }
BACKSWEEP_DEFINE(float)
BACKSWEEP_DEFINE(double)
#undef BACKSWEEP_DEFINE

}  // namespace backsweep::cpu
#endif
