// SPDX-License-Identifier: MIT
#include "cli/chain_plan.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/plan/plan.hpp"
#include "backsweep/schedule/ended.hpp"
#include "backsweep/schedule/mixed.hpp"
#include "backsweep/schedule/periodic_disk.hpp"
#include "backsweep/schedule/prediction.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/segments.hpp"
#include "backsweep/schedule/tiered_revolve.hpp"
#include "backsweep/schedule/two_level.hpp"
#include "backsweep/train/durable_file.hpp"
#include "cli/config.hpp"
#include "cli/plot.hpp"
#include "cli/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace backsweep::cli {

namespace {

constexpr Index most_steps = 1'000'000'000;
constexpr Index longest_play = 1'000'000;  ///< longer chains are predicted by formulas alone

/// Prices in one unit of time.
struct Prices {
    double advance = 1.0, record = 1.0, reverse = 1.0;
    double ram_write = 0.0, ram_read = 0.0, disk_write = 0.0, disk_read = 0.0;
};

Prices prices_from(const std::string& text) {
    Prices prices;
    const std::pair<std::string_view, double*> known[] = {
        {"advance", &prices.advance},     {"record", &prices.record},     {"reverse", &prices.reverse},
        {"ram-write", &prices.ram_write}, {"ram-read", &prices.ram_read}, {"disk-write", &prices.disk_write},
        {"disk-read", &prices.disk_read},
    };
    std::string_view rest = text;
    if (text.ends_with(',')) throw InvalidArgument("--costs ends in a comma; give name=number pairs");
    std::vector<std::string_view> seen;
    while (!rest.empty()) {
        const std::string_view item = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), item.size() + 1));
        const std::size_t equals = item.find('=');
        const std::string_view name = item.substr(0, equals);
        const auto* found =
            std::find_if(std::begin(known), std::end(known), [&](const auto& k) { return k.first == name; });
        double value = -1.0;
        if (found != std::end(known) && equals != item.npos) {
            const std::string_view number = item.substr(equals + 1);
            const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
            if (error != std::errc{} || end != number.data() + number.size()) value = -1.0;
        }
        if (!(value >= 0.0) || value > 1e18) {
            std::string names;
            for (const auto& k : known) names += (names.empty() ? "" : ", ") + std::string(k.first);
            throw InvalidArgument(fmt::format(
                "--costs wants name=number pairs such as advance=1,disk-write=5 (names: {}; numbers >= 0), got '{}'",
                names, item));
        }
        if (std::find(seen.begin(), seen.end(), name) != seen.end())
            throw InvalidArgument(fmt::format("--costs gives {} twice; give it once", name));
        seen.push_back(name);
        *found->second = value;
    }
    return prices;
}

/// What a chain may use.
struct Question {
    Index steps = 0;
    bool bytes = false;  ///< sizes were given; else a state and a tape count 1
    std::int64_t state = 1, tape = 1;
    std::int64_t memory = -1;  ///< of all that is alive but the adjoint; -1: not given
    std::int64_t room = -1;    ///< what slots in RAM may hold; -1: no limit
    Index disk_slots = 0;
    bool restart = false;
    Prices prices;

    /// At work while a link is recorded: the state before it, its tape and the state behind it.
    std::int64_t working() const { return 2 * state + tape; }
};

std::int64_t size_from(const char* argument, const std::string& words) {
    const std::int64_t bytes = bytes_from(words);
    if (bytes < 1)
        throw InvalidArgument(fmt::format("{} wants a size such as 4096 or \"2 GiB\", got '{}'", argument, words));
    return bytes;
}

void check_disk_prices(const Question& q) {
    if (q.disk_slots == 0 && (q.prices.disk_write != 0.0 || q.prices.disk_read != 0.0))
        throw InvalidArgument("prices of the disk have no effect without one; give --disk or --disk-slots");
}

