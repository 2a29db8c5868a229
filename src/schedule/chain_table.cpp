// SPDX-License-Identifier: MIT
#include "schedule/chain_table.hpp"

#include "schedule/min_plus.hpp"

#include <algorithm>
#include <limits>

namespace backsweep::chain_table {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
/// Right ends that are worked on at once, so that a left part is read from far memory once for all of them.
constexpr Index lanes = 4;

constexpr Index ceil_div(Index a, Index b) noexcept {
    return a / b + (a % b > 0 ? 1 : 0);
}

}  // namespace

Links::Links(const ChainCosts& chain, std::int64_t unit, Rounding rounding)
    : last_(chain.links()),
      unit_(unit),
      up_(rounding == Rounding::up),
      forward_(chain.forward_time),
      backward_(chain.backward_time),
      state_(chain.state_bytes),
      tape_(chain.tape_bytes),
      forward_overhead_(chain.forward_overhead),
      backward_overhead_(chain.backward_overhead) {
    // The loss: no time, no tape, nothing behind it; its adjoint is that of x_n.
    const std::size_t n = at(last_);
    forward_.push_back(0.0);
    backward_.push_back(0.0);
    tape_.push_back(0);
    state_.push_back(0);
    forward_overhead_.resize(n + 1);
    backward_overhead_.resize(n + 1);

    run_.resize(n + 2);
    for (std::size_t i = 0; i <= n; ++i) run_[i + 1] = run_[i] + forward_[i];
    for (const std::int64_t bytes : state_) state_units_.push_back(up_ ? above(bytes) : bytes / unit_);
    for (const std::int64_t bytes : tape_) tape_units_.push_back(up_ ? above(bytes) : bytes / unit_);
    pass_.resize(rows());
    for (Index e = 0; e <= last_; ++e) {
        pass_[row(e, e)] = state_[at(e + 1)] + forward_overhead_[at(e)];
        const std::int64_t dropping = state_[at(e)] + pass_[row(e, e)];
        for (Index i = 0; i < e; ++i) pass_[row(i, e)] = std::max(pass_[row(i, e - 1)], dropping);
    }
}

Index Links::leaf_need(Table table, Index i) const noexcept {
    const std::int64_t backward = state_[at(i)] + state_[at(i + 1)] + tape_[at(i)] + backward_overhead_[at(i)];
    if (table == Table::taped) return above(backward);
    return above(std::max(backward, state_[at(i + 1)] + tape_[at(i)] + forward_overhead_[at(i)]));
}

double Links::leaf_time(Table table, Index i) const noexcept {
    return table == Table::taped ? backward_[at(i)] : forward_[at(i)] + backward_[at(i)];
}

Index Links::cut_need(Table table, Keep keep, Index i, Index e, Index l) const noexcept {
    const std::int64_t lying = state_[at(l + 1)] + (table == Table::taped ? tape_[at(l)] : 0);
    if (keep == Keep::state) return above(lying + pass_[row(i, e)]);
    const std::int64_t taping = tape_[at(e)] + forward_overhead_[at(e)];
    return above(lying + (e == i ? taping : std::max(pass_[row(i, e - 1)], state_[at(e)] + taping)));
}

RowNeeds::RowNeeds(const Links& links, bool second) {
    for (const Table table : both) {
        least_[index(table)].resize(links.rows());
        full_[index(table)].resize(links.rows());
    }
    for (Index l = 0; l <= links.last(); ++l) {
        for (const Table table : both) {
            least_[index(table)][Links::row(l, l)] = full_[index(table)][Links::row(l, l)] = links.leaf_need(table, l);
        }
        for (Index i = l; i-- > 0;) {
            for (const Table table : both) {
                if (table == Table::taped && !second) continue;
                Index all = std::numeric_limits<Index>::max();
                for (Index e = i; e < l; ++e) {
                    const Index right = least(table, e + 1, l);
                    all = std::min(all, std::max({links.cut_need(table, Keep::state, i, e, l),
                                                  links.state(e + 1) + right, least(Table::plain, i, e)}));
                    if (e > i && !second) continue;
                    all = std::min(all, std::max({links.cut_need(table, Keep::tape, i, e, l), links.tape(e) + right,
                                                  least(Table::taped, i, e)}));
                }
                least_[index(table)][Links::row(i, l)] = all;
                full_[index(table)][Links::row(i, l)] =
                    std::max({links.cut_need(table, Keep::tape, i, i, l), links.tape(i) + full(table, i + 1, l),
                              least(Table::taped, i, i)});
            }
        }
    }
}

