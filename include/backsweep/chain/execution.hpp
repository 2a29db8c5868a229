// THE executor: plays a schedule's actions over a chain and keeps states and tapes in slots.
// The only interpreter of actions besides the referee. RAM slots are typed objects whose memory is used again;
// other tiers are stores of bytes.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/base/ledger.hpp"
#include "backsweep/chain/chain.hpp"
#include "backsweep/schedule/schedule.hpp"
#include "backsweep/store/store.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
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

/// One forward sweep and its reversal, any number of times. The chain must outlive it; one thread at a time.
/// After an exception the object may be used again: the next forward() begins anew.
template <Chain C>
class Execution {
public:
    using State = typename C::State;
    using Tape = typename C::Tape;
    using Adjoint = typename C::Adjoint;

    /// Throws InvalidArgument without a schedule. For a chain that `needs_state` the schedule must be made for it.
    Execution(C& chain, std::unique_ptr<Schedule> schedule) : chain_(&chain), schedule_(std::move(schedule)) {
        if (!schedule_)
            throw InvalidArgument("an Execution needs a schedule, but got none; make one with make_schedule");
        static_assert(!needs_state<C> || Keeps<C>, "a chain that needs_state must offer keep(range, state, tape)");
    }

    /// Plays another schedule from now on. RAM slots give their memory back: another schedule may number them
    /// otherwise.
    void follow(std::unique_ptr<Schedule> schedule) {
        if (!schedule)
            throw InvalidArgument("an Execution needs a schedule, but got none; make one with make_schedule");
        schedule_ = std::move(schedule);
        phase_ = Phase::done;
        fresh_ = false;
        states_.clear();
        tapes_.clear();
    }

    /// Which store holds the slots of a tier other than RAM; it must outlive the Execution, which empties its slots
    /// when a sweep begins anew and when it goes. Throws InvalidArgument for Tier::ram.
    void use(Tier tier, Store& store) {
        if (tier == Tier::ram)
            throw InvalidArgument(
                "RAM slots are objects of the Execution and take no store; give it for device, pinned or disk");
        shelf(tier).clear();
        shelf(tier).store = &store;
    }

    /// Calls f(x_link) once a sweep, when the forward sweep first stands at `link`; an advance across it is split
    /// there, which changes no bit. A link that the sweep does not reach is not shown. Stays set for later sweeps; an
    /// empty f ends it. f may itself call watch() for a later link: so a callback sees every link once, however often
    /// it is replayed. Throws InvalidArgument if link < 0.
    void watch(Index link, std::function<void(const State&)> f) {
        if (f && link < 0) throw InvalidArgument("a watched link is numbered from 0, got " + std::to_string(link));
        watched_ = link;
        watcher_ = std::move(f);
        watching_ = watcher_ && phase_ == Phase::forward && turn_ == nowhere && link > at_;
    }

    /// Plays from x_0 to the turn (or to the end of a schedule that has none).
    void forward() {
        begin();
        x_ = State{};  // not two of them while initial() makes its own
        start(chain_->initial());
    }
    void forward(State x0) {
        begin();
        start(std::move(x0));
    }

    /// Puts a surviving state into a slot before a schedule made by `complete` is played by resume().
    void place(Slot slot, Index step, const State& x) {
        if (!fresh_) begin();
        fresh_ = true;
        save(slot, step, x);
    }
    /// Plays a schedule of `complete` up to its turn; it may turn before the end of the chain. Nothing is watched.
    void resume() {
        if (!fresh_) throw ScheduleError("resume() wants surviving states, but none was placed; call place() first");
        fresh_ = false;
        watching_ = false;
        play_until_turn();
    }

