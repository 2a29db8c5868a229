// SPDX-License-Identifier: MIT
#include "backsweep/plan/plan.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/plan/timeline.hpp"
#include "backsweep/schedule/apart.hpp"
#include "backsweep/schedule/mixed.hpp"
#include "backsweep/schedule/periodic_disk.hpp"
#include "backsweep/schedule/prediction.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/tiered_revolve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <set>
#include <utility>

namespace backsweep {

namespace {

constexpr auto ram = static_cast<std::size_t>(Tier::ram);
constexpr Index most_slots = std::numeric_limits<std::int32_t>::max();

/// What a schedule does and holds; tapes: with the working one.
struct Counts {
    Index advances = 0, states = 0, tapes = 1, on_disk = 0, writes = 0, reads = 0;
    Index actions = 0;    // about; only where there are slots on disk
    double waited = 0.0;  // for the disk: see wait()
    Index starts = 0;     // of the states: 1 where x_0 has a slot in RAM of its own
};

Counts starting(Counts c, Index starts) {
    c.starts = starts;
    return c;
}

Counts count_periodic(Index links, Index period) {
    const Index blocks = 1 + (links - 1) / period;
    return starting({(blocks - 1) * period, blocks - 1, std::min(period, links)}, blocks > 1 ? 1 : 0);
}

Counts count_revolve(Index links, Index slots) {
    return starting({revolve_advances(links, slots), std::min(slots, links - 1)}, links > 1 ? 1 : 0);
}

std::unique_ptr<Schedule> made(const ScheduleOptions& options) {
    std::unique_ptr<Schedule> schedule = make_schedule(options);
    if (options.family == "mixed") schedule = std::make_unique<Apart>(std::move(schedule));
    return schedule;
}

/// Slots in RAM that hold a state, but none but x_0.
Index starts_of(Schedule& schedule) {
    std::set<std::int32_t> start, others;
    schedule.rewind();
    for (Action a = schedule.next(); a.verb != Verb::done; a = schedule.next())
        if (a.verb == Verb::save && a.to.tier == Tier::ram) (a.steps.first == 0 ? start : others).insert(a.to.index);
    schedule.rewind();
    return std::count_if(start.begin(), start.end(), [&](std::int32_t slot) { return others.count(slot) == 0; });
}

PeriodicDiskOptions blocks_of(const ScheduleOptions& o, Index links) {
    return {.steps = links,
            .ram_slots = o.levels[0].slots,
            .write = o.levels[1].write,
            .read = o.levels[1].read,
            .advance = o.advance_cost,
            .reverse = o.reverse_cost,
            .period = o.period};
}

Counts count(const ScheduleOptions& o, Index links) {
    if (o.family == "store_all") return {0, 0, links};
    if (o.family == "periodic") return count_periodic(links, o.period);
    if (o.family == "revolve") return count_revolve(links, o.slots);
    if (o.family == "tiered_revolve") {
        const TieredRevolveCounts c =
            tiered_revolve_counts({.steps = links, .ram_slots = o.levels[0].slots, .disk_slots = o.levels[1].slots});
        const Index in_ram = std::count(c.tiers.begin(), c.tiers.end(), Tier::ram);
        const Index moves = std::accumulate(c.writes.begin(), c.writes.end(), Index{0}) +
                            std::accumulate(c.reads.begin(), c.reads.end(), Index{0});
        return starting({c.advances, in_ram, 1, static_cast<Index>(c.tiers.size()) - in_ram, c.disk_writes,
                         c.disk_reads, 2 * (links + moves)},
                        !c.tiers.empty() && c.tiers.front() == Tier::ram ? 1 : 0);
    }
    if (o.family == "periodic_disk") {
        const PeriodicDiskCounts c = periodic_disk_counts(blocks_of(o, links));
        const Index tail = links - c.disk_writes * c.period,
                    longest = c.disk_writes > 0 ? std::max(tail, c.period) : tail;
        const Index moves = c.ram_writes + c.ram_reads + c.disk_writes + c.disk_reads;
        const bool others = (c.disk_writes > 0 && tail > 1) || (c.disk_writes > 1 && c.period > 1);
        return starting({c.advances, std::min(o.levels[0].slots, longest - 1), 1, c.disk_writes, c.disk_writes,
                         c.disk_reads, 2 * (links + moves)},
                        longest > 1 && !others ? 1 : 0);
    }
    const std::unique_ptr<Schedule> schedule = made(o);
    const Play play = predict(*schedule, links);
    const auto disk = static_cast<std::size_t>(Tier::disk);
    return starting({play.advances, play.state_slots[ram], play.tape_slots[ram] + 1, play.peak_slots[disk],
                     play.writes[disk], play.reads[disk]},
                    starts_of(*schedule));
}

Bytes bytes(const Workload& w, const Counts& c) {
    Bytes all = w.always;
    all[Kind::slots] += (c.states - (w.remakes ? c.starts : 0)) * w.state;
    all[Kind::tape] += c.tapes * w.tape;
    all[Kind::carry] += c.tapes * w.tape_carry;
    if (c.on_disk > 0) all[Kind::workspace] += w.buffers;
    return all;
}

std::int64_t disk_bytes(const Workload& w, const Counts& c) {
    return w.disk + (c.on_disk > 0 ? w.disk_file + c.on_disk * w.disk_slot : 0);
}

/// The last link may be short; it is recorded and reversed, but never advanced.
double least_cost(const Workload& w) {
    return static_cast<double>(w.steps) / static_cast<double>(w.chunk) * (w.record + w.reverse);
}

double cost(const Workload& w, const Counts& c) {
    return static_cast<double>(c.advances) * w.advance + least_cost(w) + c.waited;
}

double transfers(const Workload& w, const Counts& c) {
    return static_cast<double>(c.writes) * w.write + static_cast<double>(c.reads) * w.read;
}

/// Fills `waited` in: by the clocks, or as if every transfer were waited for where a schedule is too long to be played.
void wait(const Workload& w, const ScheduleOptions& options, Counts& c) {
    constexpr Index most_actions = 300'000;
    c.waited = transfers(w, c);
    if (c.waited > 0.0 && c.actions <= most_actions) c.waited = timeline(*made(options), w).waited;
}

/// No sweep ends before its links, or before all writes but those that still lie in buffers at its end. Of one that
/// writes `forward` links long and then reads each state once, both halves are so: but for what is in the buffers.
double lower_bound(const Workload& w, const Counts& c, Index forward = 0) {
    const double links = cost(w, c), writes = static_cast<double>(c.writes - w.disk_buffers) * w.write;
    if (forward == 0) return std::max(links, writes);
    const double sweep = static_cast<double>(forward) * w.advance;
    return std::max(sweep, writes) +
           std::max(links - sweep, static_cast<double>(c.reads - 2 * w.disk_buffers) * w.read);
}

double share(std::int64_t needs, std::int64_t offered) {
    if (offered == Budget::unlimited || needs <= offered) return 0.0;
    return static_cast<double>(needs) / static_cast<double>(std::max<std::int64_t>(1, offered));
}

double excess(const Bytes& bytes, std::int64_t disk, const Budget& budget) {
    return std::max(
        {share(bytes.total(), budget.ram), share(bytes.time_axis(), budget.time_axis), share(disk, budget.disk)});
}

Plan plan_of(const Workload& w, ScheduleOptions options, const Counts& c) {
    Plan plan;
    plan.schedule = std::move(options);
    plan.chunk = w.chunk;
    plan.predicted = bytes(w, c);
    plan.disk = disk_bytes(w, c);
    plan.disk_slots = c.on_disk;
    plan.advances = c.advances;
    plan.recorded = w.links();
    plan.cost = cost(w, c);
    plan.least_cost = least_cost(w);
    return plan;
}

void check(const Workload& workload) {
    if (std::string why = workload.problem(); !why.empty()) throw InvalidArgument(why);
}

/// Periods of which one has the least cost and the fewest bytes for every number of blocks.
std::vector<Index> periods(Index links) {
    std::vector<Index> all;
    for (Index blocks = 1; blocks <= links;) {
        const Index period = 1 + (links - 1) / blocks;
        all.push_back(period);
        blocks = period == 1 ? links + 1 : 1 + (links - 1) / (period - 1);  // the fewest with a shorter period
    }
    return all;
}

/// Looks through the families.
class Search {
public:
    Search(const Workload& workload, const Budget& budget, double below)
        : w_(workload),
          budget_(budget),
          links_(workload.links()),
          below_(below) {}