Tables::Tables(const Links& links, Index memory, bool second, Index cell, std::size_t byte_limit)
    : links_(links),
      memory_(memory),
      cell_(cell),
      top_sample_(ceil_div(memory, cell)),
      second_(second) {
    if (lay_out(byte_limit)) fill(byte_limit);
}

std::size_t Tables::bytes_of_rows(Index links) noexcept {
    return Links::row(0, links + 1) * 2 * sizeof(Row);
}

/// Least and top of every row, and the places of its samples; false if they would pass the limit.
bool Tables::lay_out(std::size_t byte_limit) {
    const RowNeeds limits(links_, second_);
    std::size_t doubles = 0;
    std::size_t counts = 0;
    const auto length = [](const Samples& samples) {
        return static_cast<std::size_t>(std::max<Index>(samples.last - samples.first + 1, 0));
    };
    const auto place = [&](Samples& samples, const Row& row, Index shift) {
        samples.offset = doubles;
        samples.first = ceil_div(row.least + shift, cell_);
        samples.last = std::min(top_sample_, (row.top + shift) / cell_);
        doubles += length(samples);
    };
    for (const Table table : both) rows_[RowNeeds::index(table)].resize(links_.rows());
    for (Index l = 0; l <= links_.last(); ++l) {
        for (Index i = l; i >= 0; --i) {
            for (const Table table : both) {
                if (!wanted(table, i, l)) continue;
                Row& row = this->row(table, i, l);
                row.once = links_.leaf_time(table, i);
                if (i < l) {  // in the order of the cut behind which only the tape of link i is kept
                    row.once =
                        (links_.leaf_time(Table::taped, i) + this->row(table, i + 1, l).once) + links_.run(i, i + 1);
                }
                const Index room = memory_ - (i > 0 ? links_.state(i) : 0);
                row.least = limits.least(table, i, l);
                row.full = limits.full(table, i, l) <= room;
                row.top = row.full ? limits.full(table, i, l) : room;
                row.time_at_top = row.full ? row.once : infinite;
                if (row.top < row.least) continue;
                place(row.own, row, 0);
                if (!exact()) continue;
                row.starts = counts;
                counts += length(row.own);
                if (i == 0) continue;
                row.state = links_.state(i);
                row.tape = links_.tape(i - 1);
                place(row.behind_state, row, row.state);
                place(row.behind_tape, row, row.tape);
            }
        }
    }
    const std::size_t bytes = doubles * sizeof(double) + counts * sizeof(std::uint32_t);
    bytes_ = bytes_of_rows(links_.last());
    if (bytes_ + bytes > byte_limit) return false;
    bytes_ += bytes;
    samples_ = std::make_unique_for_overwrite<double[]>(doubles);
    starts_ = std::make_unique_for_overwrite<std::uint32_t[]>(counts);
    found_.resize(static_cast<std::size_t>(top_sample_) + 2);
    return true;
}

Tables::Pair Tables::pair(Table table, Keep keep, Index i, Index e, Index l) const {
    Pair pair;
    pair.left = &row(keep == Keep::state ? Table::plain : Table::taped, i, e);
    pair.right = &row(table, e + 1, l);
    pair.shift = keep == Keep::state ? links_.state(e + 1) : links_.tape(e);
    pair.least = std::max({links_.cut_need(table, keep, i, e, l), pair.left->least, pair.right->least + pair.shift});
    pair.run = links_.run(i, keep == Keep::state ? e + 1 : e) + (keep == Keep::tape ? links_.run(e, e + 1) : 0.0);
    return pair;
}

Tables::View Tables::left_view(const Row& row) const {
    return {samples_.get() + row.own.offset, row.own.first, row.own.last, row.time_at_top};
}

