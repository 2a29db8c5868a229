// Tables are filled by pushes: when the price of a segment is final, all longer ones that begin with it are lowered.
// SPDX-License-Identifier: MIT
#include "schedule/multistage_plan.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "schedule/binomial.hpp"
#include "schedule/min_plus.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <utility>

namespace backsweep {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr Index most_slots = std::numeric_limits<std::int32_t>::max();

/// The least i in [first, last) where `holds`, which is monotone; `last` if nowhere. Looks near `first` first: far away
/// a difference of prices may be lost to rounding.
template <class Predicate>
Index least(Index first, Index last, Predicate holds) {
    for (Index stride = 1; last - first > stride; stride *= 2) {
        if (holds(first + stride)) {
            last = first + stride;
            break;
        }
        first += stride;
    }
    while (first < last) {
        const Index middle = first + (last - first) / 2;
        if (holds(middle)) {
            last = middle;
        } else {
            first = middle + 1;
        }
    }
    return first;
}

std::vector<BlockRun> runs_of(const std::map<Index, Index, std::greater<>>& counts) {
    std::vector<BlockRun> runs;
    for (const auto& [links, count] : counts) {
        if (count > 0) runs.push_back({links, count});
    }
    return runs;
}

}  // namespace

MultistagePlan::MultistagePlan(const MultistageOptions& options, Unfilled)
    : options_(options),
      levels_(options.levels) {
    if (const std::string problem = options.problem(); !problem.empty()) throw InvalidArgument(problem);
    const Index links = options.steps + (options.needs_state ? 1 : 0);
    whole_ = tail_ = std::max<Index>(links - 1, 0);
    free_ = levels_[0].slots >= 0 && levels_[0].write == 0.0 && levels_[0].read == 0.0;
    std::array<Index, 4> used{};
    for (const Level& level : levels_) {
        slots_.push_back(std::min(level.slots, whole_));
        Index& first = used[static_cast<std::size_t>(level.tier)];
        offsets_.push_back(first);
        first += std::max<Index>(slots_.back(), 0);
        if (first > most_slots) {
            throw InvalidArgument(
                "multistage: more than the 2147483647 slots that have numbers would be used on tier " +
                std::string(to_string(level.tier)) + "; give fewer slots");
        }
    }
    closed_ = levels() == 1 && free_ && slots_[0] > 0;
    if (unlimited()) window_ = window();
    if (unlimited()) longest_ = std::min(whole_, std::max({window_.longest, window_.tail - 1, Index{0}}));
    if (!unlimited()) longest_ = closed_ ? 0 : whole_;
}

MultistagePlan::MultistagePlan(const MultistageOptions& options) : MultistagePlan(options, Unfilled{}) {
    fill_levels();
    if (unlimited()) {
        fill_blocks();
    } else {
        cost_ = closed_ ? binomial_price(whole_) : below_.back().back();
    }
    cost_ -= options.reverse * static_cast<double>(whole_ + 1 - options.steps);
    if (options.needs_state && options.steps > 0) cost_ -= options.advance;  // the first sweep records the last link
    if (!std::isfinite(cost_)) {
        throw InvalidArgument("multistage: the cost of " + std::to_string(options.steps) +
                              " steps is beyond double precision; give the prices in a larger unit");
    }
}

/// Columns of longest_ + 1 numbers.
double MultistagePlan::columns() const noexcept {
    double columns = static_cast<double>(levels_.size()) + 1.0;
    for (int k = free_ ? 1 : 0; k < levels(); ++k) columns += static_cast<double>(std::max<Index>(slots(k), 0));
    return columns;
}

std::size_t MultistagePlan::table_bytes(const MultistageOptions& options) {
    const MultistagePlan plan(options, Unfilled{});
    const double bytes = plan.columns() * static_cast<double>(plan.longest_ + 1) * static_cast<double>(sizeof(double));
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    return bytes < static_cast<double>(most) ? static_cast<std::size_t>(bytes) : most;
}

std::size_t MultistagePlan::bytes() const noexcept {
    std::size_t numbers = 0;
    for (const auto& table : below_) numbers += table.size();
    for (const auto& table : kept_) numbers += table.size();
    return numbers * sizeof(double);
}

