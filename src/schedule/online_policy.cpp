// SPDX-License-Identifier: MIT
#include "schedule/online_policy.hpp"

#include "schedule/binomial.hpp"

#include <algorithm>
#include <limits>

namespace backsweep {
namespace {

constexpr Index infinite = std::numeric_limits<Index>::max();
constexpr Index unreachable = Index{1} << 61;

}  // namespace

// ---- greedy ----

std::size_t Greedy::bytes(Index slots) {
    const auto rows = static_cast<std::size_t>(std::min(slots + 2, most_rows));
    return static_cast<std::size_t>(slots) * sizeof(Gap) + rows * columns * sizeof(Index);
}

Greedy::Greedy(std::int32_t slots)
    : slots_(slots),
      top_(slots - 1),
      exact_end_((Index{slots} + 1) * (Index{slots} + 2) / 2 - 1),
      gaps_(std::make_unique_for_overwrite<Gap[]>(static_cast<std::size_t>(slots))),
      rows_(static_cast<std::size_t>(std::min(Index{slots} + 2, most_rows))) {
    binomials_ = std::make_unique_for_overwrite<Index[]>(rows_ * columns);
    restart();
}

void Greedy::restart() noexcept {
    skipped_ = slots_;
    block_ = slots_ - 1;
    sorted_ = false;
}

/// For q = c - 1, ..., 1: x_p is passed over, and the next q states go to the slots q, 1, 2, ..., q - 1; then p += q +
/// 1 [SW10, Algorithm I].
std::int32_t Greedy::by_algorithm_one(Index j) noexcept {
    if (block_ < 1 || j == skipped_) return -1;
    const Index place = j - skipped_;
    const auto slot = static_cast<std::int32_t>(place == 1 ? block_ : place - 1);
    if (place == block_) {
        skipped_ += block_ + 1;
        --block_;
    }
    return slot;
}

void Greedy::sort(Index j, std::span<const Index> held) {
    sorted_ = true;
    for (std::size_t s = 0; s < rows_; ++s) {
        for (std::size_t r = 0; r < columns; ++r) {
            Index& value = binomials_[s * columns + r];
            value = 1;
            if (s == 0 || r == 0) continue;
            if (__builtin_add_overflow(binomials_[(s - 1) * columns + r], binomials_[s * columns + r - 1], &value)) {
                value = infinite;
            }
        }
    }
    for (std::int32_t slot = 0; slot < slots_; ++slot) gaps_[slot] = {held[slot], slot, 0, 0, 0, 0, 0, 0, 0};
    std::sort(gaps_.get(), gaps_.get() + slots_, [](const Gap& a, const Gap& b) { return a.start < b.start; });
    for (std::int32_t i = 0; i < top_; ++i) gaps_[i].forwards = price(gaps_[i + 1].start - gaps_[i].start, slots_ - i);
    reckon(0);
    last_.restart();
    for (Index i = gaps_[top_].start + 1; i < j; ++i) last_.grow();
    before_.restart();
    for (Index i = gaps_[top_ - 1].start + 1; i < j; ++i) before_.grow();
}

/// What is shifted down has a slot more: its price is known.
std::int32_t Greedy::replace(std::int32_t d, Index j) {
    const std::int32_t slot = gaps_[d].slot;
    if (d < top_) gaps_[d - 1].forwards = gaps_[d].merged;
    for (std::int32_t i = d; i < top_; ++i) {
        gaps_[i].start = gaps_[i + 1].start;
        gaps_[i].slot = gaps_[i + 1].slot;
        gaps_[i].forwards = gaps_[i + 1].wider;
    }
    gaps_[top_].start = j;
    gaps_[top_].slot = slot;
    if (d < top_) before_ = last_;
    gaps_[top_ - 1].forwards = before_.forwards();
    last_.restart();
    reckon(d - 1);
    return slot;
}

/// All but `forwards` of the gaps from `from` up.
void Greedy::reckon(std::int32_t from) {
    for (std::int32_t i = from; i < top_; ++i) {
        Gap& gap = gaps_[i];
        if (i == 0) {
            gap.below = gap.relief = 0;
            gap.least = unreachable;
            continue;
        }
        const Gap& under = gaps_[i - 1];
        const Index end = gaps_[i + 1].start;
        const Index slots = slots_ - i + 1;
        gap.wider = price(end - gap.start, slots);
        gap.merged = price(end - under.start, slots);
        gap.below = under.below + under.forwards;
        gap.relief = under.relief + gap.wider - gap.forwards;
        const Index here = gap.merged - under.forwards - gap.forwards - gap.relief;
        const bool better = here <= under.least;
        gap.least = better ? here : under.least;
        gap.best = better ? i : under.best;
    }
    const Gap& gap = gaps_[top_ - 1];
    keep_ = gap.below + gap.forwards;
    highest_ = gap.below + 1;
    inner_ = top_ > 1 ? keep_ + gap.relief + gap.least + 1 : unreachable;
}

/// g(L, s) = L + t(L, s) for L >= 1.
Index Greedy::price(Index links, Index slots) const {
    if (links <= slots + 1) return 2 * links - 1;
    const Index* const row = binomials_.get() + static_cast<std::size_t>(slots) * columns;
    if (static_cast<std::size_t>(slots) + 1 < rows_ && links <= row[columns - 1]) {
        std::size_t r = 2;
        while (row[r] < links) ++r;
        return static_cast<Index>(r + 1) * links - row[columns + r - 1];
    }
    return links + static_cast<Index>(optimum(links, slots).advances);
}

// ---- Wang, Moin, Iaccarino ----

std::size_t WangMoin::bytes(Index slots) {
    return static_cast<std::size_t>(slots) * (sizeof(Entry) + sizeof(std::int32_t));
}

WangMoin::WangMoin(std::int32_t slots)
    : slots_(slots),
      firm_(std::make_unique_for_overwrite<Entry[]>(static_cast<std::size_t>(slots))),
      spare_(std::make_unique_for_overwrite<std::int32_t[]>(static_cast<std::size_t>(slots))) {}

void WangMoin::restart() noexcept {
    begun_ = false;
    spare_head_ = spare_size_ = 0;
}

std::int32_t WangMoin::decide(Index, std::span<const Index>) noexcept {
    if (!begun_) {
        begun_ = true;
        for (std::int32_t slot = 0; slot < slots_; ++slot) firm_[slot] = {slot == 0 ? infinite : 0, slot};
        firm_size_ = slots_;
    }
    if (spare_head_ < spare_size_) {
        const std::int32_t slot = spare_[spare_head_++];
        firm_[firm_size_++] = {0, slot};
        return slot;
    }
    const Entry latest = firm_[--firm_size_];
    spare_head_ = spare_size_ = 0;
    while (firm_[firm_size_ - 1].level == latest.level) spare_[spare_size_++] = firm_[--firm_size_].slot;
    firm_[firm_size_++] = {latest.level + 1, latest.slot};
    return latest.slot;
}

}  // namespace backsweep