    /// Seeds the adjoint from the last state and plays to the end. Throws ScheduleError where that state is not at
    /// hand.
    void backward() {
        at_turn("backward()");
        if (at_ != turn_)
            throw ScheduleError("backward() cannot seed: the last state is not at hand; give the terminal adjoint");
        if (length_ && *length_ != turn_)
            throw ScheduleError("backward() cannot seed: the schedule turns at link " + name(turn_) +
                                ", but the chain has " + name(*length_) +
                                " links; make the schedule for all of them, or give the adjoint at the turn");
        chain_->seed(std::as_const(x_), a_);
        play_rest();
    }
    /// Takes the terminal adjoint as given and plays to the end.
    void backward(Adjoint a) {
        at_turn("backward(adjoint)");
        a_ = std::move(a);
        play_rest();
    }

    /// The last state while resting at the turn, or after a schedule without one.
    const State& state() const noexcept { return x_; }
    /// Mutable, so that a caller may move the memory of a state out that is not needed any more.
    State& state() noexcept { return x_; }
    /// The adjoint at x_0 after backward().
    const Adjoint& adjoint() const noexcept { return a_; }
    Adjoint& adjoint() noexcept { return a_; }
    const Counts& counts() const noexcept { return counts_; }
    bool resting() const noexcept { return phase_ == Phase::turned; }

private:
    enum class Phase { forward, turned, done };
    enum class Held : std::uint8_t { nothing, state, tape };
    /// What precedes the bytes of a state or tape in a store.
    struct Header {
        std::uint64_t magic = 0x62616b7377656570;  // "baksweep"
        std::int64_t step = 0;
        std::uint64_t held = 0;
        std::uint64_t bytes = 0;
        std::uint64_t fingerprint = 0;
    };
    static constexpr Index nowhere = -1;

    struct Place {
        Held held = Held::nothing;
        Index step = nowhere;
        std::uint64_t bytes = 0;  // in a store
    };
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

