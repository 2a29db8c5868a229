// The tables of the heterogeneous chain [BEHJS24]: least time to reverse the links i ... l within m, for all of them.
// `plain` is rotor's table; `taped` is the one in which the tape of link l lies there already while x_l does not.
// A row is a step function of m: samples on a grid, and between them, where cells are wider than a unit, breakpoints.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/optimal_chain.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace backsweep::chain_table {

enum class Table { plain, taped };
inline constexpr std::array both{Table::plain, Table::taped};

/// How a row [i, l] is cut behind link e: x_{e+1} is kept as a state, or the tape of link e is kept, which holds it.
/// The right part [e + 1, l] comes first and belongs to the same table; the left part [i, e] is plain after a kept
/// state and taped after a kept tape. e = i with a kept tape is rotor's own F_all.
enum class Keep { state, tape };

enum class Rounding { up, down };

/// The chain with its loss as last link, its sizes rounded to units. Rounded up, what fits in units fits in bytes;
/// rounded down, what fits in bytes fits in units.
class Links {
public:
    Links(const ChainCosts& chain, std::int64_t unit, Rounding rounding);

    Index last() const noexcept { return last_; }
    std::int64_t unit() const noexcept { return unit_; }
    /// Units of a memory of so many bytes.
    Index memory(std::int64_t bytes) const noexcept { return up_ ? bytes / unit_ : above(bytes); }
    /// Units that x_i and the tape of link i take when kept.
    Index state(Index i) const noexcept { return state_units_[at(i)]; }
    Index tape(Index i) const noexcept { return tape_units_[at(i)]; }
    /// Time of the forward runs from x_i to x_j.
    double run(Index i, Index j) const noexcept { return run_[at(j)] - run_[at(i)]; }

    /// The row of a single link: what it takes, and its time.
    Index leaf_need(Table table, Index i) const noexcept;
    double leaf_time(Table table, Index i) const noexcept;
    /// What the forward runs of a cut take beside x_i: the incoming adjoint, the tape that lies there, input, output.
    Index cut_need(Table table, Keep keep, Index i, Index e, Index l) const noexcept;

    std::size_t rows() const noexcept { return row(0, last_ + 1); }
    static std::size_t row(Index i, Index l) noexcept { return static_cast<std::size_t>(l * (l + 1) / 2 + i); }

private:
    static std::size_t at(Index i) noexcept { return static_cast<std::size_t>(i); }
    Index above(std::int64_t bytes) const noexcept {
        return unit_ == 1 ? bytes : bytes / unit_ + (bytes % unit_ != 0 ? 1 : 0);
    }

    Index last_;
    std::int64_t unit_;
    bool up_;
    std::vector<double> forward_, backward_, run_;
    std::vector<std::int64_t> state_, tape_, forward_overhead_, backward_overhead_;  // bytes
    std::vector<Index> state_units_, tape_units_;
    std::vector<std::int64_t> pass_;  // [row(i, e)] bytes that advancing takes from x_i, kept elsewhere, to x_{e+1}
};

/// The least m of every row, and the m from which every link of it runs once.
struct RowNeeds {
    RowNeeds(const Links& links, bool second);

    Index least(Table table, Index i, Index l) const { return least_[index(table)][Links::row(i, l)]; }
    Index full(Table table, Index i, Index l) const { return full_[index(table)][Links::row(i, l)]; }

    static std::size_t index(Table table) noexcept { return static_cast<std::size_t>(table); }

private:
    std::array<std::vector<Index>, 2> least_, full_;
};

/// The tables up to a memory, in units, that does not count x_0. Filled by the constructor.
class Tables {
public:
    /// `cell`: units between two samples; 1 needs no breakpoints. If `complete()` is false after construction, the
    /// tables were about to pass `byte_limit` and hold nothing.
    Tables(const Links& links, Index memory, bool second, Index cell, std::size_t byte_limit);

    /// What the rows of a chain of so many links take beside their samples and breakpoints.
    static std::size_t bytes_of_rows(Index links) noexcept;

