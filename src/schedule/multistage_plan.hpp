// The tables behind multistage(): what every segment costs on every level, and which advance reaches that.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/multistage.hpp"
#include "schedule/binomial_walk.hpp"

#include <cstddef>
#include <vector>

namespace backsweep {

/// Lengths `l` count the links before the last one of a segment, as in the recurrence.
class MultistagePlan {
public:
    explicit MultistagePlan(const MultistageOptions& options);
    /// Bytes of the tables, which are not made.
    static std::size_t table_bytes(const MultistageOptions& options);

    int levels() const noexcept { return static_cast<int>(levels_.size()); }
    /// The last level has no limit; its states are the starts of `blocks`, in this order.
    bool unlimited() const noexcept { return levels_.back().slots < 0; }
    /// Level 0 has no prices: its segments are reversed by the closed form, and it has no table.
    bool first_is_free() const noexcept { return free_; }
    const Level& level(int k) const noexcept { return levels_[static_cast<std::size_t>(k)]; }
    /// Slots of level k that can be of use.
    Index slots(int k) const noexcept { return slots_[static_cast<std::size_t>(k)]; }
    /// The number in its tier of the first slot of level k.
    Index offset(int k) const noexcept { return offsets_[static_cast<std::size_t>(k)]; }

    /// O_{k-1}(l, c_{k-1}): the start of l + 1 links at work, levels below k to keep states.
    double below(int k, Index l) const { return below_[static_cast<std::size_t>(k)][static_cast<std::size_t>(l)]; }
    /// P_k(l, m): the start on level k, m of its slots free with that one.
    double kept(int k, Index m, Index l) const { return column(k, m)[l]; }
    /// The first advance behind P_k(l, m) where that is less than below(k, l).
    Index advance(int k, Index m, Index l) const;

    const std::vector<BlockRun>& blocks() const noexcept { return blocks_; }
    /// l of what lies behind the last block; without an unlimited level the whole chain.
    Index tail() const noexcept { return tail_; }
    /// The optimum; `reverse` is charged for true links only.
    double cost() const noexcept { return cost_; }
    std::size_t bytes() const noexcept;

private:
    /// What of the tables over an unlimited level can be of use.
    struct Window {
        Index longest = 0;  // block
        Index again = 0;    // advance after a block's start is read again
        Index beside = 0;   // links, at most, between such an advance and the end of the block
        Index tail = 0;     // links, at most, behind the last block
    };
    struct Unfilled {};

    MultistagePlan(const MultistageOptions& options, Unfilled);
    const double* column(int k, Index m) const {
        const std::vector<double>& table = kept_[static_cast<std::size_t>(k)];
        return table.data() + (level(k).slots < 0 ? 0 : (m - 1) * (longest_ + 1));
    }
    double first_advance(int k, Index j, const double* price) const;
    double binomial_price(Index l) const;
    std::vector<double> binomial_prices(Index size) const;
    void require(double bytes, double additions) const;
    double columns() const noexcept;
    Window window() const;
    void fill_levels();
    void fill_blocks();
    bool cut_by_residues(const std::vector<double>& block);
    void cut_by_table(const std::vector<double>& block);

    MultistageOptions options_;
    std::vector<Level> levels_;
    std::vector<Index> slots_;
    std::vector<Index> offsets_;
    bool free_;
    bool closed_;  // one level without prices and nothing else
    Index whole_;  // l of the chain
    Window window_{};
    Index longest_;  // l up to which the tables of limited levels go
    std::vector<std::vector<double>> below_;
    std::vector<std::vector<double>> kept_;  // by level: a column for each number of slots, 1 ... slots
    std::vector<BlockRun> blocks_;
    Index tail_;
    double cost_ = 0.0;
};

}  // namespace backsweep