    Offer offer() {
        if (least_cost(w_) < below_) {
            along_ram();
            double best = below_;
            for (const Plan& plan : found_.fitting) best = std::min(best, plan.cost);
            if (budget_.disk != 0) along_disk(best);
        } else {
            smallest_only();
        }
        std::stable_sort(found_.fitting.begin(), found_.fitting.end(), cheaper);
        if (!found_.fitting.empty()) found_.best = found_.fitting.front();
        if (found_.smallest->disk_slots > 0) found_.smallest = price(w_, found_.smallest->schedule);
        return std::move(found_);
    }

private:
    struct Point {
        ScheduleOptions options;
        Counts counts;
        double cost = 0.0;
        std::int64_t bytes = 0;
    };

    ScheduleOptions family(const char* name) const {
        ScheduleOptions o;
        o.family = name;
        o.steps = links_;
        return o;
    }
    bool fits(const Counts& c) const { return excess(bytes(w_, c), disk_bytes(w_, c), budget_) == 0.0; }

    /// Whether it fits; `smallest` becomes the one that passes the limits less.
    template <class Set>
    bool look(const Counts& c, const Set& options) {
        const Bytes b = bytes(w_, c);
        const double over = excess(b, disk_bytes(w_, c), budget_);
        if (!found_.smallest || over < excess_ ||
            (over == excess_ && over > 0.0 && b.total() < found_.smallest->predicted.total())) {
            excess_ = over;
            found_.smallest = plan_of(w_, options(), c);
        }
        return over == 0.0;
    }
    /// `of_family` becomes the better one; set: options of these counts.
    template <class Set>
    void consider(const Counts& c, std::optional<Point>& of_family, const Set& options) {
        const Bytes b = bytes(w_, c);
        const double costs = backsweep::cost(w_, c);
        if (!look(c, options) || costs >= below_) return;
        if (of_family && (costs > of_family->cost || (costs == of_family->cost && b.total() >= of_family->bytes)))
            return;
        of_family = Point{options(), c, costs, b.total()};
    }
    void take(const std::optional<Point>& point) {
        if (point) found_.fitting.push_back(plan_of(w_, point->options, point->counts));
    }

