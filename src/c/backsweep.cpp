// The C face of schedules: every call is guarded, and errors become a status and a text.
// SPDX-License-Identifier: MIT
#include "backsweep/c/backsweep.h"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

struct backsweep_schedule {
    std::unique_ptr<backsweep::Schedule> schedule;
};

namespace {

using namespace backsweep;

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
              same(BACKSWEEP_RAM, Tier::ram) && same(BACKSWEEP_DISK, Tier::disk));

/// Fixed, so that telling of an error cannot fail itself.
thread_local std::array<char, 1024> error_text{};

int tell(backsweep_status status, std::string_view text) noexcept {
    const std::size_t size = std::min(text.size(), error_text.size() - 1);
    std::memcpy(error_text.data(), text.data(), size);
    error_text[size] = '\0';
    return status;
}

template <class Body>
int guarded(Body&& body) noexcept {
    try {
        std::forward<Body>(body)();
        return BACKSWEEP_OK;
    } catch (const InvalidArgument& error) {
        return tell(BACKSWEEP_INVALID_ARGUMENT, error.what());
    } catch (const ScheduleError& error) {
        return tell(BACKSWEEP_SCHEDULE_ERROR, error.what());
    } catch (const std::exception& error) {
        return tell(BACKSWEEP_FAILURE, error.what());
    } catch (...) {
        return tell(BACKSWEEP_FAILURE, "an exception of unknown type");
    }
}

Schedule& of(backsweep_schedule* schedule) {
    if (schedule == nullptr) {
        throw InvalidArgument("schedule is NULL; give one that backsweep_schedule_create returned");
    }
    return *schedule->schedule;
}

ScheduleOptions read(const backsweep_schedule_options* given) {
    if (given == nullptr) throw InvalidArgument("options is NULL; give BACKSWEEP_SCHEDULE_OPTIONS_INIT, filled in");
    if (given->size < sizeof(given->size) || given->size > sizeof(backsweep_schedule_options)) {
        throw InvalidArgument("options.size is " + std::to_string(given->size) + ", this library knows " +
                              std::to_string(sizeof(backsweep_schedule_options)) +
                              " bytes; begin with BACKSWEEP_SCHEDULE_OPTIONS_INIT, or take the library that the header "
                              "belongs to");
    }
    // A caller built with an older header gives fewer options; the others keep their defaults.
    backsweep_schedule_options options = BACKSWEEP_SCHEDULE_OPTIONS_INIT;
    std::memcpy(&options, given, given->size);
    ScheduleOptions result;
    if (options.family != nullptr) result.family = options.family;
    result.steps = options.steps;
    result.slots = options.slots;
    result.period = options.period;
    if (options.rule != nullptr) result.rule = options.rule;
    result.loss = options.loss != 0;
    result.needs_state = options.needs_state != 0;
    return result;
}

backsweep_action to_c(const Action& action) noexcept {
    backsweep_action result;
    std::memcpy(&result, &action, sizeof result);
    return result;
}

}  // namespace

backsweep_schedule* backsweep_schedule_create(const backsweep_schedule_options* options) {
    backsweep_schedule* result = nullptr;
    guarded([&] { result = new backsweep_schedule{make_schedule(read(options))}; });
    return result;
}

int backsweep_schedule_next(backsweep_schedule* schedule, backsweep_action* action) {
    return guarded([&] {
        if (action == nullptr) throw InvalidArgument("action is NULL; give room for one backsweep_action");
        *action = to_c(of(schedule).next());
    });
}

int backsweep_schedule_fill(backsweep_schedule* schedule, backsweep_action* actions, size_t capacity, size_t* written) {
    return guarded([&] {
        if (written == nullptr) throw InvalidArgument("written is NULL; give room for the number of actions");
        *written = 0;
        if (actions == nullptr && capacity > 0) {
            throw InvalidArgument("actions is NULL; give room for " + std::to_string(capacity) + " actions");
        }
        std::array<Action, 64> block;
        while (*written < capacity) {
            const std::size_t wanted = std::min(block.size(), capacity - *written);
            const std::size_t came = of(schedule).fill(std::span(block).first(wanted));
            std::transform(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(came), actions + *written, to_c);
            *written += came;
            if (came < wanted || block[came - 1].verb == Verb::done) break;
        }
    });
}

int backsweep_schedule_rewind(backsweep_schedule* schedule) {
    return guarded([&] { of(schedule).rewind(); });
}

int backsweep_schedule_finish(backsweep_schedule* schedule, int64_t steps) {
    return guarded([&] { of(schedule).finish(steps); });
}

void backsweep_schedule_destroy(backsweep_schedule* schedule) {
    delete schedule;
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