Question question_from(const ChainArguments& a) {
    require_within("--steps", a.steps, 1, most_steps);
    require_within("--slots", a.slots, 0, most_steps);
    require_within("--disk-slots", a.disk_slots, 0, most_steps);
    Question q;
    q.steps = a.steps;
    q.restart = a.restart;
    q.prices = prices_from(a.costs);
    q.bytes = !a.state_bytes.empty();
    if (!q.bytes) {
        for (const auto& [name, given] :
             {std::pair{"--memory", &a.memory}, std::pair{"--tape-bytes", &a.tape_bytes}, std::pair{"--disk", &a.disk}})
            if (!given->empty())
                throw InvalidArgument(
                    fmt::format("{} has no effect without --state-bytes; give the bytes of a state", name));
        if (a.slots == 0)
            for (const auto& [name, set] :
                 {std::pair{"--disk-slots", a.disk_slots != 0}, std::pair{"--restart", a.restart}})
                if (set)
                    throw InvalidArgument(fmt::format("{} has no effect without a limit in RAM; give --slots", name));
        q.room = a.slots == 0 ? -1 : a.slots;
        q.disk_slots = a.disk_slots;
        check_disk_prices(q);
        return q;
    }
    q.state = size_from("--state-bytes", a.state_bytes);
    q.tape = a.tape_bytes.empty() ? q.state : size_from("--tape-bytes", a.tape_bytes);
    if (a.disk_slots != 0 && !a.disk.empty())
        throw InvalidArgument("--disk and --disk-slots are two words for one limit; give one");
    q.disk_slots = a.disk_slots;
    if (!a.disk.empty() && (q.disk_slots = size_from("--disk", a.disk) / q.state) == 0)
        throw InvalidArgument(
            fmt::format("--disk {} has no effect: a state takes {}", a.disk, bytes_in_words(q.state)));
    check_disk_prices(q);
    if (a.memory.empty()) {
        if (a.slots == 0)
            throw InvalidArgument("--state-bytes has no effect without a limit; give --memory or --slots");
        q.room = a.slots * q.state;
        return q;
    }
    if (a.slots != 0) throw InvalidArgument("--memory and --slots are two words for one limit; give one");
    q.memory = size_from("--memory", a.memory);
    q.room = std::max<std::int64_t>(0, q.memory - q.working());
    return q;
}

Machine machine_for(const Question& q) {
    Machine m;
    m.sizes.state = [size = q.state](Index) { return size; };
    m.sizes.tape = [size = q.tape](Index) { return size; };
    const auto always = [](double price) { return [price](Index) { return price; }; };
    m.sizes.uniform = m.costs.uniform = true;
    m.costs.advance = always(q.prices.advance);
    m.costs.record = always(q.prices.record);
    m.costs.reverse = always(q.prices.reverse);
    m.costs.write = {0.0, 0.0, q.prices.ram_write, q.prices.disk_write};
    m.costs.read = {0.0, 0.0, q.prices.ram_read, q.prices.disk_read};
    m.ending = Ending::ahead;
    return m;
}

/// The period with the fewest advances among those that fit, 0 if none does. For B blocks none has fewer advances,
/// states or tapes than ceil(steps / B), and advances grow with B.
Index period_within(const Question& q) {
    const Index most_blocks = std::min<Index>(q.steps, 1 << 20);
    for (Index blocks = 1; blocks <= most_blocks; ++blocks) {
        const Index period = 1 + (q.steps - 1) / blocks;
        const double bytes = static_cast<double>((q.steps - 1) / period) * static_cast<double>(q.state) +
                             static_cast<double>(period - 1) * static_cast<double>(q.tape);
        if (bytes <= static_cast<double>(q.room)) return period;
    }
    return 0;
}

/// Segments within segments, as few levels as fit; nothing if none do.
std::optional<ScheduleOptions> segments_within(const Question& q) {
    for (Index levels = 1; levels <= 6; ++levels) {
        SegmentsOptions options;
        options.steps = q.steps;
        options.levels = levels;
        options.segments = levels == 1 ? best_segments(q.steps, q.state, q.tape)
                                       : static_cast<Index>(std::ceil(std::pow(static_cast<double>(q.steps),
                                                                               1.0 / static_cast<double>(levels + 1))));
        if (segments_peak(options, q.state, q.tape) - q.tape > q.room) continue;
        ScheduleOptions o;
        o.family = "segments";
        o.steps = q.steps;
        o.segments = options.segments;
        o.depth = levels;
        return o;
    }
    return std::nullopt;
}

