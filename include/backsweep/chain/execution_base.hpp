// What an Execution knows without its chain: the stream of actions, what stands where, what the slots hold, and all
// messages. Not a template, so it is compiled once.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/base/range.hpp"
#include "backsweep/chain/commits.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/schedule.hpp"
#include "backsweep/store/store.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
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

/// Is told of an action that was played, and when: seconds of the steady clock.
using Observer = std::function<void(const Action& action, double begin, double end)>;

/// The part of every Execution<C> that does not depend on C.
class BACKSWEEP_API ExecutionBase {
public:
    /// Which store holds the slots of a tier other than RAM; it must outlive the Execution, which empties its slots
    /// when a sweep begins anew and when it goes. Throws InvalidArgument for Tier::ram.
    void use(Tier tier, Store& store);
    /// Bytes that precede a state or tape in the slot of a store.
    static std::int64_t header_bytes() noexcept;

    /// Calls f after every action that did not throw, `turn` and `done` too, and costs one branch an action without one;
    /// stays set for later sweeps, and an empty f ends it. What f throws ends the sweep.
    void observe(Observer f) { observer_ = std::move(f); }

    const Counts& counts() const noexcept { return counts_; }
    /// Whether forward(), resume() or recover() has come to the turn and backward() may follow.
    bool resting() const noexcept { return phase_ == Phase::turned; }

protected:
    static constexpr Index nowhere = -1;
    enum class Phase { forward, turned, done };
    enum class Held : std::uint8_t { nothing, state, tape, lost };  // lost: in a kill

    /// What a slot holds.
    struct Place {
        Held held = Held::nothing;
        Index step = nowhere;
        std::uint64_t bytes = 0;  ///< in a store
        std::uint64_t print = 0;  ///< its fingerprint: in a store, and in verify mode
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
            filled_ = playing().fill(actions_);
            head_ = 0;
            announce_ = has_stores_;
        }
        if (announce_) look_ahead();
        return actions_[head_++];
    }
    /// The action that next() gave last comes again, for these links.
    void again(Range steps) {
        actions_[--head_].steps = steps;
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
    /// For one who keeps no objects: RAM slots are bytes too.
    void use_for_ram(Store& store) { shelf(Tier::ram).store = &store; }
    void put(Slot slot, Index step, std::vector<Blob> x) { place_of(slot) = write(slot, {Held::state, step}, std::move(x)); }

    // Verify mode; what is checked against what, Execution::verify says.
    bool kept(Index step) const noexcept {
        return step >= 0 && static_cast<std::size_t>(step) < prints_.size() && prints_[static_cast<std::size_t>(step)] != 0;
    }
    /// Throws NumericError if the state of `step` had another fingerprint when it was first kept.
    void same_state(Index step, std::uint64_t print);
    /// Throws StoreError if the slot does not have the fingerprint `p.print` any more.
    static void same_slot(Slot slot, const Place& p, std::uint64_t print);

    // Sweeps that survive a kill.
    using Survivors = std::vector<Commits::Survivor>;
    /// What becomes of an action when the stream of a killed sweep is followed again.
    enum class Fate { play, pass, lost };

    /// Where the sweep stands. Every write is durable afterwards.
    Commits::Note settle();
    Survivors on_disk() const;
    /// Whether a slot on disk still holds what the record says; reads it into `x`.
    bool whole(const Commits::Survivor& s, std::vector<Blob> x);
    /// What the caller saves after skip(): into slots that were lost and are empty; index -1: it is not wanted.
    struct Refill {
        Slot start;  ///< x_0
        Slot here;   ///< x_j, for lack of a state so near
    };
    /// The forward sweep goes on: follows the stream without running it up to x_j. What it kept is lost, but for the
    /// survivors.
    Refill skip(Index j, const Survivors& survivors);
    /// The reverse sweep goes on where the note says.
    void turned(const Commits::Note& note, const Survivors& survivors);
    /// Plays what `complete` made of a killed sweep.
    bool completes() const noexcept { return rest_ != nullptr; }
    bool follows() const noexcept { return follows_; }
    /// Of the next action, while follows(). An action that passes is done.
    Fate fate(const Action& a);
    /// Slots that what completes the sweep may use: as many as the schedule has in use at most.
    struct Room {
        Index ram = 0, disk = 0;
    };
    Room room(bool needs_state);
    /// Before complete_rest(): the RAM slot that is to be given x_0, or index -1 if x_0 is there. The lowest state goes
    /// where there is no room.
    Slot room_for_start(Room room);
    /// Verify mode: what the start has that room_for_start() gave a slot.
    void print_start(Slot start, std::uint64_t print) { place_of(start).print = print; }
    /// From now on links [0, end_) are reversed from the states that are there, and from free slots on disk where they
    /// halve the advances.
    void complete_rest(Room room);
    /// Whether the chain's length became known only as it ran.
    bool learned() const noexcept { return learned_; }

    static double seconds() noexcept;
    [[noreturn]] static void fail(const Action& a, const std::string& why);
    [[noreturn]] static void no_bytes();
    static std::string name(Index step) { return step == nowhere ? "nowhere" : std::to_string(step); }

    Index at_ = nowhere;       // where x stands
    Index tape_of_ = nowhere;  // whose tape the working tape is
    Index turn_ = nowhere;
    Index end_ = nowhere;  // links below it are left to reverse; nowhere before the turn
    Phase phase_ = Phase::done;
    Counts counts_;
    Commits commits_;
    Observer observer_;
    bool verify_ = false;

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
    /// Tells the stores what the actions at hand will read.
    void look_ahead();
    Store& store(Slot slot);
    void stopped(Range r);
    void tell(Index length);
    Schedule& playing() noexcept { return rest_ ? *rest_ : *schedule_; }

    static std::string text(const Place& p);
    [[noreturn]] void refuse_place(const Action& a) const;
    [[noreturn]] void refuse_tape(const Action& a) const;
    [[noreturn]] static void refuse_slot(const Action& a, Slot slot, const Place& wanted, const Place& found);

    std::unique_ptr<Schedule> schedule_;
    std::optional<Index> length_;  // of the chain
    std::array<Shelf, 4> shelves_{};
    std::array<Action, 64> actions_{};
    bool has_stores_ = false;
    bool announce_ = false;  // the stores may not have had room for what the actions at hand read
    std::size_t head_ = 0, filled_ = 0;
    std::vector<std::uint64_t> prints_;  // verify: of the states that were kept, by step; 0: none

    std::unique_ptr<Schedule> rest_;  // what completes a killed sweep
    bool learned_ = false;
    bool follows_ = false;  // what a killed sweep has kept may be asked for
    bool tape_lost_ = false;
};

}  // namespace backsweep
