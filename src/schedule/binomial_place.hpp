// Where a walk stands among the binomials, and how it gets on without computing one anew.
// Griewank and Walther 2000 [GW00].
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/revolve.hpp"
#include "schedule/binomial.hpp"

#include <cstdint>

namespace backsweep {

/// A place in the table of binomials: s slots with r repetitions reverse more than B(s, r - 1) links.
/// s counts the slot of the start. While s = 1 or the links left are at most s + 1, only s is kept up to date.
/// Trivial, so that making a stack of places touches no memory.
struct BinomialPlace {
    Index whole;     // B(s, r - 1)
    Index diagonal;  // B(s - 1, r - 1)
    std::uint32_t r;
    std::int32_t s;

    static BinomialPlace of(Index links, Index slots) {
        const auto s = static_cast<std::int32_t>(slots);
        if (s <= 1 || links <= slots + 1) return {1, 1, 1, s};
        const Index r = repetitions(links, slots);
        return {binomial(slots, r - 1), binomial(slots - 1, r - 1), static_cast<std::uint32_t>(r), s};
    }

    /// Lowers the place until it fits `left` >= 2 links, answers the first advance, and enters the place behind it.
    /// Where there is a choice, it is choose(place, left, B(s - 2, r - 1)). Inlined: a call costs a third of the time
    /// that an action takes.
    template <class Choose>
    [[gnu::always_inline]] Index advance(Index left, BinomialPlace& behind, const Choose& choose) {
        behind = {1, 1, 1, s - 1};
        if (s == 1) return left - 1;
        if (left <= s + 1) return 1;
        while (whole >= left) {
            whole -= diagonal;  // B(s, r - 2) = B(s, r - 1) - B(s - 1, r - 1)
            diagonal = mul_div(diagonal, r - 1, s + Index{r} - 2);
            --r;
        }
        const Index third = mul_div(diagonal, s - 1, s + Index{r} - 2);
        behind = {diagonal, third, r, s - 1};
        return choose(*this, left, third);
    }

    /// Revolve's own choice [GW00, p. 34].
    static Index fewest_writes(const BinomialPlace& place, Index left, Index third) {
        if (left - place.whole <= third) return place.whole - place.diagonal;
        return left - place.whole < place.diagonal + third ? left - place.diagonal - third : place.whole;
    }
};

}  // namespace backsweep