/// The period of the least time among the shortest that the disk has room for and its multiples by powers of two.
Index two_level_period(const Question& q, Index disk, Index extra_slots) {
    Index best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (Index period = 1 + (q.steps - 1) / disk; period <= q.steps; period *= 2) {
        const TwoLevelCounts counts = two_level_counts({.period = period, .extra_slots = extra_slots}, q.steps);
        const double time = static_cast<double>(counts.advances) * q.prices.advance +
                            static_cast<double>(counts.disk_writes) * q.prices.disk_write +
                            static_cast<double>(counts.disk_reads) * q.prices.disk_read +
                            static_cast<double>(counts.ram_writes) * q.prices.ram_write +
                            static_cast<double>(counts.ram_reads) * q.prices.ram_read;
        if (time >= least) continue;
        least = time;
        best = period;
    }
    return best;
}

/// One schedule of every family that the limits leave room for.
std::vector<ScheduleOptions> families_for(const Question& q) {
    std::vector<ScheduleOptions> all;
    const auto add = [&](const char* family) -> ScheduleOptions& {
        ScheduleOptions o;
        o.family = family;
        if (!is_open_ended(family)) o.steps = q.steps;
        return all.emplace_back(std::move(o));
    };
    add("store_all");
    if (q.room < 0) return all;  // nothing is limited: nothing can be better
    if (const Index period = period_within(q); period > 0) add("periodic").period = period;
    if (std::optional<ScheduleOptions> nested = segments_within(q)) all.push_back(std::move(*nested));
    const Index slots = q.room / q.state;
    const Index ram = std::min({slots, q.steps, Index{std::numeric_limits<std::int32_t>::max()}});
    if (ram >= 1) {
        add("revolve").slots = ram;
        ScheduleOptions& mixed = add("mixed");
        mixed.slots = ram;
        mixed.tape_units = (q.tape + q.state - 1) / q.state;
        mixed.restart = q.restart;
        add("online").slots = ram;
    }
    if (q.disk_slots == 0 || ram < 1) return all;
    const Index disk = std::min({q.disk_slots, q.steps, Index{std::numeric_limits<std::int32_t>::max()}});
    const Level first{Tier::ram, ram, q.prices.ram_write, q.prices.ram_read};
    const Level second{Tier::disk, disk, q.prices.disk_write, q.prices.disk_read};
    ScheduleOptions& stages = add("multistage");
    stages.levels = {first, second};
    stages.advance_cost = q.prices.advance;
    stages.reverse_cost = q.prices.record + q.prices.reverse;
    add("tiered_revolve").levels = {{Tier::ram, ram}, {Tier::disk, disk}};
    ScheduleOptions& two = add("two_level");
    two.period = two_level_period(q, disk, ram);
    two.slots = ram;
    if (first.write == 0.0 && first.read == 0.0) {
        ScheduleOptions& periodic = add("periodic_disk");
        periodic.levels = {{Tier::ram, ram}, {Tier::disk, -1, second.write, second.read}};
        periodic.advance_cost = stages.advance_cost;
        periodic.reverse_cost = stages.reverse_cost;
    }
    return all;
}

/// Whether the schedule is planned in some seconds: the tables of two families take steps^2 times slots additions.
bool is_quick(const ScheduleOptions& o) {
    constexpr double most_additions = 3e10;
    const double square = static_cast<double>(o.steps) * static_cast<double>(o.steps);
    if (o.family == "mixed") {
        MixedOptions options;
        options.steps = o.steps;
        options.units = o.slots;
        options.tape_units = o.tape_units;
        options.restart = o.restart;
        return options.problem().empty() &&
               (mixed_table_bytes(options) == 0 || square * static_cast<double>(o.slots) <= most_additions);
    }
    if (o.family == "multistage") {
        double slots = 0.0;
        bool prices = false;
        for (const Level& level : o.levels) {
            slots += static_cast<double>(std::min(level.slots < 0 ? o.steps : level.slots, o.steps));
            prices = prices || (level.tier == Tier::ram && (level.write != 0.0 || level.read != 0.0));
        }
        return (o.levels.back().slots < 0 && !prices) || square * slots <= most_additions;
    }
    return true;
}

