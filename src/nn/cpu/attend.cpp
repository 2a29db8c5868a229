// Attention by tiles: of float and double without distances in vectors (nn/cpu/attend_panels.hpp), else here, by
// products of tiles of queries and of all tiles of keys that one of them sees.
// SPDX-License-Identifier: MIT
#include "nn/cpu/attend.hpp"

#include "nn/cpu/attend_panels.hpp"
#include "nn/cpu/attend_tiles.hpp"
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/multiply.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

namespace backsweep::cpu {
namespace {

using std::exp, std::fabs, std::log;  // Dual has its own

// Of 64 .. 256 by 128 .. 512 none was faster by more than the noise; the scratch of float stays within 0.5 MB.
constexpr Index query_tile = 128, key_tile = 256, band = query_tile + key_tile;

/// Scratch, cut into its parts.
template <class Real>
struct Scratch {
    Scratch(const Attend<Real>& a, Real* memory) {
        const auto take = [&](Index part) {
            size += part;
            return memory ? memory + (size - part) : nullptr;
        };
        scores = take(query_tile * key_tile);
        adjoints = take(query_tile * key_tile);
        content = take(query_tile * a.width);
        keys = take(key_tile * a.width);
        values = take(key_tile * a.value_width);
        if (a.r) {
            by_distance = take(query_tile * band);
            distance = take(query_tile * a.width);
            d_distance = take(query_tile * a.width);
        }
    }

    Index size = 0;
    Real *scores, *adjoints;              // [query][key], rows of key_tile
    Real *content, *distance = nullptr;   // [query][width]: q + u, q + w
    Real* d_distance = nullptr;           // [query][width]: adjoint of q + w
    Real *keys, *values;                  // tiles without their hidden keys; then their adjoints
    Real* by_distance = nullptr;          // [query][distance], rows of band: (q + w).r_d, then its adjoint
};

/// Keys, and their rows where the caller has them or, where some are hidden, packed.
template <class Real>
struct KeyTile : PlacedKeys<key_tile> {
    KeyTile(const PlacedKeys<key_tile>& keys, const Attend<Real>& a, Rows<const Real> of_k, Rows<const Real> of_v,
            const Scratch<Real>& scratch)
        : PlacedKeys<key_tile>(keys),
          k{of_k[span.first], of_k.stride},
          v{of_v[span.first], of_v.stride} {
        if (!packed()) return;
        pack(of_k, a.width, scratch.keys);
        pack(of_v, a.value_width, scratch.values);
        k = {scratch.keys, a.width};
        v = {scratch.values, a.value_width};
    }

