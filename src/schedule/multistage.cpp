// SPDX-License-Identifier: MIT
#include "backsweep/schedule/multistage.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "schedule/block_schedule.hpp"
#include "schedule/multistage_plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace backsweep {
namespace {

constexpr Index longest_chain = Index{1} << 62;

/// l + 1 links to reverse with the free slots of a level and all slots of those below.
struct Segment {
    int level;
    Index free;
    Index l;
};

/// Goes down to the level where keeping the start pays. False: the segment is a single link, or level 0 without prices
/// reverses it.
bool is_kept(const MultistagePlan& plan, Segment& segment) {
    auto& [k, m, l] = segment;
    while (l > 0 && !(k == 0 && plan.first_is_free())) {
        if (m > 0 && plan.level(k).write + plan.kept(k, m, l) < plan.below(k, l)) return true;
        --k;
        m = plan.slots(k);
    }
    return false;
}

/// Whether the start of the segment, on level k, is read for the last time.
bool is_last_read(const MultistagePlan& plan, const Segment& segment) {
    return segment.l == 0 || plan.below(segment.level, segment.l) <= plan.kept(segment.level, segment.free, segment.l);
}

class Multistage final : public BlockSchedule {
public:
    explicit Multistage(const MultistageOptions& options)
        : plan_(options),
          way_{options.steps, options.needs_state},
          walk_(plan_.first_is_free() ? plan_.slots(0) : 0, {plan_.level(0).tier, 0}) {
        Index deepest = 2;
        for (int k = 0; k < plan_.levels(); ++k) deepest += std::max<Index>(plan_.slots(k), 1);
        waiting_.reserve(static_cast<std::size_t>(deepest));
        begin();
    }

private:
    /// A segment that is still to be reversed; `stored`: its start lies on the level, in `slot`, and is not at work.
    struct Waiting {
        Segment segment;
        Index at;
        bool stored;
    };

    void begin() override {
        way_.turned = false;
        waiting_.clear();
        run_ = 0;
        of_run_ = 0;
        block_ = 0;
        at_ = 0;
        sweeping_ = way_.links() > 0;
        walk_.rest();
    }

    std::size_t generate(std::span<Action> out) override {
        Action* to = out.data();
        const Action* const last_start = to + (out.size() - reach);
        while (to <= last_start) {
            if (walk_.walking()) {
                to = walk_.walk(to, last_start, way_);
            } else if (!waiting_.empty()) {
                const Waiting next = waiting_.back();
                waiting_.pop_back();
                to = next.stored ? read(to, next) : go(to, next);
            } else if (sweeping_) {
                to = sweep(to);
            } else if (block_ > 0) {
                last_block();
            } else {
                if (!way_.turned) *to++ = emit::turn(way_.steps);  // no link at all
                way_.turned = true;
                *to++ = emit::done();
                break;
            }
        }
        return static_cast<std::size_t>(to - out.data());
    }

    int unlimited() const { return plan_.levels() - 1; }

    Slot slot(const Segment& segment) const {
        const int k = segment.level;
        const Index number = plan_.level(k).slots < 0 ? block_ : plan_.slots(k) - segment.free;
        return {plan_.level(k).tier, static_cast<std::int32_t>(plan_.offset(k) + number)};
    }

    /// The first sweep: the next block, or what lies behind the last.
    Action* sweep(Action* to) {
        if (run_ < plan_.blocks().size()) {
            const BlockRun& run = plan_.blocks()[run_];
            *to++ = emit::save(at_, slot({unlimited(), 1, 0}));
            to = way_.advance(to, at_, at_ + run.links);
            at_ += run.links;
            ++block_;
            if (++of_run_ == run.count) {
                of_run_ = 0;
                ++run_;
            }
            return to;
        }
        sweeping_ = false;
        const int top = plan_.levels() - (plan_.unlimited() ? 2 : 1);
        return go(to, {{top, top < 0 ? 0 : plan_.slots(top), plan_.tail()}, at_, false});
    }