/// What is foretold of one schedule without playing it; nothing if there is no formula for it here.
std::optional<ChainCandidate> by_formula(const ScheduleOptions& o, const Question& q) {
    if (q.prices.ram_write != 0.0 || q.prices.ram_read != 0.0) return std::nullopt;
    ChainCandidate c;
    const auto account = [&](std::size_t at, Index states, Index tapes) {
        c.slots[at] = states + tapes;
        c.bytes[at] = states * q.state + tapes * q.tape;
    };
    if (o.family == "store_all") {
        account(0, 0, q.steps - 1);
    } else if (o.family == "periodic") {
        // The last block stands on all kept states, the one below it on one less and its own tapes.
        const Index states = (q.steps - 1) / o.period, last = q.steps - states * o.period;
        c.advances = states * o.period;
        account(0, states, last - 1);
        if (states > 0 && (states - 1) * q.state + (o.period - 1) * q.tape > c.bytes[0])
            account(0, states - 1, o.period - 1);
    } else if (o.family == "revolve") {
        c.advances = revolve_advances(q.steps, o.slots);
        account(0, std::min(o.slots, q.steps - 1), 0);
    } else if (o.family == "tiered_revolve") {
        const TieredRevolveCounts counts =
            tiered_revolve_counts({.steps = q.steps, .ram_slots = o.levels[0].slots, .disk_slots = o.levels[1].slots});
        c.advances = counts.advances;
        c.writes[1] = counts.disk_writes;
        c.reads[1] = counts.disk_reads;
        account(0, std::count(counts.tiers.begin(), counts.tiers.end(), Tier::ram), 0);
        account(1, std::count(counts.tiers.begin(), counts.tiers.end(), Tier::disk), 0);
    } else if (o.family == "periodic_disk") {
        const PeriodicDiskCounts counts = periodic_disk_counts({.steps = q.steps,
                                                                .ram_slots = o.levels[0].slots,
                                                                .write = o.levels[1].write,
                                                                .read = o.levels[1].read,
                                                                .advance = o.advance_cost,
                                                                .reverse = o.reverse_cost});
        c.advances = counts.advances;
        c.writes[1] = counts.disk_writes;
        c.reads[1] = counts.disk_reads;
        account(0, std::min({o.levels[0].slots, counts.period - 1, q.steps - 1}), 0);
        account(1, counts.disk_writes, 0);
    } else {
        return std::nullopt;
    }
    c.time = static_cast<double>(c.advances) * q.prices.advance +
             static_cast<double>(q.steps) * (q.prices.record + q.prices.reverse) +
             static_cast<double>(c.writes[1]) * q.prices.disk_write +
             static_cast<double>(c.reads[1]) * q.prices.disk_read;
    c.fits = q.room < 0 || c.bytes[0] <= q.room;
    return c;
}

ChainCandidate by_play(const ScheduleOptions& options, const Question& q) {
    ChainCandidate c;
    const Play play = predict(options, q.steps, machine_for(q));
    c.advances = play.advances;
    c.time = play.cost;
    for (const auto& [k, tier] : {std::pair{0, Tier::ram}, std::pair{1, Tier::disk}}) {
        const auto t = static_cast<std::size_t>(tier), at = static_cast<std::size_t>(k);
        c.slots[at] = play.peak_slots[t];
        c.bytes[at] = play.peak_bytes[t];
        c.writes[at] = play.writes[t];
        c.reads[at] = play.reads[t];
    }
    c.counted = true;
    c.fits = q.memory >= 0 ? play.peak_total <= q.memory : q.room < 0 || c.bytes[0] <= q.room;
    return c;
}