    Rows<const Real> k, v;
};

/// q + u and q + w of a tile.
template <class Real>
void gather_queries(const Attend<Real>& a, QueryTile queries, Rows<const Real> q, const Scratch<Real>& scratch) {
    for (Index i = 0; i < queries.count; ++i) {
        const Real* const from = q[queries.first + i];
        Real* const content = scratch.content + i * a.width;
        std::copy_n(from, a.width, content);
        if (!a.r) continue;
        add(a.width, a.u, content);
        std::copy_n(from, a.width, scratch.distance + i * a.width);
        add(a.width, a.w, scratch.distance + i * a.width);
    }
}

/// The distances that a pair of tiles needs: at most `band` of them.
template <class Real>
Range distances(const Attend<Real>& a, QueryTile queries, const KeyTile<Real>& tile) {
    const Index position = a.offset + queries.first;
    const Index last = position + queries.count - tile.span.first;
    return {std::max<Index>(0, position - (tile.span.last - 1)), a.window > 0 ? std::min(last, a.window) : last};
}

/// scores := scale (q + u).k - slope |d| + scale (q + w).r_d, where key c is seen by query i; elsewhere anything.
template <class Real>
void make_scores(const Attend<Real>& a, QueryTile queries, const KeyTile<Real>& tile, const Scratch<Real>& scratch) {
    multiply('T', 'N', tile.count, queries.count, a.width, tile.k.data, tile.k.stride, scratch.content, a.width,
             Real{0}, scratch.scores, key_tile);
    const Range far = a.r ? distances(a, queries, tile) : Range{};
    if (a.r)
        multiply('T', 'N', far.size(), queries.count, a.width, a.r + far.first * a.r_stride, a.r_stride,
                 scratch.distance, a.width, Real{0}, scratch.by_distance, band);
    for (Index i = 0; i < queries.count; ++i) {
        const Range columns = tile.columns(a.seen(queries.first + i));
        const Index distance = a.offset + queries.first + i - tile.span.first;  // of the tile's first place
        Real* __restrict const s = scratch.scores + i * key_tile;
        const std::int32_t* const place = tile.place.data();
        if (a.r) {
            const Real* const by_distance = scratch.by_distance + i * band + (distance - far.first);
            for (Index c = columns.first; c < columns.last; ++c) s[c] += by_distance[-place[c]];
        }
        if (a.slope > Real{0}) {
            const Real scale = a.scale, slope = a.slope, first = static_cast<Real>(distance);
            for (Index c = columns.first; c < columns.last; ++c)
                s[c] = scale * s[c] - slope * fabs(first - static_cast<Real>(place[c]));
        } else {
            for (Index c = columns.first; c < columns.last; ++c) s[c] *= a.scale;
        }
    }
}

/// All but `columns` of a row of a tile := 0.
template <class Real>
void clear_unseen(const KeyTile<Real>& tile, Range columns, Real* row) {
    std::fill(row, row + columns.first, Real{0});
    std::fill(row + columns.last, row + tile.count, Real{0});
}

/// The running maximum and sum of every query of a tile [Milakov18].
template <class Real>
struct Online {
    std::array<Real, query_tile> max, sum;
};

/// One tile of keys:  m' = max(m, max_c s_c),  e_c = exp(s_c - m'),  l' = l exp(m - m') + sum_c e_c,
/// o' = o exp(m - m') + sum_c factor_c e_c v_c.
template <class Real>
void take_in(const Attend<Real>& a, QueryTile queries, const KeyTile<Real>& tile, const Scratch<Real>& scratch,
             Factors<Real, key_tile>& factors, Online<Real>& online, Rows<Real> o) {
    for (Index i = 0; i < queries.count; ++i) {
        const Range columns = tile.columns(a.seen(queries.first + i));
        Real* const s = scratch.scores + i * key_tile;
        clear_unseen(tile, columns, s);
        if (columns.empty()) continue;
        Real &max = online.max[static_cast<std::size_t>(i)], &sum = online.sum[static_cast<std::size_t>(i)];
        const Real tile_max = largest(columns.size(), s + columns.first);
        if (sum == Real{0}) {
            max = tile_max;
        } else if (tile_max > max) {
            const Real shrunk = exp(max - tile_max);
            max = tile_max;
            sum *= shrunk;
            Real* const row = o[queries.first + i];
            for (Index k = 0; k < a.value_width; ++k) row[k] *= shrunk;
        }
        sum += exponentials(columns.size(), max, s + columns.first);
        if (factors.all_one()) continue;
        factors.make(a.offset, queries.first + i, tile.span);
        for (Index c = columns.first; c < columns.last; ++c) s[c] *= factors[tile.place[static_cast<std::size_t>(c)]];
    }
    multiply('N', 'N', a.value_width, queries.count, tile.count, tile.v.data, tile.v.stride, scratch.scores, key_tile,
             Real{1}, o[queries.first], o.stride);
}

/// scores := factor P, adjoints := scale dS = scale P (factor dP - D).
template <class Real>
void make_adjoints(const Attend<Real>& a, QueryTile queries, const KeyTile<Real>& tile, const AttendReverse<Real>& call,
                   const Real* D, const Scratch<Real>& scratch, Factors<Real, key_tile>& factors) {
    multiply('T', 'N', tile.count, queries.count, a.value_width, tile.v.data, tile.v.stride, call.d_o[queries.first],
             call.d_o.stride, Real{0}, scratch.adjoints, key_tile);
    for (Index i = 0; i < queries.count; ++i) {
        const Range columns = tile.columns(a.seen(queries.first + i));
        Real* __restrict const p = scratch.scores + i * key_tile;
        Real* __restrict const d = scratch.adjoints + i * key_tile;
        clear_unseen(tile, columns, p);
        clear_unseen(tile, columns, d);
        if (columns.empty()) continue;
        exponentials(columns.size(), call.lse[queries.first + i], p + columns.first);
        const Real scale = a.scale, D_i = D[i];
        if (factors.all_one()) {
            for (Index c = columns.first; c < columns.last; ++c) d[c] = scale * (p[c] * (d[c] - D_i));
            continue;
        }
        factors.make(a.offset, queries.first + i, tile.span);
        for (Index c = columns.first; c < columns.last; ++c) {
            const Real factor = factors[tile.place[static_cast<std::size_t>(c)]];
            d[c] = scale * (p[c] * (factor * d[c] - D_i));
            p[c] *= factor;
        }
    }
}

/// to[key] += from' queries for the keys of a tile from column `first` on, [query][width] being `queries`. `spare` holds
/// the sums of a tile that is packed.
template <class Real>
void add_to_keys(QueryTile at, const KeyTile<Real>& tile, Index first, Index width, const Real* from,
                 Rows<const Real> queries, Rows<Real> to, Real* spare) {
    if (first == tile.count) return;
    const bool packed = tile.packed();
    const auto place = [&](Index c) { return to[tile.span.first + tile.place[static_cast<std::size_t>(c)]]; };
    for (Index c = first; packed && c < tile.count; ++c) std::copy_n(place(c), width, spare + (c - first) * width);
    multiply('N', 'T', width, tile.count - first, at.count, queries.data, queries.stride, from + first, key_tile,
             Real{1}, packed ? spare : to[tile.span.first + first], packed ? width : to.stride);
    for (Index c = first; packed && c < tile.count; ++c) std::copy_n(spare + (c - first) * width, width, place(c));
}

/// d_distance += dS by distance times r;  dr += its transpose times (q + w).
template <class Real>
void reverse_distances(const Attend<Real>& a, QueryTile queries, const KeyTile<Real>& tile,
                       const AttendReverse<Real>& call, const Scratch<Real>& scratch) {
    const Range far = distances(a, queries, tile);
    for (Index i = 0; i < queries.count; ++i) {
        const Range columns = tile.columns(a.seen(queries.first + i));
        Real* const row = scratch.by_distance + i * band;
        std::fill_n(row, far.size(), Real{0});
        Real* const from_first = row + (a.offset + queries.first + i - tile.span.first - far.first);
        for (Index c = columns.first; c < columns.last; ++c)
            from_first[-tile.place[static_cast<std::size_t>(c)]] = scratch.adjoints[i * key_tile + c];
    }
    multiply('N', 'N', a.width, queries.count, far.size(), a.r + far.first * a.r_stride, a.r_stride,
             scratch.by_distance, band, Real{1}, scratch.d_distance, a.width);
    multiply('N', 'T', a.width, far.size(), queries.count, scratch.distance, a.width, scratch.by_distance, band,
             Real{1}, call.dr[far.first], call.dr.stride);
}

/// dq holds the adjoint of q + u, d_distance that of q + w: both are sums over the same queries.
template <class Real>
void add_biases(const Attend<Real>& a, QueryTile queries, const AttendReverse<Real>& call,
                const Scratch<Real>& scratch) {
    for (Index i = 0; i < queries.count; ++i) {
        Real* const dq = call.dq[queries.first + i];
        const Real* const d_distance = scratch.d_distance + i * a.width;
        add(a.width, dq, call.du);
        add(a.width, d_distance, call.dw);
        add(a.width, d_distance, dq);
    }
}

/// Whether vectors do it: numbers that they hold, and no distances.
template <class Real>
constexpr bool in_vectors = std::is_floating_point_v<Real>;

}  // namespace

template <class Real>
Index attend_workspace(const Attend<Real>& a) {
    if constexpr (in_vectors<Real>)
        if (!a.r) return panels_workspace(a);
    return Scratch<Real>(a, nullptr).size;
}

template <class Real>
void attend(const Attend<Real>& a, Rows<const Real> q, Rows<const Real> k, Rows<const Real> v, Rows<Real> o, Real* lse,
            Real* workspace) {
    if constexpr (in_vectors<Real>)
        if (!a.r) return attend_by_panels(a, q, k, v, o, lse, workspace);
    const Scratch<Real> scratch(a, workspace);
    Factors<Real, key_tile> factors(a.dropout);
    for_each_query_tile<query_tile>(a, [&](QueryTile queries) {
        gather_queries(a, queries, q, scratch);
        Online<Real> online;
        online.sum.fill(Real{0});
        for (Index i = 0; i < queries.count; ++i) std::fill_n(o[queries.first + i], a.value_width, Real{0});
        for_each_key_tile<key_tile>(a, queries, [&](const PlacedKeys<key_tile>& keys) {
            const KeyTile<Real> tile(keys, a, k, v, scratch);
            make_scores(a, queries, tile, scratch);
            take_in(a, queries, tile, scratch, factors, online, o);
        });
        for (Index i = 0; i < queries.count; ++i) {
            const Real sum = online.sum[static_cast<std::size_t>(i)];
            if (sum == Real{0}) {  // no key was seen, for the largest of those seen adds 1
                lse[queries.first + i] = -std::numeric_limits<Real>::infinity();
                continue;
            }
            lse[queries.first + i] = online.max[static_cast<std::size_t>(i)] + log(sum);
            Real* const row = o[queries.first + i];
            const Real inverse = Real{1} / sum;
            for (Index f = 0; f < a.value_width; ++f) row[f] *= inverse;
        }
    });
}

// With P = exp(logit - lse) where a key is seen, and M the factors of dropout, 1 without [Dao22, algorithm 4]; queries
// outside, keys inside, so that dq needs no second pass [Dao23]:
//
//     D_i = do_i.o_i = sum_j P_ij dP_ij,   dP = M (do v'),   dS = P (dP - D)
//     dv += (M P)' do,   dk += scale dS' (q + u),   dq = scale (dS k + dS_by_distance r)
template <class Real>
void attend_reverse(const Attend<Real>& a, const AttendReverse<Real>& call, Real* workspace) {
    if constexpr (in_vectors<Real>)
        if (!a.r) return attend_reverse_by_panels(a, call, workspace);
    const Scratch<Real> scratch(a, workspace);
    Factors<Real, key_tile> factors(a.dropout);
    for_each_query_tile<query_tile>(a, [&](QueryTile queries) {
        gather_queries(a, queries, call.q, scratch);
        std::array<Real, query_tile> D;
        for (Index i = 0; i < queries.count; ++i) {
            const Real *const o = call.o[queries.first + i], *const d_o = call.d_o[queries.first + i];
            Real sum = 0;
            for (Index f = 0; f < a.value_width; ++f) sum += o[f] * d_o[f];
            D[static_cast<std::size_t>(i)] = sum;
            std::fill_n(call.dq[queries.first + i], a.width, Real{0});
        }
        if (a.r) std::fill_n(scratch.d_distance, queries.count * a.width, Real{0});
        for_each_key_tile<key_tile>(a, queries, [&](const PlacedKeys<key_tile>& keys) {
            const KeyTile<Real> tile(keys, a, call.k, call.v, scratch);
            make_scores(a, queries, tile, scratch);
            make_adjoints(a, queries, tile, call, D.data(), scratch, factors);
            multiply('N', 'N', a.width, queries.count, tile.count, tile.k.data, tile.k.stride, scratch.adjoints,
                     key_tile, Real{1}, call.dq[queries.first], call.dq.stride);
            if (a.r) reverse_distances(a, queries, tile, call, scratch);
            const Index first = tile.columns({call.first_key, tile.span.last}).first;
            add_to_keys(queries, tile, first, a.value_width, scratch.scores,
                        {call.d_o[queries.first], call.d_o.stride}, call.dv, scratch.values);
            add_to_keys(queries, tile, first, a.width, scratch.adjoints, {scratch.content, a.width}, call.dk,
                        scratch.keys);
        });
        if (a.r) add_biases(a, queries, call, scratch);
    });
}

template Index attend_workspace(const Attend<float>&);
template Index attend_workspace(const Attend<double>&);
template Index attend_workspace(const Attend<Dual<double>>&);
template void attend(const Attend<float>&, Rows<const float>, Rows<const float>, Rows<const float>, Rows<float>, float*,
                     float*);
template void attend(const Attend<double>&, Rows<const double>, Rows<const double>, Rows<const double>, Rows<double>,
                     double*, double*);
template void attend(const Attend<Dual<double>>&, Rows<const Dual<double>>, Rows<const Dual<double>>,
                     Rows<const Dual<double>>, Rows<Dual<double>>, Dual<double>*, Dual<double>*);
template void attend_reverse(const Attend<float>&, const AttendReverse<float>&, float*);
template void attend_reverse(const Attend<double>&, const AttendReverse<double>&, double*);
template void attend_reverse(const Attend<Dual<double>>&, const AttendReverse<Dual<double>>&, Dual<double>*);

}  // namespace backsweep::cpu