Tables::View Tables::right_view(const Row& row, Keep keep, Index shift) const {
    if (!exact()) {
        return {samples_.get() + row.own.offset, row.own.first + shift, row.own.last + shift, row.time_at_top};
    }
    const Samples& samples = keep == Keep::state ? row.behind_state : row.behind_tape;
    return {samples_.get() + samples.offset, samples.first, samples.last, row.time_at_top};
}

void Tables::fill(std::size_t byte_limit) {
    std::array<std::array<Draft, lanes>, 2> drafts;
    const std::size_t fixed = bytes_;
    for (Index low = 0; low <= links_.last(); low += lanes) {
        const Index high = std::min(low + lanes - 1, links_.last());
        for (Index i = high; i >= 0; --i) {
            const Index from = std::max(low, i + 1);  // right ends of the rows of more than one link
            const auto each_table = [&](Index l, auto&& act) {
                for (const Table table : both) {
                    Draft& draft = drafts[RowNeeds::index(table)][static_cast<std::size_t>(l - low)];
                    if (draft.row != nullptr) act(draft, table);
                }
            };
            const auto all_cuts = [&](auto&& cut, auto&& close) {
                const auto behind = [&](Index e, Index l) {
                    each_table(l, [&](Draft& draft, Table table) {
                        for (const Keep keep : {Keep::tape, Keep::state}) {
                            if (keep == Keep::tape && e > i && !second_) continue;
                            // The links that a cut runs twice at least, the more the later it is.
                            const double bound = draft.row->once + links_.run(i, keep == Keep::tape ? e : e + 1);
                            while (draft.last >= draft.first && *draft.at(draft.last) <= bound) --draft.last;
                            const Pair pair = this->pair(table, keep, i, e, l);
                            if (pair.least <= draft.row->top) cut(draft, pair, keep);
                        }
                    });
                };
                // Left parts [i, e] with e < low are ready; those of this block become ready one after another.
                for (Index e = i; e < low; ++e) {
                    for (Index l = from; l <= high; ++l) behind(e, l);
                }
                for (Index l = from; l <= high; ++l) {
                    for (Index e = std::max(i, low); e < l; ++e) behind(e, l);
                    each_table(l, [&](Draft& draft, Table) { close(draft); });
                }
            };
            for (const Table table : both) {
                if (i >= low) leaf(table, i);
                for (Index l = from; l <= high; ++l) {
                    Draft& draft = drafts[RowNeeds::index(table)][static_cast<std::size_t>(l - low)];
                    Row& row = this->row(table, i, l);
                    draft.row = nullptr;
                    if (wanted(table, i, l) && row.top >= row.least) open(draft, row);
                }
            }
            all_cuts([&](Draft& draft, const Pair& pair, Keep keep) { sample(draft, pair, keep); },
                     [&](Draft& draft) { close_samples(draft); });
            if (!exact()) continue;
            all_cuts([&](Draft& draft, const Pair& pair, Keep keep) { break_up(draft, pair, keep); },
                     [&](Draft& draft) { close_points(draft); });
        }
        // Rows have the more points the longer they are: all of them take at least what those so far take in the mean.
        const double share = static_cast<double>(Links::row(0, high + 1)) / static_cast<double>(links_.rows());
        if (static_cast<double>(bytes_ - fixed) > share * static_cast<double>(byte_limit - fixed)) return;
    }
    complete_ = true;
}

void Tables::leaf(Table table, Index i) {
    Row& row = this->row(table, i, i);
    if (row.top < row.least) return;
    for (Index k = row.own.first; k <= row.own.last; ++k) {
        samples_[row.own.offset + static_cast<std::size_t>(k - row.own.first)] = row.time_at_top;
    }
    if (!exact()) return;
    row.points.push_back({row.least, row.time_at_top});
    sample_points(row);
}

void Tables::open(Draft& draft, Row& row) const {
    draft.row = &row;
    draft.first = row.own.first;
    draft.last = row.own.last;
    const auto size = static_cast<std::size_t>(std::max<Index>(row.own.last - row.own.first + 2, 1));
    draft.times.assign(size, infinite);
    if (exact() && draft.cells.size() < size) draft.cells.resize(size);
}