    /// The way back: the block before.
    void last_block() {
        if (of_run_ == 0) of_run_ = plan_.blocks()[--run_].count;
        --of_run_;
        --block_;
        const Index links = plan_.blocks()[run_].links;
        at_ -= links;
        waiting_.push_back({{unlimited(), 1, links - 1}, at_, true});
    }

    /// The start is at work and kept nowhere.
    Action* go(Action* to, Waiting from) {
        if (is_kept(plan_, from.segment)) {
            *to++ = emit::save(from.at, slot(from.segment));
            return advance(to, from);
        }
        if (from.segment.l == 0) return way_.reverse(to, from.at);
        walk_.begin(from.at, from.at + from.segment.l + 1);
        return to;
    }

    Action* read(Action* to, Waiting from) {
        if (!is_last_read(plan_, from.segment)) {
            *to++ = emit::load(from.at, slot(from.segment));
            return advance(to, from);
        }
        *to++ = emit::take(from.at, slot(from.segment));
        from.segment.level -= 1;
        from.segment.free = from.segment.level < 0 ? 0 : plan_.slots(from.segment.level);
        return go(to, from);
    }

    /// The start is at work and kept on its level.
    Action* advance(Action* to, const Waiting& from) {
        const auto [k, m, l] = from.segment;
        const Index j = plan_.advance(k, m, l);
        to = way_.advance(to, from.at, from.at + j);
        waiting_.push_back({{k, m, j - 1}, from.at, true});
        Segment above{k, m - 1, l - j};
        if (plan_.level(k).slots < 0) above = {k - 1, k > 0 ? plan_.slots(k - 1) : 0, l - j};
        waiting_.push_back({above, from.at + j, false});
        return to;
    }

    MultistagePlan plan_;
    WayBack way_;
    BinomialWalk walk_;
    std::vector<Waiting> waiting_;  // the innermost last
    std::size_t run_ = 0;           // of blocks, next in the first sweep, or the one gone back through
    Index of_run_ = 0;              // blocks of it that lie before at_
    Index block_ = 0;               // blocks before at_
    Index at_ = 0;                  // the end of those blocks
    bool sweeping_ = false;
};

}  // namespace

std::string MultistageOptions::problem() const {
    const auto came = [](const std::string& what, const auto& value) {
        return "multistage: " + what + ", came " + std::to_string(value);
    };
    const auto is_price = [](double price) { return std::isfinite(price) && price >= 0.0; };
    if (steps < 0 || steps > longest_chain) {
        return came("steps must lie in 0 ... 2^62", steps) + "; give the number of links of the chain";
    }
    if (levels.empty()) return "multistage: no level was given, but states must be kept somewhere; give one or more";
    bool any = false;
    for (std::size_t k = 0; k < levels.size(); ++k) {
        const Level& level = levels[k];
        const std::string name = "levels[" + std::to_string(k) + "].";
        const bool last = k + 1 == levels.size();
        if (static_cast<std::uint32_t>(level.tier) > static_cast<std::uint32_t>(Tier::disk)) {
            return came(name + "tier must be device, pinned, ram or disk", static_cast<std::int32_t>(level.tier));
        }
        if (level.slots < (last ? -1 : 0)) {
            return came(name + "slots must be 0 or more, or -1 (no limit) on the last level", level.slots);
        }
        if (!is_price(level.write)) return came(name + "write must be a number of 0 or more", level.write);
        if (!is_price(level.read)) return came(name + "read must be a number of 0 or more", level.read);
        any = any || level.slots != 0;
    }
    if (!any && steps + (needs_state ? 1 : 0) > 1) {
        return "multistage: no level has a slot, but x_0 must be kept; give one or more slots";
    }
    if (!is_price(advance)) return came("advance must be a price of 0 or more", advance);
    if (!is_price(reverse)) return came("reverse must be a price of 0 or more", reverse);
    if (reads != LevelReads::many && reads != LevelReads::one) {
        return came("reads must be many or one", static_cast<int>(reads));
    }
    if (reads == LevelReads::one && levels.back().slots >= 0) {
        return "multistage: reads one is for a last level without limit (slots -1); give that, or leave reads at many";
    }
    if (!(most_additions >= 0.0)) return came("most_additions must be 0 or more", most_additions);
    return {};
}

