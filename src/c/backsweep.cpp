// The C face of schedules: every call is guarded, and errors become a status and a text.
// SPDX-License-Identifier: MIT
#include "backsweep/c/backsweep.h"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/schedule.hpp"
#include "c/face.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

struct backsweep_schedule {
    std::unique_ptr<backsweep::Schedule> schedule;
    backsweep::Index steps = 0;
    bool needs_state = false;
    bool reverses = true;
    bool open_ended = false;
    std::vector<backsweep::Stored> stored{};
    bool begun = false;    // an action has been handed out since the beginning
    bool running = false;  // backsweep_run plays it
};

namespace backsweep::face {

namespace {

/// Fixed, so that telling of an error cannot fail itself.
thread_local std::array<char, 1024> error_text{};

}  // namespace

int tell(int status, std::string_view text) noexcept {
    const std::size_t size = std::min(text.size(), error_text.size() - 1);
    std::memcpy(error_text.data(), text.data(), size);
    error_text[size] = '\0';
    return status;
}

}  // namespace backsweep::face

namespace {

using namespace backsweep;
using namespace backsweep::face;

static_assert(sizeof(backsweep_action) == sizeof(Action) && alignof(backsweep_action) == alignof(Action));
static_assert(offsetof(backsweep_action, verb) == offsetof(Action, verb));
static_assert(offsetof(backsweep_action, from) == offsetof(Action, from));
static_assert(offsetof(backsweep_action, to) == offsetof(Action, to));
static_assert(offsetof(backsweep_action, first) == offsetof(Action, steps) + offsetof(Range, first));
static_assert(offsetof(backsweep_action, last) == offsetof(Action, steps) + offsetof(Range, last));
static_assert(offsetof(backsweep_slot, tier) == offsetof(Slot, tier));
static_assert(offsetof(backsweep_slot, index) == offsetof(Slot, index));

constexpr bool same(backsweep_verb a, Verb b) {
    return static_cast<int>(a) == static_cast<int>(b);
}
constexpr bool same(backsweep_tier a, Tier b) {
    return static_cast<int>(a) == static_cast<int>(b);
}
static_assert(same(BACKSWEEP_ADVANCE, Verb::advance) && same(BACKSWEEP_RECORD, Verb::record) &&
              same(BACKSWEEP_TAPE, Verb::tape) && same(BACKSWEEP_REVERSE, Verb::reverse) &&
              same(BACKSWEEP_SAVE, Verb::save) && same(BACKSWEEP_LOAD, Verb::load) &&
              same(BACKSWEEP_TAKE, Verb::take) && same(BACKSWEEP_RESTART, Verb::restart) &&
              same(BACKSWEEP_STOW, Verb::stow) && same(BACKSWEEP_FETCH, Verb::fetch) &&
              same(BACKSWEEP_DROP, Verb::drop) && same(BACKSWEEP_MOVE, Verb::move) &&
              same(BACKSWEEP_TURN, Verb::turn) && same(BACKSWEEP_DONE, Verb::done));
static_assert(same(BACKSWEEP_DEVICE, Tier::device) && same(BACKSWEEP_PINNED, Tier::pinned) &&
              same(BACKSWEEP_RAM, Tier::ram) && same(BACKSWEEP_DISK, Tier::disk) && tier_count == 4);

constexpr bool same(backsweep_ending a, Ending b) {
    return static_cast<int>(a) == static_cast<int>(b);
}
static_assert(same(BACKSWEEP_CLOSED, Ending::closed) && same(BACKSWEEP_AHEAD, Ending::ahead) &&
              same(BACKSWEEP_MET, Ending::met) && same(BACKSWEEP_LATE, Ending::late));

/// The schedule of a handle that no run plays.
backsweep_schedule& idle(backsweep_schedule* schedule) {
    given(schedule, "schedule", "one that backsweep_create or backsweep_complete returned");
    if (schedule->running) {
        throw ScheduleError("backsweep_run plays this schedule; a callback may call backsweep_finish and nothing else");
    }
    return *schedule;
}

/// A handle is marked as running for as long as this lives.
class Running {
public:
    explicit Running(backsweep_schedule& schedule) : schedule_(schedule) { schedule_.running = true; }
    ~Running() { schedule_.running = false; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

private:
    backsweep_schedule& schedule_;
};

void need_price(double value, const std::string& name) {
    if (!(value >= 0.0) || std::isinf(value)) {
        refuse("machine." + name + " must be finite and 0 or more, came " + std::to_string(value));
    }
}

/// One value for each of `count` links and `more`; none where there is no array, or a count that is refused later.
template <class Value>
std::vector<Value> values(const Value* from, Index count, const std::string& name, std::size_t more = 0) {
    if (from == nullptr || count < 0) return {};
    return array(from, static_cast<std::size_t>(count) + more, name, std::identity());
}

Tier to_tier(std::int32_t tier, const std::string& name) {
    if (tier < BACKSWEEP_DEVICE || tier > BACKSWEEP_DISK) {
        refuse(name + " is on tier " + std::to_string(tier) + "; tiers are 0 to 3");
    }
    return static_cast<Tier>(tier);
}

ScheduleOptions to_cpp(const backsweep_options& options) {
    ScheduleOptions result;
    if (options.family != nullptr) result.family = options.family;
    result.steps = options.steps;
    result.slots = options.slots;
    result.period = options.period;
    if (options.rule != nullptr) result.rule = options.rule;
    result.loss = !flag(options.no_loss, "options.no_loss");
    result.needs_state = flag(options.needs_state, "options.needs_state");
    if (options.first != nullptr) result.first = options.first;
    result.align = options.align;
    if (options.ram_slots != 0) result.ram_slots = options.ram_slots;
    result.segments = options.segments;
    result.depth = options.depth;
    result.tape_units = options.tape_units;
    result.restart = flag(options.restart, "options.restart");
    result.levels = array(options.levels, options.level_count, "options.levels", [](const backsweep_level& each) {
        return Level{to_tier(each.tier, "a level"), each.slots, each.write, each.read};
    });
    if (options.advance_cost != 0.0) result.advance_cost = options.advance_cost;
    if (options.reverse_cost != 0.0) result.reverse_cost = options.reverse_cost;
    result.costs = values(options.costs, options.steps, "options.costs");
    result.sizes = values(options.sizes, options.steps, "options.sizes");
    result.chain.forward_time = values(options.forward_time, options.steps, "options.forward_time");
    result.chain.backward_time = values(options.backward_time, options.steps, "options.backward_time");
    result.chain.state_bytes = values(options.state_bytes, options.steps, "options.state_bytes", 1);
    result.chain.tape_bytes = values(options.tape_bytes, options.steps, "options.tape_bytes");
    result.chain.forward_overhead = values(options.forward_overhead, options.steps, "options.forward_overhead");
    result.chain.backward_overhead = values(options.backward_overhead, options.steps, "options.backward_overhead");
    result.budget = options.budget;
    return result;
}

Stored to_cpp(const backsweep_stored& stored) {
    const std::string name = "x_" + std::to_string(stored.step);
    if (stored.slot.index < 0) {
        refuse(name + " is said to be in slot " + std::to_string(stored.slot.index) + "; slots begin at 0");
    }
    return {stored.step, {to_tier(stored.slot.tier, name), stored.slot.index}};
}

backsweep_action to_c(const Action& action) noexcept {
    backsweep_action result;
    std::memcpy(&result, &action, sizeof result);
    return result;
}

/// A figure for every index of [0, count): the array's, or one for all; empty if that is 0. Each is checked by `need`.
template <class Value, class Need>
std::function<Value(Index)> figures(Value all, const Value* each, Index count, const std::string& name, Need&& need) {
    need(all, name);
    if (each == nullptr) {
        if (all == 0) return {};
        return [all](Index) { return all; };
    }
    for (Index i = 0; i < count; ++i) need(each[i], name + " of " + std::to_string(i));
    return [each](Index i) { return each[i]; };
}

Machine to_cpp(const backsweep_machine& given, const backsweep_schedule& schedule, Index steps) {
    Machine result;
    result.needs_state = schedule.needs_state;
    result.reverses = schedule.reverses;
    result.ending = static_cast<Ending>(given.ending);
    result.costs.advance = figures(given.advance, given.advance_of_link, steps, "advance", need_price);
    result.costs.record = figures(given.record, given.record_of_link, steps, "record", need_price);
    result.costs.reverse = figures(given.reverse, given.reverse_of_link, steps, "reverse", need_price);
    for (std::size_t tier = 0; tier < tier_count; ++tier) {
        need_price(result.costs.write[tier] = given.write[tier], "write");
        need_price(result.costs.read[tier] = given.read[tier], "read");
    }
    result.costs.uniform =
        given.advance_of_link == nullptr && given.record_of_link == nullptr && given.reverse_of_link == nullptr;
    result.sizes.uniform = given.bytes_of_state == nullptr && given.bytes_of_tape == nullptr;
    // Bytes add up without overflow, even if every slot in use holds the largest.
    const Index slots = std::min(steps, Index{1} << 31) + 2;
    const std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4 / slots;
    const auto need_size = [most](std::int64_t bytes, const std::string& name) {
        if (bytes >= 0 && bytes <= most) return;
        refuse("machine." + name + " must be from 0 to " + std::to_string(most) +
               ", so that the slots' bytes add up, came " + std::to_string(bytes));
    };
    result.sizes.state = figures(given.state_bytes, given.bytes_of_state, steps + 1, "state_bytes", need_size);
    result.sizes.tape = figures(given.tape_bytes, given.bytes_of_tape, steps, "tape_bytes", need_size);
    return result;
}

template <std::size_t Size>
void copy(const std::array<Index, Size>& from, std::int64_t (&to)[Size]) {
    std::copy(from.begin(), from.end(), to);
}

/// The callbacks by verb.
std::array<backsweep_callback, static_cast<std::size_t>(Verb::done)> by_verb(const backsweep_callbacks& given) {
    std::array calls{given.advance, given.record, given.tape,  given.reverse, given.save, given.load, given.take,
                     given.restart, given.stow,   given.fetch, given.drop,    given.move, given.turn};
    std::replace(calls.begin(), calls.end(), backsweep_callback{nullptr}, given.otherwise);
    return calls;
}

/// Of a long stream only so much is looked through for verbs without a callback; it has met them all by then.
constexpr int rehearsed_actions = 100000;

/// Plays from the beginning; the schedule is back there afterwards, after an error too.
template <class Body>
auto rehearse(backsweep_schedule& handle, Body&& body) {
    const auto rewind = [&] {
        handle.schedule->rewind();
        handle.begun = false;
    };
    rewind();
    try {
        auto result = body();
        rewind();
        return result;
    } catch (...) {
        rewind();
        throw;
    }
}

}  // namespace

backsweep_schedule* backsweep_create(const backsweep_options* options) {
    backsweep_schedule* result = nullptr;
    guarded([&] {
        const ScheduleOptions made_from = to_cpp(read(options, "options"));
        result = new backsweep_schedule{make_schedule(made_from), made_from.steps, made_from.needs_state,
                                        made_from.family != "forward_only", is_open_ended(made_from.family)};
    });
    return result;
}

backsweep_schedule* backsweep_complete(const backsweep_stored* stored, size_t count, int64_t slots, int64_t steps) {
    backsweep_schedule* result = nullptr;
    guarded([&] {
        auto states = array(stored, count, "stored", [](const backsweep_stored& each) { return to_cpp(each); });
        auto schedule = complete(states, slots, steps);
        result = new backsweep_schedule{std::move(schedule), steps, false, true, false, std::move(states)};
    });
    return result;
}

int backsweep_next(backsweep_schedule* schedule, backsweep_action* action) {
    return guarded([&] {
        given(action, "action", "room for one backsweep_action");
        backsweep_schedule& handle = idle(schedule);
        handle.begun = true;
        *action = to_c(handle.schedule->next());
    });
}

int backsweep_fill(backsweep_schedule* schedule, backsweep_action* actions, size_t capacity, size_t* written) {
    return guarded([&] {
        *given(written, "written", "room for the number of actions") = 0;
        if (capacity > 0) given(actions, "actions", "room for as many as `capacity` says");
        if (capacity > PTRDIFF_MAX / sizeof(backsweep_action)) {
            refuse("capacity is " + std::to_string(capacity) +
                   ", more actions than memory can hold; give the number of actions that there is room for");
        }
        backsweep_schedule& handle = idle(schedule);
        std::array<Action, 64> block;
        while (*written < capacity) {
            handle.begun = true;
            const std::size_t wanted = std::min(block.size(), capacity - *written);
            const std::size_t came = handle.schedule->fill(std::span(block).first(wanted));
            std::transform(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(came), actions + *written, to_c);
            *written += came;
            const Action& last = block[came - 1];
            if (came < wanted || last.verb == Verb::done || handle.open_ended) break;
        }
    });
}

int backsweep_run(backsweep_schedule* schedule, const backsweep_callbacks* callbacks, void* user) {
    return guarded([&]() -> int {
        const auto calls = by_verb(read(callbacks, "callbacks"));
        backsweep_schedule& handle = idle(schedule);
        const auto call_for = [&](const Action& action) {
            const backsweep_callback call = calls[static_cast<std::size_t>(action.verb)];
            if (call != nullptr) return call;
            refuse(std::string("callbacks.") + to_string(action.verb) + " is NULL, and the schedule has '" +
                   to_string(action) + "'; give it, or callbacks.otherwise");
        };
        if (!handle.begun && !handle.open_ended && std::find(calls.begin(), calls.end(), nullptr) != calls.end()) {
            rehearse(handle, [&] {
                for (int k = 0; k < rehearsed_actions; ++k) {
                    const Action action = handle.schedule->next();
                    if (action.verb == Verb::done) break;
                    call_for(action);
                }
                return true;
            });
        }
        const Running running(handle);
        for (;;) {
            handle.begun = true;
            const Action action = handle.schedule->next();
            if (action.verb == Verb::done) return BACKSWEEP_OK;
            const backsweep_action told = to_c(action);
            if (const int answer = call_for(action)(&told, user); answer != 0) {
                return tell(BACKSWEEP_STOPPED, "the callback for '" + to_string(action) + "' answered " +
                                                   std::to_string(answer) + "; the run has stopped there");
            }
        }
    });
}

int backsweep_finish(backsweep_schedule* schedule, int64_t steps) {
    return guarded([&] {
        given(schedule, "schedule", "one that backsweep_create returned")->schedule->finish(steps);
        schedule->begun = true;
    });
}

int backsweep_rewind(backsweep_schedule* schedule) {
    return guarded([&] {
        backsweep_schedule& handle = idle(schedule);
        handle.schedule->rewind();
        handle.begun = false;
    });
}

void backsweep_destroy(backsweep_schedule* schedule) {
    if (schedule == nullptr) return;
    guarded([&] { delete &idle(schedule); });
}

int backsweep_predict(backsweep_schedule* schedule, const backsweep_machine* machine,
                      backsweep_prediction* prediction) {
    return guarded([&] {
        given(prediction, "prediction", "BACKSWEEP_PREDICTION_INIT");
        const std::size_t size = size_from(prediction->size, sizeof(backsweep_prediction), "prediction");
        backsweep_schedule& handle = idle(schedule);
        const backsweep_machine assumed = machine != nullptr ? read(machine, "machine") : backsweep_machine{};
        if (assumed.ending < BACKSWEEP_CLOSED || assumed.ending > BACKSWEEP_LATE) {
            refuse("machine.ending is " + std::to_string(assumed.ending) + "; give 0 (closed), 1 (ahead), 2 (met) or 3 (late)");
        }
        const bool open = assumed.ending != BACKSWEEP_CLOSED;
        if (open ? assumed.steps < 0 : assumed.steps != 0) {
            refuse("machine.steps is " + std::to_string(assumed.steps) +
                   "; give the links of the chain where machine.ending is ahead, met or late, else leave it 0");
        }
        if (handle.open_ended && !open)
            refuse("this schedule is open-ended; give machine.ending (ahead, met or late) and machine.steps");
        const Index steps = open ? assumed.steps : handle.steps;
        if (steps > Index{1} << 62)
            refuse("a chain of " + std::to_string(steps) + " links; at most 2^62 are predicted");
        const Machine plays_on = to_cpp(assumed, handle, steps);
        const Play play = rehearse(handle, [&] { return referee(*handle.schedule, steps, handle.stored, plays_on); });

        backsweep_prediction result = BACKSWEEP_PREDICTION_INIT;
        result.size = size;
        result.actions = play.actions;
        result.advances = play.advances;
        result.recorded = play.recorded;
        result.reversed = play.reversed;
        copy(play.writes, result.writes);
        copy(play.reads, result.reads);
        copy(play.peak_slots, result.peak_slots);
        copy(play.peak_bytes, result.peak_bytes);
        result.time = play.cost;
        std::memset(prediction, 0, size);
        std::memcpy(prediction, &result, std::min(size, sizeof result));
    });
}

const char* backsweep_error_text(void) {
    return error_text.data();
}

const char* backsweep_verb_name(int32_t verb) {
    return to_string(static_cast<Verb>(verb));
}

const char* backsweep_version(void) {
    return BACKSWEEP_VERSION;
}