/// Lowers the samples of a row by one cut.
void Tables::sample(Draft& draft, const Pair& pair, Keep keep) const {
    const View a = left_view(*pair.left);
    const View b = right_view(*pair.right, keep, pair.shift);
    const View& longer = a.last > b.last ? a : b;
    const double tail = a.last > b.last ? b.tail : a.tail;
    const Index end = draft.last;
    Index k = std::max({ceil_div(pair.least, cell_), a.first, b.first});
    if (const Index to = std::min({a.last, b.last, end}); k <= to) {
        min_plus::lower(draft.at(k), a.data + (k - a.first), b.data + (k - b.first), pair.run, to - k + 1);
        k = to + 1;
    }
    if (const Index to = std::min(longer.last, end); k <= to) {
        min_plus::lower(draft.at(k), longer.data + (k - longer.first), tail, pair.run, to - k + 1);
        k = to + 1;
    }
    // Constant from here on: close_samples() carries the one sample upwards.
    if (k <= end) *draft.at(k) = std::min(*draft.at(k), (a.tail + b.tail) + pair.run);
}

void Tables::close_samples(Draft& draft) {
    Row& row = *draft.row;
    for (std::size_t k = 1; k < draft.times.size(); ++k) draft.times[k] = std::min(draft.times[k], draft.times[k - 1]);
    std::copy(draft.times.begin() + 1, draft.times.end(), samples_.get() + row.own.offset);
    if (!row.full) row.time_at_top = draft.times.back();
    draft.last = cell_of(row.top);
}

/// Adds the breakpoints of one cut that lie below the row's sample at the left end of their cell.
void Tables::break_up(Draft& draft, const Pair& pair, Keep keep) {
    const View a = left_view(*pair.left);
    const View b = right_view(*pair.right, keep, pair.shift);
    const View& longer = a.last > b.last ? a : b;
    const double tail = a.last > b.last ? b.tail : a.tail;
    Index k = cell_of(pair.least);
    const Index end = std::min(draft.last, std::max(k, longer.last));  // the last cell with a breakpoint
    // A cut matters in cell k if its time at the right end, sample k + 1, beats the row's at the left end.
    if (const Index to = std::min({a.last - 1, b.last - 1, end}); k <= to) {
        const Index count = min_plus::below(found_.data(), draft.at(k), a.data + (k + 1 - a.first),
                                            b.data + (k + 1 - b.first), pair.run, to - k + 1);
        for (Index f = 0; f < count; ++f) merge(draft, pair, k + found_[static_cast<std::size_t>(f)]);
        k = to + 1;
    }
    if (const Index to = std::min(longer.last - 1, end); k <= to) {
        const Index count = min_plus::below(found_.data(), draft.at(k), longer.data + (k + 1 - longer.first), tail,
                                            pair.run, to - k + 1);
        for (Index f = 0; f < count; ++f) merge(draft, pair, k + found_[static_cast<std::size_t>(f)]);
        k = to + 1;
    }
    if (k <= end && (a.tail + b.tail) + pair.run < *draft.at(k)) merge(draft, pair, k);
}