/// Nothing, and why, for those that take too long.
std::optional<ChainCandidate> foretold(const ScheduleOptions& options, const Question& q, std::string& left_out) {
    const auto without = [&](const char* why) {
        left_out += fmt::format("{}{} ({})", left_out.empty() ? "" : ", ", options.family, why);
        return std::nullopt;
    };
    if (!is_quick(options)) return without("its tables take too long");
    std::optional<ChainCandidate> c;
    if (q.steps <= longest_play)
        c = by_play(options, q);
    else if (c = by_formula(options, q); !c)
        return without("too long to play");
    c->schedule = options;
    c->recorded = q.steps;
    c->fits = c->fits && c->slots[1] <= q.disk_slots;
    return c;
}

/// Best first: those that fit, by time, then by bytes; store_all stays for comparison.
std::vector<ChainCandidate> candidates_for(const Question& q, const std::string& wanted) {
    std::vector<ScheduleOptions> families = families_for(q);
    if (!wanted.empty()) {
        std::string names;
        for (const ScheduleOptions& o : families) names += (names.empty() ? "" : ", ") + o.family;
        std::erase_if(families, [&](const ScheduleOptions& o) { return o.family != wanted; });
        if (families.empty())
            throw InvalidArgument(
                fmt::format("--schedule: within these limits there are: {}; got '{}'", names, wanted));
    }
    std::vector<ChainCandidate> all;
    std::string left_out;
    for (const ScheduleOptions& options : families)
        if (std::optional<ChainCandidate> c = foretold(options, q, left_out)) all.push_back(std::move(*c));
    if (!left_out.empty() && !all.empty()) warn({"left out: " + left_out});
    if (all.empty()) throw NoPlan(fmt::format("nothing was planned; left out: {}", left_out));
    const auto fits = [](const ChainCandidate& c) { return c.fits; };
    if (std::none_of(all.begin(), all.end(), fits)) {
        std::string least;
        if (q.memory >= 0)
            least = fmt::format("; with one slot {} ({} bytes) are needed, offered {} ({} bytes)",
                                bytes_in_words(q.state + q.working()), q.state + q.working(), bytes_in_words(q.memory),
                                q.memory);
        throw NoPlan(fmt::format("no schedule{} of {} steps fits within these limits{}",
                                 wanted.empty() ? "" : " " + wanted, q.steps, least));
    }
    std::erase_if(all, [&](const ChainCandidate& c) { return !c.fits && c.schedule.family != "store_all"; });
    std::stable_sort(all.begin(), all.end(), [](const ChainCandidate& a, const ChainCandidate& b) {
        if (a.fits != b.fits) return a.fits;
        return a.time != b.time ? a.time < b.time : a.bytes[0] + a.bytes[1] < b.bytes[0] + b.bytes[1];
    });
    return all;
}

}  // namespace

int plan_chain(const ChainArguments& arguments, bool json) {
    const Question q = question_from(arguments);
    const std::vector<ChainCandidate> all = candidates_for(q, arguments.schedule);
    const ChainCandidate& best = all.front();
    if (!arguments.plot.empty() || arguments.actions) {
        const std::unique_ptr<Schedule> schedule = make_schedule(best.schedule);
        // An open-ended stream is shown as it is for a chain that knows its end one link ahead.
        Ended stream(*schedule, q.steps, is_open_ended(best.schedule.family) ? Ending::ahead : Ending::closed);
        if (!arguments.plot.empty())
            write_durable(arguments.plot,
                          plot(stream, q.steps, fmt::format("{} steps: {}", q.steps, in_words(best.schedule))));
        if (arguments.actions) {
            for (Action a = stream.next(); a.verb != Verb::done; a = stream.next())
                fmt::print("{}\n", json ? as_json(a) : to_string(a));
            return 0;
        }
    }
    fmt::print("{}", json ? as_json(all, q.steps) : as_text(all, q.steps, q.bytes));
    return 0;
}

}  // namespace backsweep::cli
