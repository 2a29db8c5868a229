// SPDX-License-Identifier: MIT
#include "backsweep/schedule/online.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "schedule/emit.hpp"
#include "schedule/online_policy.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace backsweep {
namespace {

constexpr Index longest_chain = Index{1} << 62;

constexpr Slot ram(Index index) {
    return {Tier::ram, static_cast<std::int32_t>(index)};
}

/// The steps in the slots, and what becomes of them when the chain goes on.
template <class Policy>
class Shelf {
public:
    explicit Shelf(std::int32_t slots)
        : slots_(slots),
          held_(std::make_unique_for_overwrite<Index[]>(static_cast<std::size_t>(slots))),
          policy_(slots) {}

    void restart() noexcept {
        used_ = 0;
        policy_.restart();
    }

    /// The slot for x_j, for j = 0, 1, 2, ... in turn, or -1; `replaced` is then the step that lay there, or -1.
    std::int32_t decide(Index j, Index& replaced) {
        replaced = -1;
        if (used_ < slots_) {
            held_[used_] = j;
            return used_++;
        }
        if (slots_ == 1) return -1;
        const std::int32_t slot = policy_.decide(j, {held_.get(), static_cast<std::size_t>(slots_)});
        if (slot >= 0) replaced = std::exchange(held_[slot], j);
        return slot;
    }

    std::vector<Stored> stored() const {
        std::vector<Stored> states;
        for (std::int32_t slot = 0; slot < used_; ++slot) states.push_back({held_[slot], ram(slot)});
        return states;
    }

private:
    std::int32_t slots_;
    std::int32_t used_ = 0;
    std::unique_ptr<Index[]> held_;
    Policy policy_;
};

template <class Policy>
class Online final : public Schedule {
public:
    Online(std::int32_t slots, bool needs_state) : slots_(slots), needs_state_(needs_state), shelf_(slots) { rewind(); }

    Action next() override {
        if (waits_ != 0) return waiting();
        if (!completion_) {
            if (at_ < sweep_end_) return step();
            close();
        }
        const Action action = completion_->next();
        if (action.verb != Verb::turn || !records_) return action;
        records_ = false;
        waits_ = turn_waits | reverse_waits;
        return emit::record(steps_ - 1);
    }

    std::size_t fill(std::span<Action> out) override {
        if (completion_ && waits_ == 0 && !records_) return completion_->fill(out);
        std::size_t written = 0;
        while (written < out.size() && (written == 0 || waits_ != 0)) out[written++] = next();
        return written;
    }

    void rewind() override {
        shelf_.restart();
        completion_.reset();
        waits_ = 0;
        at_ = 0;
        steps_ = -1;
        sweep_end_ = longest_chain;
        records_ = false;
    }

    bool open() const noexcept override { return steps_ < 0; }

    void finish(Index steps) override {
        const std::string call = "finish(" + std::to_string(steps) + "): ";
        if (steps_ >= 0) {
            throw ScheduleError(call + "it was told already that the chain ends after " + std::to_string(steps_) +
                                " links; call finish once a sweep");
        }
        const bool waits = (waits_ & advance_waits) != 0;  // it was not given out yet
        const Index reached = at_ - (waits ? 1 : 0);
        const Index least = waits || at_ == 0 ? reached : reached - 1;
        if (steps < least || steps > longest_chain) {
            throw InvalidArgument(call + "the chain has come to x_" + std::to_string(reached) +
                                  ", so it ends after that many links, " + (least < reached ? "one less, " : "") +
                                  "or later, 2^62 at most; give the number of links");
        }
        steps_ = steps;
        records_ = steps > reached && !needs_state_;
        sweep_end_ = records_ ? steps - 1 : steps;
        if (sweep_end_ > reached) return;
        waits_ &= ~advance_waits;
        at_ = sweep_end_;
    }

private:
    static constexpr unsigned save_waits = 1, advance_waits = 2, turn_waits = 4, reverse_waits = 8;

    /// The first action of a step; the others wait.
    Action step() {
        Index replaced = -1;
        const std::int32_t slot = shelf_.decide(at_, replaced);
        ++at_;
        if (slot < 0) return emit::advance(at_ - 1, at_);
        if (replaced < 0) {
            waits_ = advance_waits;
            return emit::save(at_ - 1, ram(slot));
        }
        saved_ = at_ - 1;
        slot_ = slot;
        waits_ = save_waits | advance_waits;
        return emit::drop_state(replaced, ram(slot));
    }