void MultistagePlan::require(double bytes, double additions) const {
    const auto text = [](double number) {
        std::array<char, 32> digits{};
        std::snprintf(digits.data(), digits.size(), "%.3g", number);
        return std::string(digits.data());
    };
    if (bytes > static_cast<double>(options_.most_table_bytes)) {
        throw InvalidArgument("multistage: the table for " + std::to_string(options_.steps) + " steps would take " +
                              text(bytes) + " bytes, most_table_bytes allows " +
                              std::to_string(options_.most_table_bytes) +
                              "; allow more, give fewer slots with prices, or take periodic_disk");
    }
    if (additions > options_.most_additions) {
        throw InvalidArgument("multistage: planning " + std::to_string(options_.steps) + " steps would take " +
                              text(additions) + " additions, most_additions allows " + text(options_.most_additions) +
                              "; allow more, give fewer slots with prices, or take periodic_disk");
    }
}

/// l + 1 links on level 0 without prices [GW00, eq. (3)].
double MultistagePlan::binomial_price(Index l) const {
    return static_cast<double>(l + 1) * options_.reverse +
           options_.advance * static_cast<double>(optimum(l + 1, slots_[0]).advances);
}

/// The same for l = 0 ... size - 1, by t(n + 1, s) - t(n, s) = repetitions(n + 1, s).
std::vector<double> MultistagePlan::binomial_prices(Index size) const {
    std::vector<double> prices(static_cast<std::size_t>(size));
    double advances = 0.0;
    Index r = 0;
    Wide reach = 1;  // B(s, r)
    for (Index l = 0; l < size; ++l) {
        if (l > 0) {
            while (reach < static_cast<Wide>(l + 1)) {
                ++r;
                reach = reach * static_cast<Wide>(slots_[0] + r) / static_cast<Wide>(r);
            }
            advances += static_cast<double>(r);
        }
        prices[static_cast<std::size_t>(l)] =
            static_cast<double>(l + 1) * options_.reverse + options_.advance * advances;
    }
    return prices;
}

/// j uf + r_k + P_k(j - 1): an advance of j, and all that comes once its start is read again. Never inlined: an advance
/// is found again by the equality of sums, and a compiler may contract a product and a sum here but not there.
[[gnu::noinline]] double MultistagePlan::first_advance(int k, Index j, const double* price) const {
    return static_cast<double>(j) * options_.advance + level(k).read + price[j - 1];
}

void MultistagePlan::fill_levels() {
    const Index size = longest_ + 1;
    const auto length = static_cast<double>(size);
    require(columns() * length * static_cast<double>(sizeof(double)),
            (columns() - static_cast<double>(levels_.size()) - 1.0) * length * length / 2.0);
    below_.resize(levels_.size() + (unlimited() ? 0 : 1));
    kept_.resize(levels_.size());
    below_[0].assign(static_cast<std::size_t>(size), infinite);
    below_[0][0] = options_.reverse;
    std::vector<double> live;  // O_k(l, m - 1), then O_k(l, m)
    for (int k = 0; k < levels() && level(k).slots >= 0; ++k) {
        const auto here = static_cast<std::size_t>(k);
        const std::vector<double>& low = below_[here];
        live = low;
        if (k == 0 && free_ && slots(0) > 0) {
            live = binomial_prices(size);
        } else {
            kept_[here].resize(static_cast<std::size_t>(slots(k) * size));
            for (Index m = 1; m <= slots(k); ++m) {
                double* const price = kept_[here].data() + (m - 1) * size;
                std::copy(low.begin(), low.end(), price);
                for (Index j = 1; j < size; ++j) {
                    min_plus::lower(price + j, live.data(), first_advance(k, j, price), 0.0, size - j);
                }
                for (Index l = 1; l < size; ++l) {
                    const auto at = static_cast<std::size_t>(l);
                    live[at] = std::min(low[at], level(k).write + price[l]);
                }
            }
        }
        below_[here + 1] = live;
    }
}

Index MultistagePlan::advance(int k, Index m, Index l) const {
    const double* const price = column(k, m);
    const std::vector<double>& low = below_[static_cast<std::size_t>(k)];
    // Behind the advance lies O_k(l - j, m - 1); above an unlimited level nothing more is written to it.
    const double* const above = m > 1 ? column(k, m - 1) : nullptr;
    for (Index j = 1; j <= l; ++j) {
        const Index rest = l - j;
        double live = low[static_cast<std::size_t>(rest)];
        if (above != nullptr && rest > 0) live = std::min(live, level(k).write + above[rest]);
        if (first_advance(k, j, price) + live == price[l]) return j;
    }
    throw ScheduleError("multistage: no advance reaches the price in the table");
}

