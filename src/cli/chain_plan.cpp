// SPDX-License-Identifier: MIT
#include "cli/chain_plan.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/plan/plan.hpp"
#include "backsweep/schedule/ended.hpp"
#include "backsweep/schedule/mixed.hpp"
#include "backsweep/schedule/prediction.hpp"
#include "backsweep/schedule/revolve.hpp"
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
        *found->second = value;
    }
    return prices;
}

/// What a chain may use.
struct Question {
    Index steps = 0;
    bool bytes = false;  ///< sizes were given; else a state and a tape count 1
    std::int64_t state = 1, tape = 1;
    std::int64_t ram = -1;   ///< all that is alive but the adjoint, or (counts) what slots hold; -1: no limit
    std::int64_t room = -1;  ///< of that, what slots may hold
    Index disk_slots = 0;    ///< -1: no limit
    bool restart = false;
    Prices prices;
};

std::int64_t size_from(const char* argument, const std::string& words) {
    const std::int64_t bytes = bytes_from(words);
    if (bytes < 1)
        throw InvalidArgument(fmt::format("{} wants a size such as 4096 or \"2 GiB\", got '{}'", argument, words));
    return bytes;
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
        q.ram = q.room = a.slots == 0 ? -1 : a.slots;
        q.disk_slots = a.disk_slots;
        return q;
    }
    q.state = size_from("--state-bytes", a.state_bytes);
    q.tape = a.tape_bytes.empty() ? q.state : size_from("--tape-bytes", a.tape_bytes);
    if (a.disk_slots != 0 && !a.disk.empty())
        throw InvalidArgument("--disk and --disk-slots are two words for one limit; give one");
    q.disk_slots = a.disk.empty() ? a.disk_slots : size_from("--disk", a.disk) / q.state;
    if (a.memory.empty()) {
        if (a.slots == 0)
            throw InvalidArgument("--state-bytes has no effect without a limit; give --memory or --slots");
        q.room = a.slots * q.state;
        q.ram = q.room + std::max(2 * q.state, q.state + q.tape);
        return q;
    }
    if (a.slots != 0) throw InvalidArgument("--memory and --slots are two words for one limit; give one");
    q.ram = size_from("--memory", a.memory);
    // At work: a state and the one that an advance reaches, or a state and the tape that is made.
    q.room = q.ram - std::max(2 * q.state, q.state + q.tape);
    if (q.room < q.state)
        throw NoPlan(fmt::format(
            "--memory: needs {} ({} bytes) for one slot, the working state and the working tape, "
            "offered {} ({} bytes)",
            bytes_in_words(q.ram - q.room + q.state), q.ram - q.room + q.state, bytes_in_words(q.ram), q.ram));
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