    void smallest_only() {
        std::optional<Point> none;
        periodic(none);
        consider(count_revolve(links_, 1), none, [&] { return with_slots(1); });
    }
    void periodic(std::optional<Point>& best) {
        for (const Index k : periods(links_))
            consider(count_periodic(links_, k), best, [&] {
                ScheduleOptions o = family("periodic");
                o.period = k;
                return o;
            });
    }
    ScheduleOptions with_slots(Index slots) const {
        ScheduleOptions o = family("revolve");
        o.slots = slots;
        return o;
    }

    void along_ram() {
        std::optional<Point> all, blocks, binomial;
        consider({0, 0, links_}, all, [&] { return family("store_all"); });
        periodic(blocks);
        // Advances fall and bytes rise with the slots: the most slots that fit are the cheapest.
        Index few = 1, many = std::max<Index>(1, links_ - 1);
        const auto revolve = [&](Index slots) {
            consider(count_revolve(links_, slots), binomial, [&] { return with_slots(slots); });
        };
        revolve(few);
        if (fits(count_revolve(links_, few))) {
            while (few < many) {
                const Index middle = few + (many - few + 1) / 2;
                if (fits(count_revolve(links_, middle)))
                    few = middle;
                else
                    many = middle - 1;
            }
            // The least slots with as many advances as the most that fit.
            const Index advances = revolve_advances(links_, few);
            revolve(advances > 0 ? std::min(few, least_slots(links_, advances)) : 1);
        }
        take(all);
        take(blocks);
        take(binomial);
        double best = below_;
        for (const auto* point : {&all, &blocks, &binomial})
            if (*point) best = std::min(best, (*point)->cost);
        mixed(best);
    }

    /// In what is left beside the working tape, if its tables are small.
    void mixed(double best) {
        constexpr double most_additions = 1e8;
        if (w_.state < 1 || links_ < 3) return;
        const Bytes least = bytes(w_, {});
        const std::int64_t tape = w_.tape + w_.tape_carry;
        std::int64_t room = w_.state * links_ + tape * links_;
        if (budget_.ram != Budget::unlimited) room = std::min(room, budget_.ram - least.total());
        if (budget_.time_axis != Budget::unlimited) room = std::min(room, budget_.time_axis - least.time_axis());
        if (w_.remakes) room += w_.state;
        MixedOptions options;
        options.steps = links_;
        options.tape_units = std::max<Index>(1, (tape + w_.state - 1) / w_.state);
        options.restart = false;
        // A link whose tape is not kept in the first sweep is run twice at least.
        const Index tapes = room / std::max<std::int64_t>(1, tape);
        Counts bound;
        bound.advances = std::max<Index>(0, links_ - 1 - tapes);
        if (room < w_.state || cost(w_, bound) >= best) return;
        std::optional<Point> point;
        // Where states and tapes are at their most at different times, both do not fit at once: then in fewer units,
        // the most that fit.
        ScheduleOptions o = family("mixed");
        o.tape_units = options.tape_units;
        const auto fit = [&](Index units) {
            o.slots = units;
            const Counts c = count(o, links_);
            consider(c, point, [&] { return o; });
            return fits(c);
        };
        Index units = std::min<Index>(room / w_.state, links_ * (options.tape_units + 1)), too_many = units + 1;
        for (;; units = units * 7 / 8) {
            options.units = units;
            const auto n = static_cast<double>(links_);
            if (units < 1 || !options.problem().empty() ||
                (mixed_table_bytes(options) > 0 && n * n * static_cast<double>(units) > most_additions))
                return;
            if (fit(units)) break;
            too_many = units;
        }
        while (too_many - units > 1) {
            const Index middle = units + (too_many - units) / 2;
            (fit(middle) ? units : too_many) = middle;
        }
        take(point);
    }

