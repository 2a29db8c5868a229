// What an online schedule replaces when its slots are full: two policies of one shape.
// Both begin with x_0 ... x_{c-1} in the slots 0 ... c-1 and are asked about x_c, x_{c+1}, ... in turn.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace backsweep {

/// g(L, 2) = L + t(L, 2), the links run for a gap of L links with two slots, while the gap grows link by link.
class TwoSlotGap {
public:
    void restart() noexcept { *this = TwoSlotGap{}; }
    void grow() noexcept {
        if (++links_ > reach_) reach_ += ++repetitions_ + 1;
        forwards_ += 1 + repetitions_;
    }
    Index forwards() const noexcept { return forwards_; }

private:
    Index links_ = 0;
    Index repetitions_ = 0;
    Index reach_ = 1;  // B(2, r) = 1 + 2 + ... + (r + 1)
    Index forwards_ = 0;
};

/// Algorithm I [SW10], optimal up to (c + 1)(c + 2) / 2 steps; then at each x_j, of keeping the stored set and of
/// replacing any state by x_j, what costs least should the chain end at j + 2 with its end known one link ahead, and
/// every state be kept until its gap is reversed. Of equals a replacement, of those the highest.
///
/// With the stored steps p_0 = 0 < ... < p_k, k = c - 1, gaps L_i = p_{i+1} - p_i, and g(L, s) = L + t(L, s):
///     keep         sum_{i<k} g(L_i, c - i) + T,       T = m + t(m, 1) with m = j + 1 - p_k
///     replace p_d  the gaps d - 1 and d become one, those above have a slot more:
///         sum_{i<k} G_i + M_d + sum_{d<i<k} D_i + g(j - p_k, 2) + 1
///         with G_i = g(L_i, c - i),  D_i = g(L_i, c - i + 1) - G_i,  M_d = g(L_{d-1} + L_d, c - d + 1) - G_{d-1} - G_d
/// so the least over d is that of M_d - sum_{i<=d} D_i, which depends on gaps up to d alone: a prefix minimum, and only
/// what lies above a replaced state is reckoned anew. From 2^40 links on nothing is replaced.
class Greedy {
public:
    static std::size_t bytes(Index slots);
    explicit Greedy(std::int32_t slots);

    void restart() noexcept;

    /// The slot that x_j replaces, or -1. held[slot]: the step stored there.
    std::int32_t decide(Index j, std::span<const Index> held) {
        if (j < exact_end_) return by_algorithm_one(j);
        if (j >= longest) return -1;
        if (!sorted_) sort(j, held);
        last_.grow();
        before_.grow();
        const Index open = j + 1 - gaps_[top_].start;
        const Index keep = keep_ + open * (open + 1) / 2;
        const Index inner = inner_ + last_.forwards();
        const Index highest = highest_ + before_.forwards();
        const Index least = highest <= inner ? highest : inner;
        if (least > keep) return -1;
        return replace(highest <= inner ? top_ : gaps_[top_ - 1].best, j);
    }

private:
    static constexpr Index longest = Index{1} << 40;  // 2^40 + t(2^40, 2) < 2^61 bounds every sum
    static constexpr std::size_t columns = 32;        // r in the table of binomials
    static constexpr Index most_rows = 4096;          // s; beyond either the closed form is used

    /// A stored state, and the gap from it up to the next one.
    struct Gap {
        Index start;
        std::int32_t slot;
        std::int32_t best;  // where `least` is met
        Index forwards;     // G_i
        Index wider;        // g(L_i, c - i + 1)
        Index merged;       // g(L_{i-1} + L_i, c - i + 1)
        Index below;        // sum of G of the gaps below
        Index relief;       // sum of D up to this gap
        Index least;        // min of M_d - sum_{i<=d} D_i up to this gap
    };

    std::int32_t by_algorithm_one(Index j) noexcept;
    void sort(Index j, std::span<const Index> held);
    std::int32_t replace(std::int32_t d, Index j);
    void reckon(std::int32_t from);
    Index price(Index links, Index slots) const;

    std::int32_t slots_;
    std::int32_t top_;     // k
    Index exact_end_;      // Algorithm I decides below it
    Index skipped_ = 0;    // the state before the block that Algorithm I stores
    Index block_ = 0;      // its size
    bool sorted_ = false;  // the greedy choice has begun
    TwoSlotGap last_;      // from p_k to j
    TwoSlotGap before_;    // from p_{k-1} to j
    Index keep_ = 0;
    Index inner_ = 0;
    Index highest_ = 0;
    std::unique_ptr<Gap[]> gaps_;  // uninitialised until the greedy choice begins
    std::unique_ptr<Index[]> binomials_;
    std::size_t rows_;
};

/// Every state is stored. A state is dispensable if a later one has a higher level; x_0 has an infinite one. The latest
/// dispensable state is replaced, at level 0; where there is none, the latest state, one level higher [WMI09].
///
/// The states that are not dispensable have levels that never rise, so those that become dispensable, when the latest
/// of level q returns with level q + 1, are the run of level q before it: each state moves once from `firm_` to
/// `spare_`.
class WangMoin {
public:
    static std::size_t bytes(Index slots);
    explicit WangMoin(std::int32_t slots);

    void restart() noexcept;
    std::int32_t decide(Index j, std::span<const Index> held) noexcept;

private:
    struct Entry {
        Index level;
        std::int32_t slot;
    };

    std::int32_t slots_;
    bool begun_ = false;
    std::unique_ptr<Entry[]> firm_;  // in rising order of steps
    std::int32_t firm_size_ = 0;
    std::unique_ptr<std::int32_t[]> spare_;  // slots, the latest first
    std::int32_t spare_head_ = 0;
    std::int32_t spare_size_ = 0;
};

}  // namespace backsweep
