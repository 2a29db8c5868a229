// THE executor: plays a schedule's actions over a chain and keeps states and tapes in slots.
// The only interpreter of actions besides the referee. RAM slots are typed objects whose memory is used again;
// other tiers are stores of bytes.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/base/ledger.hpp"
#include "backsweep/chain/chain.hpp"
#include "backsweep/chain/execution_base.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace backsweep {

/// One forward sweep and its reversal, any number of times. The chain must outlive it; one thread at a time.
/// After an exception the object may be used again: the next forward() begins anew.
template <Chain C>
class Execution : public ExecutionBase {
public:
    using State = typename C::State;
    using Tape = typename C::Tape;
    using Adjoint = typename C::Adjoint;

    /// Throws InvalidArgument without a schedule. For a chain that `needs_state` the schedule must be made for it.
    Execution(C& chain, std::unique_ptr<Schedule> schedule) : ExecutionBase(std::move(schedule)), chain_(&chain) {
        static_assert(!needs_state<C> || Keeps<C>, "a chain that needs_state must offer keep(range, state, tape)");
    }

    /// Plays another schedule from now on. RAM slots give their memory back: another schedule may number them
    /// otherwise. Throws InvalidArgument without a schedule.
    void follow(std::unique_ptr<Schedule> schedule) {
        replace(std::move(schedule));
        fresh_ = false;
        states_.clear();
        tapes_.clear();
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

    /// Verify mode: a state or tape in a RAM slot must have the bits with which it was kept when it is read again, else
    /// StoreError; and whenever a link ends, or a tape gives the state, at a step whose state was kept earlier in the
    /// sweep, that state must have the bits of the first time, else NumericError: both name the step. Where the chain
    /// offers no keep(), every kept state but x_0 is so reached again. Costs a pass over each of these, and 8 bytes a
    /// link and slot, which no prediction has. Throws InvalidArgument for states or tapes without blobs().
    void verify(bool on) {
        if constexpr (!has_bytes<State> || !has_bytes<Tape>) {
            if (on)
                throw InvalidArgument(
                    "verify mode needs the bytes of states and tapes; write `std::vector<Blob> blobs(T&)` beside the type");
        }
        verify_ = on;
        fresh_ = false;
        phase_ = Phase::done;
    }

    /// Plays from x_0 to the turn (or to the end of a schedule that has none).
    void forward() {
        begin();
        remakes_ = true;
        if constexpr (requires(const C& chain, State& x) { chain.initial(x); }) {
            chain_->initial(x_);
        } else {
            x_ = State{};  // not two of them while initial() makes its own
            x_ = chain_->initial();
        }
        at_ = 0;
        play_until_turn();
    }
    void forward(State x0) {
        begin();
        start(std::move(x0));
    }

    /// From now on a sweep that recover() begins writes down where it stands, so that another process can go on after a
    /// kill. The journal must outlive the Execution; a store for Tier::disk should be kept too, or only x_0 survives.
    /// Throws InvalidArgument: options.problem().
    void commit_to(Journal& journal, CommitOptions options)
        requires Sums<C>
    {
        static_assert(has_bytes<State> && has_bytes<Adjoint>,
                      "commits need the bytes of states and adjoints: write `std::vector<Blob> blobs(T&)` beside the type");
        commits_ = Commits(journal, std::move(options));
    }
    /// In place of forward(): goes on where sweep number `sweep` was when its process was killed, or begins it at x_0.
    /// backward() then plays the rest; a terminal adjoint is not wanted any more where the turn lies behind. The program
    /// must be what it was (chain, schedule, parameters, data, options): the journal's run and x_0 are compared. Nothing
    /// that lies before the place is watched again. The record of the end stands until the journal is cleared, which the
    /// caller does who has made use of the gradient. Throws as forward(), ScheduleError without commit_to(), and
    /// InvalidArgument if the record is of a chain of other sizes.
    Recovery recover(std::uint64_t sweep)
        requires Sums<C>
    {
        if (!commits_.has_journal())
            throw ScheduleError("recover() wants a journal, but none was given; call commit_to(journal, options)");
        begin();
        remakes_ = true;
        x_ = State{};
        x_ = chain_->initial();
        commits_.begin(sweep, fingerprint(bytes_of(x_)));
        Recovery found;
        Survivors survivors;
        const std::optional<Commits::Note> note = commits_.find(survivors, found.text);
        if (!note) {
            found.text = "sweep " + std::to_string(sweep) + " begins: " + found.text;
            at_ = 0;
            play_until_turn();
            return found;
        }
        std::erase_if(survivors, [&](const Commits::Survivor& s) {
            shape(s.step, x_);
            return !whole(s, bytes_of(x_));
        });
        found.states = static_cast<Index>(survivors.size());
        const bool back = note->end != nowhere;
        Refill refill;
        if (!back) refill = skip(note->at, survivors);
        if (refill.start.index >= 0) {  // before x is read: not two states at a time
            x_ = State{};
            x_ = chain_->initial();
            save(refill.start, 0, x_);
        }
        if (note->at != nowhere) shape(note->at, x_);
        if (back) {
            if constexpr (requires { chain_->shape(note->end, a_); })
                chain_->shape(note->end, a_);
            else
                chain_->seed(std::as_const(x_), a_);
        }
        commits_.read(*note, note->at != nowhere ? bytes_of(x_) : std::vector<Blob>{},
                      back ? bytes_of(a_) : std::vector<Blob>{}, sums());
        found.text = "sweep " + std::to_string(sweep) + " goes on ";
        if (back) {
            found.from = Recovery::From::reverse;
            found.at = note->end;
            found.text += "with " + std::to_string(note->end) + " links left to reverse, ";
            turned(*note, survivors);
            watching_ = false;
            has_adjoint_ = true;
            const Room slots = room(needs_state<C>);
            const bool there = std::any_of(survivors.begin(), survivors.end(), [](const auto& s) { return s.step == 0; });
            if (note->at != nowhere && note->at < end_ && slots.ram >= (there ? 1 : 2)) save({Tier::ram, 0}, note->at, x_);
            complete_rest(slots);
        } else {
            found.from = Recovery::From::forward;
            found.at = note->at;
            found.text += "in its forward sweep at link " + std::to_string(note->at) + ", ";
            if (refill.here.index >= 0) save(refill.here, note->at, x_);
            watching_ = watching_ && watched_ > note->at;
            play_until_turn();
        }
        found.text += "with " + std::to_string(found.states) + " states on disk";
        return found;
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
        play_until_turn();
    }

    /// Seeds the adjoint from the last state, which is unspecified from then on, and plays to the end. Throws
    /// ScheduleError where that state is not at hand.
    void backward() {
        if (has_adjoint_) {
            at_turn("backward()");
        } else {
            may_seed();
            if constexpr (requires { chain_->spend(x_, a_); })
                chain_->spend(x_, a_);
            else
                chain_->seed(std::as_const(x_), a_);
        }
        play_rest();
    }
    /// Takes the terminal adjoint as given and plays to the end.
    void backward(Adjoint a) {
        at_turn("backward(adjoint)");
        if (!has_adjoint_) a_ = std::move(a);
        play_rest();
    }

    /// The last state while resting at the turn, or after a schedule without one.
    const State& state() const noexcept { return x_; }
    /// Mutable, so that a caller may move the memory of a state out that is not needed any more.
    State& state() noexcept { return x_; }
    /// The adjoint at x_0 after backward().
    const Adjoint& adjoint() const noexcept { return a_; }
    Adjoint& adjoint() noexcept { return a_; }

private:
    void begin() {
        ExecutionBase::begin(chain_->length());
        watching_ = watched_ >= 0 && watcher_;
        fresh_ = has_adjoint_ = remakes_ = false;
        if constexpr (requires { chain_->reuse(a_); }) chain_->reuse(a_);
    }
    void start(State&& x0) {
        x_ = std::move(x0);
        at_ = 0;
        play_until_turn();
    }

    void play_until_turn() {
        while (phase_ == Phase::forward) observed(next());
    }
    void play_rest() {
        phase_ = Phase::forward;
        while (phase_ != Phase::done) observed(next());
    }
    void observed(const Action& a) {
        if (follows()) {
            const Fate what = fate(a);
            if (what == Fate::lost) complete_rest(room(needs_state<C>));
            if (what != Fate::play) return;
        }
        if (!observer_) return play(a);
        const double begin = seconds();
        play(a);
        observer_(a, begin, seconds());
    }
    void play(const Action& a) {
        switch (a.verb) {
            case Verb::advance: stand(a), advance(a.steps); break;
            case Verb::record:
                stand(a), no_tape(a);
                if (completes() && a.steps.last == end_ && !needs_state<C>) return keep(a);  // where a whole sweep would turn
                show();
                reached(chain_->record(a.steps, x_, tape_), a.steps);
                if (at_ == a.steps.last) tape_of_ = a.steps.first, ++counts_.recorded;
                if (verify_) arrived();
                show();
                commit_if_due(turn_ == nowhere);
                break;
            case Verb::tape: stand(a), no_tape(a), keep(a); break;
            case Verb::reverse:
                may_reverse(a, needs_state<C>);
                chain_->reverse(a.steps, x_, tape_, a_);
                tape_of_ = at_ = nowhere;
                end_ = a.steps.first, ++counts_.reversed;
                commit_if_due(1);
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
                turn(a);
                break;
            case Verb::done:
                show();
                finish(a);
                if (commits_.on()) commit();
                commits_.end();
                break;
        }
    }

    /// The tape of a link that is reversed at once. Verify mode wants to see the state behind it.
    void keep(const Action& a) {
        if (!Keeps<C> || (verify_ && !needs_state<C>)) {
            reached(chain_->record(a.steps, x_, tape_), a.steps);
            if (verify_) arrived();
            at_ = nowhere;
        } else {
            if constexpr (Keeps<C>) chain_->keep(a.steps, x_, tape_);
            at_ = needs_state<C> ? a.steps.first : nowhere;
        }
        tape_of_ = a.steps.first, ++counts_.recorded;
    }

    void advance(Range r) {
        show();
        for (Index stop = r.first; at_ == stop && stop != r.last;) {
            r.first = stop;
            stop = watching_ && watched_ > r.first && watched_ < r.last ? watched_ : r.last;
            if (commits_.on()) stop = commits_.pause({r.first, stop}, turn_ == nowhere);
            run({r.first, stop});
            show();
            commit_if_due(turn_ == nowhere ? at_ - r.first : 0);
        }
        // Not between two pieces: to the schedule they are one advance.
        if (awaits_length()) learn(chain_->length());
    }
    void run(Range r) {
        reached(chain_->advance(r, x_), r);
        if (verify_) arrived();
        counts_.advances += at_ - r.first;
    }
    void show() {
        if (!watching_ || at_ != watched_) return;
        watching_ = false;
        const auto f = watcher_;  // it may be replaced while it runs
        f(std::as_const(x_));
    }

    void commit_if_due(Index links) {
        if (commits_.on() && commits_.due(links)) commit();
    }
    void commit() {
        if constexpr (Sums<C>) {
            const bool forward = turn_ == nowhere, alone = self_contained(*chain_), whole = alone && at_ != nowhere;
            // Of a length that was learned on the way, the schedule could not be told at the same place again.
            if (forward ? !whole || learned() : !whole && commits_.news() == 0) return;
            Commits::Note note = settle();
            if (!whole) note.at = nowhere;
            commits_.write(note, alone ? on_disk() : Survivors{}, whole ? bytes_of(x_) : std::vector<Blob>{},
                           forward ? std::vector<Blob>{} : bytes_of(a_), sums());
        }
    }
    std::vector<Blob> sums() {
        std::vector<Blob> all = chain_->sums();
        for (const Blob& b : commits_.more()) all.push_back(b);
        return all;
    }
    void shape(Index step, State& x) {
        if constexpr (requires { chain_->shape(step, x); }) chain_->shape(step, x);
    }
    void complete_rest(Room slots) {
        tapes_.clear();
        if (const Slot start = room_for_start(slots); start.index >= 0 && (verify_ || !remakes())) {
            x_ = State{};  // not two of them while initial() makes its own
            if (remakes())
                make_again(x_);
            else
                x_ = chain_->initial();
            if (verify_) print_start(start, print_of(x_));
            using std::swap;
            if (!remakes()) swap(x_, state_in(start.index));
        }
        ExecutionBase::complete_rest(slots);
    }

    /// x_0 takes no memory in RAM: the chain makes it again.
    bool remakes() const { return Remakes<C> && remakes_; }
    void make_again(State& x) {
        if constexpr (Remakes<C>) chain_->again(x);
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
            if (step > 0 || !remakes()) state_in(to.index) = x;
            p = {Held::state, step};
        } else {
            p = write(to, {Held::state, step}, bytes_of(const_cast<State&>(x)));
        }
        if (verify_) same_state(step, p.print = print_of(const_cast<State&>(x)));
    }
    void load(const Action& a, bool last) {
        Place& p = full_place(a, a.from, Held::state, a.steps.first);
        if (a.from.tier != Tier::ram) {
            read_state(a.from, p, x_);
            if (last) erase(a.from);
        } else if (a.steps.first == 0 && remakes()) {
            make_again(x_);
        } else if (last) {
            using std::swap;
            swap(x_, state_in(a.from.index));
        } else {
            x_ = state_in(a.from.index);
        }
        if (verify_ && a.from.tier == Tier::ram) same_slot(a.from, p, print_of(x_));
        if (last) p = {};
        at_ = a.steps.first;
    }
    void restart(const Action& a) {
        if constexpr (Restarts<C>) {
            if (a.from.tier != Tier::ram) fail(a, "a state is taken out of a tape in RAM only; fetch the tape first");
            full_place(a, a.from, Held::tape, a.steps.first - 1);
            chain_->restart(tape_in(a.from.index), x_);
            at_ = a.steps.first;
            if (verify_) arrived();
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
            if (verify_) p.print = print_of(tape_in(a.to.index));
        } else {
            p = write(a.to, {Held::tape, tape_of_}, bytes_of(tape_));
        }
        tape_of_ = nowhere;
    }
    void fetch(const Action& a) {
        no_tape(a);
        Place& p = full_place(a, a.from, Held::tape, a.steps.first);
        if (a.from.tier == Tier::ram) {
            using std::swap;
            swap(tape_, tape_in(a.from.index));
            if (verify_) same_slot(a.from, p, print_of(tape_));
        } else {
            if constexpr (requires { chain_->shape(tape_); }) chain_->shape(tape_);
            read(a.from, p, bytes_of(tape_));
            erase(a.from);
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
        if (a.from.tier != Tier::ram) erase(a.from);
        p = {};
    }
    void move(const Action& a) {
        if (!a.steps.empty()) fail(a, "only states are moved between tiers");
        if (a.from.tier == a.to.tier) fail(a, "a move changes the tier");
        Place& from = full_place(a, a.from, Held::state, a.steps.first);
        Place& to = empty_place(a, a.to);
        if (a.from.tier == Tier::ram) {
            State x0{};
            State& x = from.step == 0 && remakes() ? x0 : state_in(a.from.index);
            if (&x == &x0) make_again(x0);
            if (verify_) same_slot(a.from, from, print_of(x));
            to = write(a.to, {Held::state, from.step}, bytes_of(x));
        } else if (a.to.tier == Tier::ram) {
            read_state(a.from, from, state_in(a.to.index));
            to = {Held::state, from.step};
            if (verify_) to.print = print_of(state_in(a.to.index));
        } else {
            State x{};
            read_state(a.from, from, x);
            to = write(a.to, {Held::state, from.step}, bytes_of(x));
        }
        if (a.from.tier != Tier::ram) erase(a.from);
        from = {};
    }

    // Other tiers, and verify mode: bytes.
    template <class T>
    static constexpr bool has_bytes = requires(T& object) { blobs(object); };
    template <class T>
    static std::vector<Blob> bytes_of(T& object) {
        if constexpr (has_bytes<T>)
            return blobs(object);
        else
            no_bytes();
    }
    template <class T>
    static std::uint64_t print_of(T& object) {
        return fingerprint(bytes_of(object));
    }
    /// x stands where a chain has brought it.
    void arrived() {
        if (kept(at_)) same_state(at_, print_of(x_));
    }
    /// `x` may have any shape: keep() and reverse() leave the working state unspecified.
    void read_state(Slot from, const Place& p, State& x) {
        if (total_size(bytes_of(x)) != p.bytes) {
            if constexpr (requires { chain_->shape(p.step, x); })
                chain_->shape(p.step, x);
            else
                x = chain_->initial();
        }
        read(from, p, bytes_of(x));
    }

    C* chain_;
    State x_{};
    Tape tape_{};
    Adjoint a_{};
    std::deque<State> states_;  // RAM slots; growth moves none of them
    std::deque<Tape> tapes_;
    Index watched_ = nowhere;
    std::function<void(const State&)> watcher_;
    bool watching_ = false;
    bool fresh_ = false;
    bool remakes_ = false;  // the sweep began with the chain's own x_0
    bool has_adjoint_ = false;  // recover() found it
};

}  // namespace backsweep