/// The largest period whose states and tapes fit: the fewest advances. 0 if none fits.
Index period_within(const Question& q) {
    if (q.room < 0) return q.steps;
    const auto fits = [&](Index period) {
        const Index states = (q.steps - 1) / period, tapes = std::min(period, q.steps) - 1;
        return static_cast<double>(states) * static_cast<double>(q.state) +
                   static_cast<double>(tapes) * static_cast<double>(q.tape) <=
               static_cast<double>(q.room);
    };
    // Bytes fall and then rise with the period: the last one that fits lies behind the least, near sqrt(n state /
    // tape).
    const double balance =
        std::sqrt(static_cast<double>(q.steps) * static_cast<double>(q.state) / static_cast<double>(q.tape));
    Index least = std::clamp<Index>(static_cast<Index>(balance), 1, q.steps);
    for (Index near = std::max<Index>(1, least - 2); near <= std::min(q.steps, least + 2) && !fits(least); ++near)
        if (fits(near)) least = near;
    if (!fits(least)) return 0;
    Index most = q.steps;
    while (least < most) {
        const Index middle = least + (most - least + 1) / 2;
        (fits(middle) ? least : most) = fits(middle) ? middle : middle - 1;
    }
    return least;
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
    const Index slots = q.room / q.state;
    const Index ram = std::min<Index>(slots, std::numeric_limits<std::int32_t>::max());
    if (ram >= 1) {
        add("revolve").slots = ram;
        ScheduleOptions& mixed = add("mixed");
        mixed.slots = ram;
        mixed.tape_units = (q.tape + q.state - 1) / q.state;
        mixed.restart = q.restart;
        add("online").slots = ram;
    }
    if (q.disk_slots == 0) return all;
    const Level first{Tier::ram, ram, q.prices.ram_write, q.prices.ram_read};
    const Level second{Tier::disk, q.disk_slots, q.prices.disk_write, q.prices.disk_read};
    ScheduleOptions& stages = add("multistage");
    stages.levels = {first, second};
    stages.advance_cost = q.prices.advance;
    stages.reverse_cost = q.prices.record + q.prices.reverse;
    if (q.disk_slots > 0) add("tiered_revolve").levels = {{Tier::ram, ram}, {Tier::disk, q.disk_slots}};
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

/// What is foretold of one schedule; nothing for those that cannot be made, or are too long to play.
std::optional<ChainCandidate> foretold(const ScheduleOptions& options, const Question& q) {
    ChainCandidate c;
    c.schedule = options;
    if (!is_quick(options)) return std::nullopt;
    const auto account = [&](Index ram_states, Index ram_tapes) {
        c.slots[0] = ram_states + ram_tapes;
        c.bytes[0] = ram_states * q.state + ram_tapes * q.tape;
    };
    c.recorded = q.steps;
    if (q.steps > longest_play) {
        if (q.prices.ram_write != 0.0 || q.prices.ram_read != 0.0) return std::nullopt;
        if (options.family == "store_all") {
            account(0, q.steps - 1);
        } else if (options.family == "periodic") {
            const Index states = (q.steps - 1) / options.period;
            c.advances = states * options.period;
            account(states, options.period - 1);
        } else if (options.family == "revolve") {
            c.advances = revolve_advances(q.steps, options.slots);
            account(std::min(options.slots, q.steps - 1), 0);
        } else {
            return std::nullopt;
        }
        c.time = static_cast<double>(c.advances) * q.prices.advance +
                 static_cast<double>(c.recorded) * (q.prices.record + q.prices.reverse);
    } else {
        const Play play = predict(options, q.steps, machine_for(q));
        c.advances = play.advances;
        c.recorded = play.recorded;
        c.time = play.cost;
        for (const auto& [k, tier] : {std::pair{0, Tier::ram}, std::pair{1, Tier::disk}}) {
            const auto t = static_cast<std::size_t>(tier), at = static_cast<std::size_t>(k);
            c.slots[at] = play.peak_slots[t];
            c.bytes[at] = play.peak_bytes[t];
            c.writes[at] = play.writes[t];
            c.reads[at] = play.reads[t];
        }
        c.counted = true;
    }
    c.fits = (q.room < 0 || c.bytes[0] <= q.room) && (q.disk_slots < 0 || c.slots[1] <= q.disk_slots);
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
    for (const ScheduleOptions& options : families)
        if (std::optional<ChainCandidate> c = foretold(options, q)) all.push_back(std::move(*c));
    std::erase_if(all, [&](const ChainCandidate& c) { return !c.fits && c.schedule.family != "store_all"; });
    std::stable_sort(all.begin(), all.end(), [](const ChainCandidate& a, const ChainCandidate& b) {
        if (a.fits != b.fits) return a.fits;
        return a.time != b.time ? a.time < b.time : a.bytes[0] + a.bytes[1] < b.bytes[0] + b.bytes[1];
    });
    if (all.empty() || (!all.front().fits && wanted.empty()))
        throw NoPlan(fmt::format("no schedule of {} steps fits; offer more memory or slots", q.steps));
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