/// Above one level without prices t is convex, and with j0 the length of least f0(j) / j, f0(j) the price of a block
/// whose start is read once:
/// - a block that is read again after j >= w / uf links costs no less than two blocks, cut there;
/// - e links beside such an advance, where O(e) - O(e - j0) + j0 uf >= f0(j0), cost no less than j0 less of them and a
///   block of j0 links more; e links of tail neither, without the term j0 uf.
MultistagePlan::Window MultistagePlan::window() const {
    const Window everything{whole_, options_.reads == LevelReads::many ? whole_ : 0, whole_ + 1, whole_ + 1};
    if (levels() != 2 || !free_ || slots_[0] < 1) return everything;
    const double uf = options_.advance;
    const double both = levels_[1].write + levels_[1].read;
    const auto once = [&](Index j) { return both + static_cast<double>(j) * uf + binomial_price(j - 1); };
    const auto more = static_cast<double>(optimum(whole_ + 1, slots_[0]).advances) - static_cast<double>(whole_);
    if (uf * more <= both) return {0, 0, 0, 0};  // no block pays
    const Index j0 = least(1, whole_, [&](Index j) {
        const double growth = uf * static_cast<double>(1 + repetitions(j + 1, slots_[0])) + options_.reverse;
        return static_cast<double>(j) * growth >= once(j);
    });
    const auto cut_pays = [&](Index e, double saved) {
        return binomial_price(e) - binomial_price(e - j0) + saved >= once(j0);
    };
    const Index tail = least(j0, whole_ + 1, [&](Index e) { return cut_pays(e, 0.0); });
    if (options_.reads == LevelReads::one) {
        const Index longest = least(2, whole_ + 1, [&](Index j) {
            return once(j / 2) + once(j - j / 2) <= once(j);  // f0 is convex: so for all longer ones
        });
        return {longest - 1, 0, longest, tail};
    }
    const Index beside = least(j0, whole_ + 1, [&](Index e) { return cut_pays(e, static_cast<double>(j0) * uf); });
    const double pays = std::ceil(levels_[1].write / uf) - 1.0;
    const Index again = pays < static_cast<double>(whole_) ? std::max<Index>(static_cast<Index>(pays), 0) : whole_;
    return {std::min(whole_, again + beside), again, beside, tail};
}

void MultistagePlan::fill_blocks() {
    if (window_.longest == 0) {  // no block pays; nor does one in a chain of at most one link
        cost_ = free_ && slots_[0] > 0 ? binomial_price(whole_) : below_.back().back();
        return;
    }
    const Index size = window_.longest;
    const bool short_chain = whole_ <= 4 * size;
    const double whole = short_chain ? static_cast<double>(whole_) : 0.0;
    require(8.0 * whole, static_cast<double>(window_.again) * static_cast<double>(window_.beside) +
                             whole * static_cast<double>(size));
    const std::vector<double>& low = below_.back();
    std::vector<double>& price = kept_.back();
    price.assign(static_cast<std::size_t>(size), infinite);
    std::copy_n(low.begin(), std::min(size, window_.beside), price.begin());
    for (Index j = 1; j <= std::min(window_.again, size - 1); ++j) {
        min_plus::lower(price.data() + j, low.data(), first_advance(levels() - 1, j, price.data()), 0.0,
                        std::min(size - j, window_.beside));
    }
    std::vector<double> block(static_cast<std::size_t>(size) + 1, infinite);
    for (Index j = 1; j <= size; ++j) {
        block[static_cast<std::size_t>(j)] = levels_.back().write + first_advance(levels() - 1, j, price.data());
    }
    if (short_chain || !cut_by_residues(block)) cut_by_table(block);
    cost_ = low[static_cast<std::size_t>(tail_)];
    Index count = 0;
    for (const BlockRun& run : blocks_) {
        cost_ += static_cast<double>(run.count) * block[static_cast<std::size_t>(run.links)];
        count += run.count;
    }
    if (count > most_slots - offsets_.back()) {
        throw InvalidArgument("multistage: " + std::to_string(count) +
                              " states would lie on the level without limit, more than the 2147483647 slots that have "
                              "numbers; give more slots on the other levels");
    }
}