    bool complete() const noexcept { return complete_; }
    std::size_t bytes() const noexcept { return bytes_; }
    Index memory() const noexcept { return memory_; }

    /// Infinite where m is too little.
    double time(Table table, Index i, Index l, Index m) const;

    struct Cut {
        Keep keep = Keep::tape;
        Index e = -1;     ///< the left part ends with link e
        Index shift = 0;  ///< units that the right part has less than the row
    };
    /// The best cut of a row of more than one link; a kept tape wins over a kept state, and the shorter left part.
    Cut best_cut(Table table, Index i, Index l, Index m) const;

private:
    /// Samples at first ... last, times the cell; above them the row is constant.
    struct Samples {
        std::size_t offset = 0;
        Index first = 0;
        Index last = -1;
    };
    struct Point {
        Index m;
        double time;
    };
    struct Row {
        Index least = 0;
        Index top = -1;     // constant from here on; below `least` if the row does not fit at all
        bool full = false;  // at the top every link runs once; else the top is all the memory there is
        double time_at_top = 0.0;
        double once = 0.0;                  // time if every link runs once
        Samples own;                        // at k cell
        Index state = 0, tape = 0;          // state(i) and tape(i - 1), kept while the row is a right part
        Samples behind_state, behind_tape;  // at k cell less those
        std::size_t starts = 0;             // for own.first + k: how many points lie at or below that sample
        std::vector<Point> points;
    };
    struct View {
        const double* data;
        Index first, last;
        double tail;
    };
    struct Pair {
        const Row* left;
        const Row* right;
        Index shift;
        Index least;
        double run;
    };
    /// A row while it is filled.
    struct Draft {
        Row* row = nullptr;
        Index first = 0;  // sample of times[1]; times[0] stands for "below the first sample"
        Index last = -1;  // samples or cells above it are as low as the cuts to come can be
        std::vector<double> times;
        std::vector<std::vector<Point>> cells;  // breakpoints in (k cell, (k + 1) cell], k = first - 1 + index

        double* at(Index k) { return times.data() + (k - first + 1); }
    };

    bool exact() const noexcept { return cell_ > 1; }
    /// The cell whose left end, excluded, is below m and whose right end is not.
    Index cell_of(Index m) const noexcept { return m > 0 ? (m - 1) / cell_ : -1; }
    Row& row(Table table, Index i, Index l) { return rows_[RowNeeds::index(table)][Links::row(i, l)]; }
    const Row& row(Table table, Index i, Index l) const { return rows_[RowNeeds::index(table)][Links::row(i, l)]; }
    Pair pair(Table table, Keep keep, Index i, Index e, Index l) const;
    View left_view(const Row& row) const;
    View right_view(const Row& row, Keep keep, Index shift) const;

    bool wanted(Table table, Index i, Index l) const noexcept {
        return table == Table::plain || i == l || (second_ && l < links_.last());
    }
    bool lay_out(std::size_t byte_limit);
    void fill(std::size_t byte_limit);
    void leaf(Table table, Index i);
    void open(Draft& draft, Row& row) const;
    void sample(Draft& draft, const Pair& pair, Keep keep) const;
    void close_samples(Draft& draft);
    void break_up(Draft& draft, const Pair& pair, Keep keep);
    void merge(Draft& draft, const Pair& pair, Index k) const;
    std::size_t points_below(const Row& row, Index m) const noexcept;
    void close_points(Draft& draft);
    void sample_points(const Row& row);
    double time(const Row& row, Index m) const;

    const Links& links_;
    Index memory_;
    Index cell_;
    Index top_sample_;
    bool second_;
    bool complete_ = false;
    std::size_t bytes_ = 0;
    std::array<std::vector<Row>, 2> rows_;
    std::unique_ptr<double[]> samples_;
    std::unique_ptr<std::uint32_t[]> starts_;
    std::vector<std::int32_t> found_;
    std::vector<Point> points_;
};

}  // namespace backsweep::chain_table