    /// The next of what waits: made here, for an action that is read just after it was stored is slow to load.
    Action waiting() {
        const unsigned next = waits_ & (~waits_ + 1);
        waits_ ^= next;
        switch (next) {
            case save_waits:
                return emit::save(saved_, ram(slot_));
            case advance_waits:
                return emit::advance(at_ - 1, at_);
            case turn_waits:
                return emit::turn(steps_);
            default:
                return emit::reverse(steps_ - 1);
        }
    }

    void close() {
        const std::vector<Stored> stored = shelf_.stored();
        if (stored.empty()) {  // no link, or one that is recorded
            completion_ = revolve(steps_, 1);
            records_ = false;
        } else {
            completion_ = complete(stored, slots_, sweep_end_);
        }
    }

    std::int32_t slots_;
    bool needs_state_;
    Shelf<Policy> shelf_;
    std::unique_ptr<Schedule> completion_;
    unsigned waits_ = 0;     // the lowest first
    Index saved_ = 0;        // the state whose save waits,
    std::int32_t slot_ = 0;  // and its slot
    Index at_ = 0;           // where the advances lead that were made up so far
    Index steps_ = -1;       // -1 until it is told
    Index sweep_end_ = 0;    // links run before the completion is planned
    bool records_ = false;
};

/// Calls make(Policy type) with valid options; a refusal of memory becomes words.
template <class Make>
auto with_policy(const OnlineOptions& options, const Make& make) {
    const std::size_t bytes = online_table_bytes(options);
    try {
        const auto slots = static_cast<std::int32_t>(options.slots);
        return options.policy == OnlinePolicy::greedy ? make.template operator()<Greedy>(slots)
                                                      : make.template operator()<WangMoin>(slots);
    } catch (const std::bad_alloc&) {
        throw InvalidArgument("online: " + std::to_string(options.slots) + " slots want " + std::to_string(bytes) +
                              " bytes for their bookkeeping, which the system refuses; give fewer slots");
    }
}

}  // namespace

std::string OnlineOptions::problem() const {
    constexpr Index most = std::numeric_limits<std::int32_t>::max();
    if (slots < 1 || slots > most) {
        return "online: slots must lie in 1 ... 2^31 - 1 (x_0 takes one), came " + std::to_string(slots) +
               "; give the number of states that may be kept";
    }
    if (policy != OnlinePolicy::greedy && policy != OnlinePolicy::wang_moin) {
        return "online: policy " + std::to_string(static_cast<int>(policy)) + " is not known; give greedy or wang_moin";
    }
    return {};
}

std::size_t online_table_bytes(const OnlineOptions& options) {
    if (const std::string problem = options.problem(); !problem.empty()) throw InvalidArgument(problem);
    const std::size_t policy =
        options.policy == OnlinePolicy::greedy ? Greedy::bytes(options.slots) : WangMoin::bytes(options.slots);
    return static_cast<std::size_t>(options.slots) * sizeof(Index) + policy;
}

std::unique_ptr<Schedule> online(const OnlineOptions& options) {
    return with_policy(options, [&]<class Policy>(std::int32_t slots) -> std::unique_ptr<Schedule> {
        return std::make_unique<Online<Policy>>(slots, options.needs_state);
    });
}

Index online_advances(const OnlineOptions& options, Index steps, bool ahead) {
    if (steps < 0) {
        throw InvalidArgument("online: steps must be 0 or more, came " + std::to_string(steps) +
                              "; give the number of links of the chain");
    }
    return with_policy(options, [&]<class Policy>(std::int32_t slots) -> Index {
        const Index advanced = ahead && !options.needs_state && steps > 0 ? steps - 1 : steps;
        Shelf<Policy> shelf(slots);
        Index replaced = -1;
        for (Index j = 0; j < advanced; ++j) shelf.decide(j, replaced);
        return advanced == 0 ? 0 : advanced + completion(shelf.stored(), slots, advanced).advances;
    });
}

}  // namespace backsweep