/// Blocks may be put in any order. With `star` the block of least price a link, what others cost above that price
/// depends on the residue of their sum only as long as they fit: of star blocks that are not stars some sum to a
/// multiple of star. So the best are shortest paths between residues. Answers whether those found fit, which proves
/// them.
bool MultistagePlan::cut_by_residues(const std::vector<double>& block) {
    std::size_t star = 1;
    const auto number = [](std::size_t j) { return static_cast<double>(j); };
    for (std::size_t j = 2; j < block.size(); ++j) {
        if (block[j] * number(star) < block[star] * number(j)) star = j;
    }
    require(8.0 * 5.0 * number(star), number(star) * number(star));
    struct Reach {
        double excess = infinite;  // times star, so that whole prices stay whole
        std::size_t links = 0;     // of the blocks that are not stars
        std::size_t last = 0;      // the last of them
        bool final = false;
    };
    std::vector<Reach> edges(star);
    for (std::size_t j = 1; j < block.size(); ++j) {
        const double excess = block[j] * number(star) - block[star] * number(j);
        if (excess < edges[j % star].excess) edges[j % star] = {excess, j, j, false};
    }
    std::vector<Reach> reach(star);
    reach[0] = {0.0, 0, 0, false};
    const auto better = [](const Reach& a, const Reach& b) {
        return a.excess < b.excess || (a.excess == b.excess && a.links < b.links);
    };
    for (std::size_t round = 0; round < star; ++round) {
        std::size_t from = star;
        for (std::size_t i = 0; i < star; ++i) {
            if (!reach[i].final && (from == star || better(reach[i], reach[from]))) from = i;
        }
        if (reach[from].excess == infinite) break;
        reach[from].final = true;
        for (std::size_t edge = 1; edge < star; ++edge) {
            const Reach through{reach[from].excess + edges[edge].excess, reach[from].links + edges[edge].links,
                                edges[edge].last, false};
            Reach& to = reach[from + edge < star ? from + edge : from + edge - star];
            if (!to.final && better(through, to)) to = through;
        }
    }
    double fitting = infinite;
    double least_of_all = infinite;
    for (Index e = 0; e < std::min(window_.tail, whole_ + 1); ++e) {
        const auto left = static_cast<std::size_t>(whole_ - e);
        const Reach& to = reach[left % star];
        const double excess = below_.back()[static_cast<std::size_t>(e)] * number(star) + to.excess -
                              block[star] * static_cast<double>(e);
        least_of_all = std::min(least_of_all, excess);
        if (to.links > left || excess >= fitting) continue;
        fitting = excess;
        tail_ = e;
    }
    if (fitting > least_of_all) return false;
    std::map<Index, Index, std::greater<>> counts;
    const auto left = static_cast<std::size_t>(whole_ - tail_);
    counts[static_cast<Index>(star)] = static_cast<Index>((left - reach[left % star].links) / star);
    for (std::size_t at = left % star; at != 0; at = (at + star - reach[at].last % star) % star) {
        ++counts[static_cast<Index>(reach[at].last)];
    }
    blocks_ = runs_of(counts);
    return true;
}

/// price(l) = min(O(l), min_j f(j) + price(l - j)) for every l [AHHR16].
void MultistagePlan::cut_by_table(const std::vector<double>& block) {
    const auto size = static_cast<std::size_t>(whole_) + 1;
    const double length = static_cast<double>(size);
    require(8.0 * length, length * static_cast<double>(window_.longest));
    const std::vector<double>& low = below_.back();
    std::vector<double> price(size, infinite);
    std::copy_n(low.begin(), std::min(whole_ + 1, window_.tail), price.begin());
    for (Index l = 0; l < whole_; ++l) {
        min_plus::lower(price.data() + l + 1, block.data() + 1, price[static_cast<std::size_t>(l)], 0.0,
                        std::min(window_.longest, whole_ - l));
    }
    std::map<Index, Index, std::greater<>> counts;
    Index l = whole_;
    while (l >= window_.tail || price[static_cast<std::size_t>(l)] != low[static_cast<std::size_t>(l)]) {
        Index j = 1;
        while (price[static_cast<std::size_t>(l - j)] + block[static_cast<std::size_t>(j)] !=
               price[static_cast<std::size_t>(l)]) {
            ++j;
        }
        ++counts[j];
        l -= j;
    }
    tail_ = l;
    blocks_ = runs_of(counts);
}

}  // namespace backsweep
