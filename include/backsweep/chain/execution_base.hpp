// What an Execution knows without its chain: the stream of actions, what stands where, what the slots hold, and all
// messages. Not a template, so it is compiled once.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/base/range.hpp"
#include "backsweep/schedule/schedule.hpp"
#include "backsweep/store/store.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace backsweep {

/// What an Execution has done since it last began.
struct Counts {
    Index advances = 0;  ///< links advanced
    Index recorded = 0;  ///< links recorded or taped
    Index reversed = 0;
    Index saves = 0, loads = 0, stows = 0, fetches = 0;  ///< loads: takes and restarts included

    Counts& operator+=(const Counts& o) noexcept {
        advances += o.advances, recorded += o.recorded, reversed += o.reversed;
        saves += o.saves, loads += o.loads, stows += o.stows, fetches += o.fetches;
        return *this;
    }
    friend bool operator==(const Counts&, const Counts&) = default;
};

/// The part of every Execution<C> that does not depend on C.
class BACKSWEEP_API ExecutionBase {
public:
    /// Which store holds the slots of a tier other than RAM; it must outlive the Execution, which empties its slots
    /// when a sweep begins anew and when it goes. Throws InvalidArgument for Tier::ram.
    void use(Tier tier, Store& store);

    const Counts& counts() const noexcept { return counts_; }
    /// Whether forward() or resume() has come to the turn and backward() may follow.
    bool resting() const noexcept { return phase_ == Phase::turned; }

protected:
    static constexpr Index nowhere = -1;
    enum class Phase { forward, turned, done };
    enum class Held : std::uint8_t { nothing, state, tape };

    /// What a slot holds.
    struct Place {
        Held held = Held::nothing;
        Index step = nowhere;
        std::uint64_t bytes = 0;  ///< in a store
    };

    explicit ExecutionBase(std::unique_ptr<Schedule> schedule);
    ExecutionBase(ExecutionBase&&) noexcept = default;
    ExecutionBase& operator=(ExecutionBase&&) noexcept = default;
    ~ExecutionBase() = default;

    void replace(std::unique_ptr<Schedule> schedule);
    /// Back to the first action of the schedule, over a chain of that length; all slots are empty.
    void begin(std::optional<Index> length);
    const Action& next() {
        if (head_ == filled_) {
            filled_ = schedule_->fill(actions_);
            head_ = 0;
        }
        return actions_[head_++];
    }

    // What an action asks for; each throws ScheduleError where it is not so.
    void stand(const Action& a) const {
        if (at_ != a.steps.first || (length_ && a.steps.last > *length_)) refuse_place(a);
    }
    void has_tape(const Action& a) const {
        if (tape_of_ != a.steps.first) refuse_tape(a);
    }
    void no_tape(const Action& a) const {
        if (tape_of_ != nowhere) refuse_tape(a);
    }
    /// Reverses fall one by one; a chain that `needs_state` has x before the link.
    void may_reverse(const Action& a, bool needs_state) const;
    void may_seed() const;
    void at_turn(const char* who) const;
    /// The chain says that it reached `link` of r.
    void reached(Index link, Range r) {
        at_ = link;
        if (link != r.last) stopped(r);
    }
    bool awaits_length() const noexcept { return !length_ && schedule_->open(); }
    /// What the chain says of its length while the schedule awaits it.
    void learn(std::optional<Index> length) {
        if (length) tell(*length);
    }
    void turn(const Action& a) {
        turn_ = end_ = a.steps.last;
        phase_ = Phase::turned;
    }
    void finish(const Action& a) {
        if (end_ > 0) fail(a, "links [0, " + name(end_) + ") are not reversed yet");
        phase_ = Phase::done;
    }

    Place& empty_place(const Action& a, Slot slot) {
        Place& p = place_of(slot);
        if (p.held != Held::nothing) refuse_slot(a, slot, {}, p);
        return p;
    }
    Place& full_place(const Action& a, Slot slot, Held wanted, Index step) {
        Place& p = place_of(slot);
        if (p.held != wanted || p.step != step) refuse_slot(a, slot, {wanted, step}, p);
        return p;
    }
    /// Writes the content behind a header that names the step; a write that fails leaves the slot empty. Answers `p`
    /// with its bytes.
    Place write(Slot to, Place p, std::vector<Blob> content);
    /// Throws StoreError if the slot holds something else than `p`, or damaged bytes.
    void read(Slot from, const Place& p, std::vector<Blob> content);
    void erase(Slot slot) noexcept { shelf(slot.tier).store->erase(slot.index); }

    [[noreturn]] static void fail(const Action& a, const std::string& why);
    [[noreturn]] static void no_bytes();
    static std::string name(Index step) { return step == nowhere ? "nowhere" : std::to_string(step); }

    Index at_ = nowhere;       // where x stands
    Index tape_of_ = nowhere;  // whose tape the working tape is
    Index turn_ = nowhere;
    Index end_ = nowhere;  // links below it are left to reverse; nowhere before the turn
    Phase phase_ = Phase::done;
    Counts counts_;

private:
    /// The slots of a tier. What they hold in a store goes with them.
    struct Shelf {
        Store* store = nullptr;  // null for RAM
        std::vector<Place> places;

        Shelf() = default;
        Shelf(Shelf&& other) noexcept { *this = std::move(other); }
        Shelf& operator=(Shelf&& other) noexcept {
            std::swap(store, other.store);
            places.swap(other.places);
            return *this;
        }
        ~Shelf() { clear(); }
        void clear() noexcept;
    };
    Shelf& shelf(Tier tier) noexcept { return shelves_[static_cast<std::size_t>(tier)]; }
    Place& place_of(Slot slot) {
        std::vector<Place>& places = shelf(slot.tier).places;
        const auto i = static_cast<std::size_t>(slot.index);  // a negative index becomes a huge one
        if (i >= places.size()) grow(places, slot);
        return places[i];
    }
    static void grow(std::vector<Place>& places, Slot slot);
    Store& store(Slot slot);
    void stopped(Range r);
    void tell(Index length);

    static std::string text(const Place& p);
    [[noreturn]] void refuse_place(const Action& a) const;
    [[noreturn]] void refuse_tape(const Action& a) const;
    [[noreturn]] static void refuse_slot(const Action& a, Slot slot, const Place& wanted, const Place& found);

    std::unique_ptr<Schedule> schedule_;
    std::optional<Index> length_;  // of the chain
    std::array<Shelf, 4> shelves_{};
    std::array<Action, 16> actions_{};
    std::size_t head_ = 0, filled_ = 0;
};

}  // namespace backsweep