        void clear() noexcept {
            for (std::size_t i = 0; i < places.size(); ++i) {
                if (store && places[i].held != Held::nothing) store->erase(static_cast<std::int32_t>(i));
                places[i] = {};
            }
        }
    };
    Shelf& shelf(Tier tier) noexcept { return shelves_[static_cast<std::size_t>(tier)]; }

    void begin() {
        phase_ = Phase::done;  // until all is ready
        schedule_->rewind();
        for (Shelf& s : shelves_) s.clear();
        counts_ = {};
        length_ = chain_->length();
        at_ = tape_of_ = turn_ = end_ = nowhere;
        head_ = filled_ = 0;
        watching_ = watched_ >= 0 && watcher_;
        phase_ = Phase::forward;
        fresh_ = false;
    }

    void start(State&& x0) {
        x_ = std::move(x0);
        at_ = 0;
        play_until_turn();
    }

    const Action& next() {
        if (head_ == filled_) {
            filled_ = schedule_->fill(actions_);
            head_ = 0;
        }
        return actions_[head_++];
    }

    void play_until_turn() {
        while (phase_ == Phase::forward) play(next());
    }
    void play_rest() {
        phase_ = Phase::forward;
        while (phase_ != Phase::done) play(next());
    }
    void at_turn(const char* who) const {
        if (phase_ != Phase::turned)
            throw ScheduleError(std::string(who) + " wants an Execution that rests at the turn; call forward() first" +
                                (phase_ == Phase::done ? " (this schedule may have no reverse sweep)" : ""));
    }

    void play(const Action& a) {
        switch (a.verb) {
            case Verb::advance: stand(a), advance(a.steps); break;
            case Verb::record:
                stand(a), no_tape(a);
                show();
                reached(chain_->record(a.steps, x_, tape_), a.steps);
                if (at_ == a.steps.last) tape_of_ = a.steps.first, ++counts_.recorded;
                show();
                break;
            case Verb::tape:
                stand(a), no_tape(a);
                if constexpr (Keeps<C>) {
                    chain_->keep(a.steps, x_, tape_);
                    at_ = needs_state<C> ? a.steps.first : nowhere;
                } else {
                    reached(chain_->record(a.steps, x_, tape_), a.steps);
                    at_ = nowhere;
                }
                tape_of_ = a.steps.first, ++counts_.recorded;
                break;
            case Verb::reverse:
                if (a.steps.last != end_)
                    fail(a, end_ == nowhere ? "`turn` comes first" : "reverses fall one by one from x_" + name(end_));
                has_tape(a);
                if (needs_state<C> && at_ != a.steps.first)
                    fail(a, "this chain's reverse reads the state before the link, but x is at " + name(at_) +
                                "; make the schedule with needs_state");
                chain_->reverse(a.steps, x_, tape_, a_);
                tape_of_ = at_ = nowhere;
                end_ = a.steps.first, ++counts_.reversed;
                break;
            case Verb::save: stand(a), save(a.to, a.steps.first, x_), ++counts_.saves; break;
            case Verb::load: load(a, false), ++counts_.loads; break;
            case Verb::take: load(a, true), ++counts_.loads; break;
            case Verb::restart: restart(a), ++counts_.loads; break;
            case Verb::stow: stow(a), ++counts_.stows; break;
            case Verb::fetch: fetch(a), ++counts_.fetches; break;
            case Verb::drop: drop(a); break;
            case Verb::move: move(a); break;
            case Verb::turn:
                show();
                watching_ = false;
                turn_ = end_ = a.steps.last;
                phase_ = Phase::turned;
                break;
            case Verb::done:
                show();
                if (end_ > 0) fail(a, "links [0, " + name(end_) + ") are not reversed yet");
                phase_ = Phase::done;
                break;
        }
    }

    void advance(Range r) {
        show();
        while (watching_ && watched_ > r.first && watched_ < r.last) {
            const Index stop = watched_;
            run({r.first, stop});
            if (at_ != stop) return;
            show();
            r.first = stop;
        }
        run(r);
        show();
    }
    void run(Range r) {
        reached(chain_->advance(r, x_), r);
        counts_.advances += at_ - r.first;
    }
    void reached(Index link, Range r) {
        if (link < r.first || link > r.last)
            throw ScheduleError("the chain was sent over links [" + name(r.first) + ", " + name(r.last) +
                                ") and says it reached " + std::to_string(link) +
                                "; advance and record answer the link they reached");
        at_ = link;
        if (link != r.last) schedule_->finish(link);
    }
    void show() {
        if (!watching_ || at_ != watched_) return;
        watching_ = false;
        const auto f = watcher_;  // it may be replaced while it runs
        f(std::as_const(x_));
    }

    Place& place_of(Slot slot) {
        if (slot.index < 0) throw ScheduleError("a slot is numbered from 0, got " + std::to_string(slot.index));
        std::vector<Place>& places = shelf(slot.tier).places;
        const auto i = static_cast<std::size_t>(slot.index);
        if (places.size() <= i) places.resize(i + 1);
        return places[i];
    }
    Place& empty_place(const Action& a, Slot slot) {
        Place& p = place_of(slot);
        if (p.held != Held::nothing) fail(a, to_string(slot) + " still holds " + held(p) + "; drop it first");
        return p;
    }
    Place& full_place(const Action& a, Slot slot, Held wanted, Index step) {
        Place& p = place_of(slot);
        if (p.held != wanted || p.step != step)
            fail(a, to_string(slot) + " should hold " + held({wanted, step}) + ", but holds " + held(p));
        return p;
    }

    // RAM slots: objects; their memory stays with the slot.
    State& state_in(std::int32_t index) {
        while (states_.size() <= static_cast<std::size_t>(index)) {
            states_.emplace_back();
            if constexpr (requires(State& x) { x.rebook(Kind::slots); }) states_.back().rebook(Kind::slots);
        }
        return states_[static_cast<std::size_t>(index)];
    }
    Tape& tape_in(std::int32_t index) {
        if (tapes_.size() <= static_cast<std::size_t>(index)) tapes_.resize(static_cast<std::size_t>(index) + 1);
        return tapes_[static_cast<std::size_t>(index)];
    }

    void save(Slot to, Index step, const State& x) {
        Place& p = empty_place({Verb::save, {}, to, 0, {step, step}}, to);
        if (to.tier == Tier::ram) {
            state_in(to.index) = x;
            p = {Held::state, step};
        } else {
            p = write(to, {Held::state, step}, const_cast<State&>(x));
        }
    }
    void load(const Action& a, bool last) {
        Place& p = full_place(a, a.from, Held::state, a.steps.first);
        if (a.from.tier != Tier::ram) {
            read_state(a.from, p, x_);
            if (last) shelf(a.from.tier).store->erase(a.from.index);
        } else if (last) {
            using std::swap;
            swap(x_, state_in(a.from.index));
        } else {
            x_ = state_in(a.from.index);
        }
        if (last) p = {};
        at_ = a.steps.first;
    }
    void restart(const Action& a) {
        if constexpr (Restarts<C>) {
            if (a.from.tier != Tier::ram) fail(a, "a state is taken out of a tape in RAM only; fetch the tape first");
            full_place(a, a.from, Held::tape, a.steps.first - 1);
            chain_->restart(tape_in(a.from.index), x_);
            at_ = a.steps.first;
        } else {
            fail(a, "this chain offers no restart(tape, state)");
        }
    }
    void stow(const Action& a) {
        has_tape(a);
        Place& p = empty_place(a, a.to);
        if (a.to.tier == Tier::ram) {
            using std::swap;
            swap(tape_, tape_in(a.to.index));
            p = {Held::tape, tape_of_};
        } else {
            p = write(a.to, {Held::tape, tape_of_}, tape_);
        }
        tape_of_ = nowhere;
    }
    void fetch(const Action& a) {
        no_tape(a);
        Place& p = full_place(a, a.from, Held::tape, a.steps.first);
        if (a.from.tier == Tier::ram) {
            using std::swap;
            swap(tape_, tape_in(a.from.index));
        } else {
            read(a.from, p, tape_);
            shelf(a.from.tier).store->erase(a.from.index);
        }
        tape_of_ = p.step;
        p = {};
    }
    void drop(const Action& a) {
        if (a.from.index < 0) {
            has_tape(a);
            tape_of_ = nowhere;
            return;
        }
        Place& p = full_place(a, a.from, a.steps.empty() ? Held::state : Held::tape, a.steps.first);
        if (a.from.tier != Tier::ram) shelf(a.from.tier).store->erase(a.from.index);
        p = {};
    }
    void move(const Action& a) {
        if (!a.steps.empty()) fail(a, "only states are moved between tiers");
        if (a.from.tier == a.to.tier) fail(a, "a move changes the tier");
        Place& from = full_place(a, a.from, Held::state, a.steps.first);
        Place& to = empty_place(a, a.to);
        if (a.from.tier == Tier::ram) {
            to = write(a.to, {Held::state, from.step}, state_in(a.from.index));
        } else if (a.to.tier == Tier::ram) {
            read_state(a.from, from, state_in(a.to.index));
            to = {Held::state, from.step};
        } else {
            State x = chain_->initial();
            read_state(a.from, from, x);
            to = write(a.to, {Held::state, from.step}, x);
        }
        if (a.from.tier != Tier::ram) shelf(a.from.tier).store->erase(a.from.index);
        from = {};
    }

    // Other tiers: bytes behind a header that names the step.
    template <class T>
    static std::vector<Blob> bytes_of(T& object) {
        if constexpr (requires { blobs(object); })
            return blobs(object);
        else
            throw ScheduleError(
                "tiers other than RAM need the bytes of states and tapes; write `std::vector<Blob> blobs(T&)` beside "
                "the type");
    }
    static Header header_of(const Place& p, std::span<const Blob> content) {
        Header h;
        h.step = p.step;
        h.held = static_cast<std::uint64_t>(p.held);
        h.bytes = total_size(content);
        h.fingerprint = fingerprint(content);
        return h;
    }
    Store& store(Slot slot) {
        Store* s = shelf(slot.tier).store;
        if (!s)
            throw ScheduleError(std::string("the schedule uses tier ") + to_string(slot.tier) +
                                ", but no store was given for it; call use(tier, store)");
        return *s;
    }
    template <class T>
    Place write(Slot to, Place p, T& object) {
        Store& s = store(to);
        std::vector<Blob> all = bytes_of(object);
        Header header = header_of(p, all);
        all.insert(all.begin(), {reinterpret_cast<std::byte*>(&header), sizeof header});
        try {
            s.write(to.index, all);
        } catch (...) {
            s.erase(to.index);
            throw;
        }
        p.bytes = header.bytes;
        return p;
    }
    template <class T>
    void read(Slot from, const Place& p, T& object) {
        std::vector<Blob> all = bytes_of(object);
        Header found;
        all.insert(all.begin(), {reinterpret_cast<std::byte*>(&found), sizeof found});
        store(from).read(from.index, all);
        const Header wanted = header_of(p, std::span(all).subspan(1));
        const std::string who = to_string(from) + " should hold " + held(p);
        if (found.magic != wanted.magic)
            throw StoreError(who + ", but its header was not written by Backsweep; does somebody else write there?");
        if (found.step != wanted.step || found.held != wanted.held)
            throw StoreError(who + ", but its header says " + held({static_cast<Held>(found.held), found.step}) +
                             "; does somebody else write there?");
        if (found.bytes != wanted.bytes || found.fingerprint != wanted.fingerprint)
            throw StoreError(
                who + ", but the content is damaged: its fingerprint is not the one in its header; check the medium");
    }
    /// `x` may have any shape: keep() and reverse() leave the working state unspecified.
    void read_state(Slot from, const Place& p, State& x) {
        if (total_size(bytes_of(x)) != p.bytes) x = chain_->initial();
        read(from, p, x);
    }

    void stand(const Action& a) const {
        if (at_ != a.steps.first) fail(a, "x is at " + name(at_));
        if (length_ && a.steps.last > *length_)
            fail(a, "the chain has " + name(*length_) + " links; make the schedule for that many steps");
    }
    void has_tape(const Action& a) const {
        if (tape_of_ != a.steps.first) fail(a, "the working tape belongs to link " + name(tape_of_));
    }
    void no_tape(const Action& a) const {
        if (tape_of_ != nowhere)
            fail(a, "the working tape of link " + name(tape_of_) + " would be lost; reverse, stow or drop it first");
    }
    [[noreturn]] static void fail(const Action& a, const std::string& why) {
        throw ScheduleError("illegal action " + to_string(a) + ": " + why);
    }
    static std::string name(Index step) { return step == nowhere ? "nowhere" : std::to_string(step); }
    static std::string held(const Place& p) {
        switch (p.held) {
            case Held::nothing: return "nothing";
            case Held::state: return "the state of step " + name(p.step);
            case Held::tape: return "the tape of link " + name(p.step);
        }
        return "something else";
    }

    C* chain_;
    std::unique_ptr<Schedule> schedule_;
    State x_{};
    Tape tape_{};
    Adjoint a_{};
    std::deque<State> states_;  // RAM slots; growth moves none of them
    std::deque<Tape> tapes_;
    std::array<Shelf, 4> shelves_{};
    std::optional<Index> length_;
    Index at_ = nowhere;       // where x_ stands
    Index tape_of_ = nowhere;  // whose tape tape_ is
    Index turn_ = nowhere;
    Index end_ = nowhere;  // links below it are left to reverse; nowhere before the turn
    Index watched_ = nowhere;
    std::function<void(const State&)> watcher_;
    bool watching_ = false;
    bool fresh_ = false;
    Phase phase_ = Phase::done;
    Counts counts_;
    std::array<Action, 16> actions_{};
    std::size_t head_ = 0, filled_ = 0;
};

}  // namespace backsweep