    void along_disk(double best) {
        if (w_.disk_slot < 1) return;
        const std::int64_t left = budget_.disk == Budget::unlimited ? std::numeric_limits<std::int64_t>::max()
                                                                    : budget_.disk - w_.disk - w_.disk_file;
        const Index most_disk = std::min({left / w_.disk_slot, links_ - 1, most_slots});
        if (most_disk < 1) return;
        Index most_ram = 0;
        {
            Index few = 0, many = links_ - 1;
            while (few < many) {
                const Index middle = few + (many - few + 1) / 2;
                Counts c;
                c.states = middle, c.on_disk = 1;
                if (fits(c))
                    few = middle;
                else
                    many = middle - 1;
            }
            most_ram = few;
        }
        const auto level = [](Tier tier, Index slots) {
            Level l;
            l.tier = tier;
            l.slots = slots;
            return l;
        };
        std::vector<Point> tiers;  // by lower bounds, until the clocks are played
        for (const Index in_ram : {Index{0}, most_ram}) {
            for (Index disk = 1;; disk = std::min(most_disk, disk + std::max<Index>(1, disk / 4))) {
                ScheduleOptions o = family("tiered_revolve");
                o.levels = {level(Tier::ram, in_ram), level(Tier::disk, disk)};
                const Counts c = count(o, links_);
                o.levels[1].slots = c.on_disk;
                if (c.on_disk > 0 && look(c, [&] { return o; }))
                    tiers.push_back({o, c, lower_bound(w_, c), bytes(w_, c).total()});
                if (disk >= most_disk || in_ram + disk >= links_ - 1) break;
            }
            if (most_ram == 0) break;
        }
        for (Index period = std::max<Index>(1, (links_ - 2) / (most_disk + 1)); most_ram > 0 && period < links_ - 1;
             period += std::max<Index>(1, period / 8)) {
            ScheduleOptions o = family("periodic_disk");
            o.period = period;
            o.levels = {level(Tier::ram, most_ram), level(Tier::disk, -1)};
            const Counts c = count(o, links_);
            o.levels[0].slots = std::max<Index>(1, c.states);
            if (c.on_disk > 0 && look(c, [&] { return o; }))
                tiers.push_back({o, c, lower_bound(w_, c, c.on_disk * period), bytes(w_, c).total()});
        }
        const auto cheaper = [](const Point& a, const Point& b) {
            return a.cost != b.cost ? a.cost < b.cost : a.bytes < b.bytes;
        };
        std::stable_sort(tiers.begin(), tiers.end(), cheaper);
        std::optional<Point> found;
        for (Point& point : tiers) {
            if (point.cost >= best || (found && point.cost > found->cost)) break;
            wait(w_, point.options, point.counts);
            point.cost = backsweep::cost(w_, point.counts);
            if (point.cost < best && (!found || cheaper(point, *found))) found = point;
        }
        take(found);
    }

    const Workload& w_;
    const Budget& budget_;
    Index links_;
    double below_;
    Offer found_;
    double excess_ = 0.0;  // of found_.smallest
};

}  // namespace

std::string Workload::problem() const {
    if (steps < 1) return "a workload has at least 1 step, got " + std::to_string(steps);
    if (chunk < 1) return "a link has at least 1 step, got chunk = " + std::to_string(chunk);
    for (const auto& [name, bytes] :
         {std::pair{"state", state}, std::pair{"tape", tape}, std::pair{"tape_carry", tape_carry},
          std::pair{"disk", disk}, std::pair{"disk_slot", disk_slot}, std::pair{"disk_file", disk_file},
          std::pair{"buffers", buffers}, std::pair{"disk_buffers", disk_buffers}})
        if (bytes < 0)
            return std::string("bytes and buffers are not negative, got ") + name + " = " + std::to_string(bytes);
    for (const double c : {advance, record, reverse, write, read})
        if (!(c >= 0.0) || !std::isfinite(c)) return "costs are finite and not negative, got " + std::to_string(c);
    return {};
}

std::string bytes_in_words(std::int64_t bytes) {
    static constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024.0 && unit + 1 < units.size()) value /= 1024.0, ++unit;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return text.data();
}