std::unique_ptr<Schedule> multistage(const MultistageOptions& options) {
    return std::make_unique<Multistage>(options);
}

double multistage_cost(const MultistageOptions& options) {
    return MultistagePlan(options).cost();
}

MultistageCounts multistage_counts(const MultistageOptions& options) {
    const MultistagePlan plan(options);
    MultistageCounts counts;
    counts.writes.assign(options.levels.size(), 0);
    counts.reads.assign(options.levels.size(), 0);
    counts.cost = plan.cost();
    counts.table_bytes = plan.bytes();
    if (options.steps + (options.needs_state ? 1 : 0) == 0) return counts;

    // How often each segment is met. Longest first, of those the highest level: what a segment leads to comes later.
    struct Met {
        Segment segment;
        bool stored;
        bool operator<(const Met& other) const {
            const auto key = [](const Met& met) {
                return std::tuple(-met.segment.l, -met.segment.level, -met.segment.free, met.stored);
            };
            return key(*this) < key(other);
        }
    };
    std::map<Met, Index> met;
    std::map<Index, Index> binomial_blocks;  // by links
    const auto last_level = static_cast<int>(options.levels.size()) - 1;
    const auto slots = [&](int k) { return k < 0 ? 0 : plan.slots(k); };
    if (options.needs_state && options.steps > 0) --counts.advances;  // the first sweep records the last link
    for (const BlockRun& run : plan.blocks()) {
        counts.writes.back() += run.count;
        counts.advances += run.count * run.links;
        met[{{last_level, 1, run.links - 1}, true}] += run.count;
    }
    const int top = last_level - (plan.unlimited() ? 1 : 0);
    met[{{top, slots(top), plan.tail()}, false}] += 1;
    while (!met.empty()) {
        auto [segment, stored] = met.begin()->first;
        const Index times = met.begin()->second;
        met.erase(met.begin());
        if (stored) {
            counts.reads[static_cast<std::size_t>(segment.level)] += times;
            if (is_last_read(plan, segment)) {
                const int lower = segment.level - 1;
                met[{{lower, slots(lower), segment.l}, false}] += times;
                continue;
            }
        } else {
            if (!is_kept(plan, segment)) {
                if (segment.l > 0) binomial_blocks[segment.l + 1] += times;
                continue;
            }
            counts.writes[static_cast<std::size_t>(segment.level)] += times;
        }
        const auto [k, m, l] = segment;
        const Index j = plan.advance(k, m, l);
        counts.advances += times * j;
        met[{{k, m, j - 1}, true}] += times;
        Segment above{k, m - 1, l - j};
        if (plan.level(k).slots < 0) above = {k - 1, slots(k - 1), l - j};
        met[{above, false}] += times;
    }
    std::vector<BlockRun> blocks;
    for (const auto& [links, count] : binomial_blocks) {
        blocks.push_back({links, count});
        counts.advances += count * revolve_advances(links, plan.slots(0));
    }
    if (blocks.empty()) return counts;
    for (const DepthCount& depth : count_depths(blocks, plan.slots(0), SweepRule::fewest_writes)) {
        counts.writes[0] += depth.writes;
        counts.reads[0] += depth.reads;
    }
    return counts;
}

std::size_t multistage_table_bytes(const MultistageOptions& options) {
    return MultistagePlan::table_bytes(options);
}

}  // namespace backsweep