/// The breakpoints of one cut in cell k.
void Tables::merge(Draft& draft, const Pair& pair, Index k) const {
    const std::vector<Point>& left = pair.left->points;
    const std::vector<Point>& right = pair.right->points;
    std::vector<Point>& cell = draft.cells[static_cast<std::size_t>(k + 1 - draft.first)];
    const double bound = *draft.at(k);
    const Index low = k * cell_;
    const Index high = std::min(low + cell_, draft.row->top);
    std::size_t p = points_below(*pair.left, low);
    std::size_t q = points_below(*pair.right, low - pair.shift);
    const auto pass = [&](Index m) {
        while (p < left.size() && left[p].m <= m) ++p;
        while (q < right.size() && right[q].m + pair.shift <= m) ++q;
    };
    // The cell's points rise in m and fall in time; the place of the next one moves forward only.
    std::size_t place = 0;
    const auto add = [&](Index m) {
        const double time = (left[p - 1].time + right[q - 1].time) + pair.run;
        if (time >= bound) return;
        while (place < cell.size() && cell[place].m <= m) ++place;
        if (place > 0 && cell[place - 1].time <= time) return;
        if (place > 0 && cell[place - 1].m == m) --place;
        std::size_t worse = place;
        while (worse < cell.size() && cell[worse].time >= time) ++worse;
        if (worse == place) {
            cell.insert(cell.begin() + static_cast<std::ptrdiff_t>(place), {m, time});
        } else {
            cell[place] = {m, time};
            cell.erase(cell.begin() + static_cast<std::ptrdiff_t>(place + 1),
                       cell.begin() + static_cast<std::ptrdiff_t>(worse));
        }
    };
    pass(std::max(low, pair.least));
    if (low < pair.least) add(pair.least);
    for (;;) {
        const Index next_left = p < left.size() ? left[p].m : std::numeric_limits<Index>::max();
        const Index next_right = q < right.size() ? right[q].m + pair.shift : std::numeric_limits<Index>::max();
        const Index m = std::min(next_left, next_right);
        if (m > high) return;
        p += next_left == m ? 1 : 0;
        q += next_right == m ? 1 : 0;
        add(m);
    }
}

/// A count of points at or below m that is not too high, and nearly right.
std::size_t Tables::points_below(const Row& row, Index m) const noexcept {
    const Index sample = m < 0 ? Index{-1} : std::min(m / cell_, row.own.last);
    if (sample < row.own.first) return 0;
    return starts_[row.starts + static_cast<std::size_t>(sample - row.own.first)];
}

void Tables::close_points(Draft& draft) {
    points_.clear();
    double time = infinite;
    for (std::size_t k = 0; k < draft.times.size(); ++k) {
        std::vector<Point>& cell = draft.cells[k];
        points_.insert(points_.end(), cell.begin(), cell.end());
        if (!cell.empty()) time = cell.back().time;
        cell.clear();
    }
    Row& row = *draft.row;
    row.points.assign(points_.begin(), points_.end());
    row.time_at_top = time;
    bytes_ += row.points.size() * sizeof(Point);
    sample_points(row);
}

/// The samples of a row as right part, and where its points begin.
void Tables::sample_points(const Row& row) {
    const auto walk = [&](const Samples& samples, Index shift, auto&& set) {
        std::size_t count = 0;
        for (Index k = samples.first; k <= samples.last; ++k) {
            while (count < row.points.size() && row.points[count].m + shift <= k * cell_) ++count;
            set(static_cast<std::size_t>(k - samples.first), count);
        }
    };
    const auto behind = [&](const Samples& samples, Index shift) {
        walk(samples, shift,
             [&](std::size_t k, std::size_t count) { samples_[samples.offset + k] = row.points[count - 1].time; });
    };
    walk(row.own, 0,
         [&](std::size_t k, std::size_t count) { starts_[row.starts + k] = static_cast<std::uint32_t>(count); });
    behind(row.behind_state, row.state);
    behind(row.behind_tape, row.tape);
}

double Tables::time(const Row& row, Index m) const {
    if (m < row.least || row.top < row.least) return infinite;
    if (m >= row.top) return row.time_at_top;
    if (!exact()) return samples_[row.own.offset + static_cast<std::size_t>(m - row.own.first)];
    const auto above = std::upper_bound(row.points.begin(), row.points.end(), m,
                                        [](Index value, const Point& point) { return value < point.m; });
    return std::prev(above)->time;
}

double Tables::time(Table table, Index i, Index l, Index m) const {
    return time(row(table, i, l), m);
}

Tables::Cut Tables::best_cut(Table table, Index i, Index l, Index m) const {
    Cut best;
    double least = infinite;
    for (const Keep keep : {Keep::tape, Keep::state}) {
        const Index end = keep == Keep::state || second_ ? l : i + 1;
        for (Index e = i; e < end; ++e) {
            const Pair pair = this->pair(table, keep, i, e, l);
            if (m < pair.least) continue;
            const double time = (this->time(*pair.left, m) + this->time(*pair.right, m - pair.shift)) + pair.run;
            if (time < least) {
                least = time;
                best = {keep, e, pair.shift};
            }
        }
    }
    return best;
}

}  // namespace backsweep::chain_table