bool cheaper(const Plan& a, const Plan& b) noexcept {
    return a.cost != b.cost ? a.cost < b.cost : a.predicted.total() < b.predicted.total();
}

double excess(const Plan& plan, const Budget& budget) noexcept {
    return excess(plan.predicted, plan.disk, budget);
}

bool fits(const Plan& plan, const Budget& budget) noexcept {
    return excess(plan, budget) == 0.0;
}

std::string shortfall(const Plan& plan, const Budget& budget) {
    std::string why;
    const auto line = [&](const char* what, std::int64_t needs, std::int64_t offered) {
        if (share(needs, offered) == 0.0) return;
        why += (why.empty() ? "" : "; ") + std::string(what) + ": needs " + bytes_in_words(needs) + " (" +
               std::to_string(needs) + " bytes), offered " + bytes_in_words(offered) + " (" + std::to_string(offered) +
               " bytes)";
    };
    line("ram", plan.predicted.total(), budget.ram);
    line("time axis", plan.predicted.time_axis(), budget.time_axis);
    line("disk", plan.disk, budget.disk);
    return why;
}

std::vector<Plan> pareto(std::vector<Plan> plans) {
    std::stable_sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) {
        const std::int64_t left = a.predicted.total(), right = b.predicted.total();
        return left != right ? left < right : a.cost < b.cost;
    });
    std::vector<Plan> front;
    for (Plan& plan : plans)
        if (front.empty() || plan.cost < front.back().cost) front.push_back(std::move(plan));
    return front;
}

std::unique_ptr<Schedule> schedule_for(const Plan& plan, Index links) {
    ScheduleOptions o = plan.schedule;
    const Index full = o.steps;
    o.steps = links;
    if (o.family != "mixed" || links == full) return made(o);
    // Another length may want more of either kind, never more in all: fewer units then, at last as many states as
    // before.
    const Counts whole = count(plan.schedule, full);
    for (; o.slots >= 1; o.slots = o.slots * 3 / 4) {
        const Counts c = count(o, links);
        if (c.states <= whole.states && c.tapes <= whole.tapes) return made(o);
    }
    if (links <= whole.tapes) {
        ScheduleOptions all;
        all.family = "store_all";
        all.steps = links;
        return made(all);
    }
    ScheduleOptions few;
    few.steps = links;
    few.slots = std::max<Index>(1, whole.states);
    return made(few);
}

Plan price(const Workload& workload, ScheduleOptions options) {
    check(workload);
    const Index links = workload.links();
    options.steps = links;
    constexpr std::array planned{"store_all", "periodic", "revolve", "mixed", "tiered_revolve", "periodic_disk"};
    if (std::find(planned.begin(), planned.end(), options.family) == planned.end()) {
        std::string names;
        for (const char* name : planned) names += (names.empty() ? "" : ", ") + std::string(name);
        throw InvalidArgument("no plan is made of schedule '" + options.family + "'; there are: " + names);
    }
    if (std::string why = options.problem(); !why.empty()) throw InvalidArgument(why);
    if (options.restart) throw InvalidArgument("a workload's tapes restart nothing; leave restart out");
    if (options.family == "periodic_disk") options.period = periodic_disk_period(blocks_of(options, links));
    Counts c = count(options, links);
    if (c.on_disk > 0 && workload.disk_slot < 1)
        throw InvalidArgument("schedule '" + options.family +
                              "' has slots on disk, but the workload has none; leave it out, or offer disk");
    wait(workload, options, c);
    return plan_of(workload, std::move(options), c);
}

Offer offer(const Workload& workload, const Budget& budget, double below) {
    check(workload);
    return Search(workload, budget, below).offer();
}

Plan make_plan(const Workload& workload, const Budget& budget) {
    Offer all = offer(workload, budget);
    if (all.best) return std::move(*all.best);
    throw NoPlan("no schedule fits: " + shortfall(*all.smallest, budget) + ". The least is " +
                 all.smallest->schedule.family + "'s; offer that much, or take a shorter chunk (now " +
                 std::to_string(workload.chunk) + " steps) or a smaller batch");
}

}  // namespace backsweep
