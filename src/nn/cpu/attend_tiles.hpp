// What the ways of attention on the CPU share: tiles of queries, the tiles of keys that they see, and dropout's
// factors.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/random.hpp"
#include "nn/attend.hpp"
#include "nn/spared.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace backsweep::cpu {

/// Queries first .. first + count - 1.
struct QueryTile {
    Index first, count;
};

/// f(tile) for all queries, `most` at a time.
template <Index most, class Real, class F>
void for_each_query_tile(const Attend<Real>& a, F f) {
    for (Index first = 0; first < a.queries; first += most) f(QueryTile{first, std::min(most, a.queries - first)});
}

/// The keys of [span.first, span.last) that are not hidden: its columns.
template <Index most>
struct PlacedKeys {
    Range span{};
    Index count = 0;
    std::array<std::int32_t, most> place;  // of each, counted from span.first; rising

    bool packed() const noexcept { return count < span.size(); }
    /// The columns in a range of keys.
    Range columns(Range keys) const noexcept {
        const auto column = [this](Index key) {
            const Index from_first = std::clamp<Index>(key - span.first, 0, span.size());
            return packed() ? std::lower_bound(place.begin(), place.begin() + count, from_first) - place.begin()
                            : from_first;
        };
        const Index first = column(keys.first);
        return {first, std::max(first, column(keys.last))};
    }
    /// Rows of the columns, one behind the other.
    template <class Real>
    void pack(Rows<const Real> from, Index width, Real* to) const {
        for (Index c = 0; c < count; ++c)
            std::copy_n(from[span.first + place[static_cast<std::size_t>(c)]], width, to + c * width);
    }
};

/// f(keys) for all tiles of keys that a query of the tile sees, in rising order. They are counted from key `offset`,
/// both ways, so that the rows before it move none but the first.
template <Index most, class Real, class F>
void for_each_key_tile(const Attend<Real>& a, QueryTile queries, F f) {
    const Index last = a.seen(queries.first + queries.count - 1).last;
    Index first = a.seen(queries.first).first;
    while (first < last) {
        const Index behind = (first - a.offset) % most;
        const Index next = std::min(last, first - behind + (behind < 0 ? 0 : most));
        PlacedKeys<most> keys;
        keys.span = {first, next};
        for (Index j = first; j < next; ++j)
            if (!a.hidden || !a.hidden[j])
                keys.place[static_cast<std::size_t>(keys.count++)] = static_cast<std::int32_t>(j - first);
        if (keys.count > 0) f(keys);
        first = next;
    }
}

/// Factors of dropout for one query and a tile of keys, by place.
template <class Real, Index most>
class Factors {
public:
    explicit Factors(const AttendDropout& dropout)
        : dropout_(dropout),
          random_(dropout.seed, dropout.stream),
          spared_(dropout.rate) {}

    bool all_one() const noexcept { return spared_.all(); }

    void make(Index offset, Index query, Range keys) {
        const auto step = static_cast<std::uint32_t>(dropout_.step + query);
        const auto first = static_cast<std::uint32_t>(dropout_.step - offset + keys.first);
        const auto column = static_cast<std::uint64_t>(dropout_.column) << 32;
        const auto count = static_cast<std::uint64_t>(keys.size());
        const std::uint64_t before_wrap = std::min(count, (std::uint64_t{1} << 32) - first);
        const Real kept = spared_.factor<Real>();
        random_.words(step, column + first, before_wrap,
                      [&](std::uint64_t k, std::uint32_t word) { factor_[k] = spared_(word) ? kept : Real{0}; });
        random_.words(step, column, count - before_wrap, [&](std::uint64_t k, std::uint32_t word) {
            factor_[before_wrap + k] = spared_(word) ? kept : Real{0};
        });
    }

    Real operator[](std::int32_t place) const noexcept { return factor_[static_cast<std::size_t>(place)]; }

private:
    AttendDropout dropout_;
    Random random_;
    Spared spared_;
    std::array<Real, most> factor_;
};

}  // namespace backsweep::cpu
