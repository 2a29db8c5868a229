// SPDX-License-Identifier: MIT
#include "backsweep/plan/timeline.hpp"

#include "backsweep/base/error.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace backsweep {

namespace {

/// DiskStore without its bytes: the same buffers, the same queue, and clocks in place of threads.
class Disk {
public:
    explicit Disk(const Workload& w)
        : write_(w.write),
          read_(w.read),
          stages_(static_cast<std::size_t>(w.disk_buffers)) {}

    const Timeline& shown() const noexcept { return shown_; }

    void run(double time) { shown_.sweep += time; }

    void write(Slot slot) {
        Content& content = content_of(slot);
        content = {true, ++newest_};
        if (stages_.empty()) return at_once(write_, shown_.written);
        catch_up();
        Stage* stage = nullptr;
        while (!(stage = unused())) wait_for_one();
        begin(*stage, State::writing, slot, content.version);
    }
    void read(Slot slot) {
        const Content& content = content_of(slot);
        if (!content.full) throw ScheduleError(to_string(slot) + " is read, but it holds nothing");
        catch_up();
        Stage* const stage = stage_of(slot, content);
        if (!stage) return at_once(read_, shown_.read);
        while (stage->state == State::reading) wait_for_one();
        if (stage->state == State::ready) stage->state = State::free;
    }
    void erase(Slot slot) { content_of(slot).full = false; }
    void expect(Slot slot) {
        const Content& content = content_of(slot);
        catch_up();
        if (!content.full || stage_of(slot, content)) return;
        Stage* const stage = unused();
        const auto ahead = std::count_if(stages_.begin(), stages_.end(), [](const Stage& s) { return s.reads(); });
        if (stage && ahead + 1 < static_cast<std::ptrdiff_t>(stages_.size()))
            begin(*stage, State::reading, slot, content.version);
    }

private:
    enum class State { free, writing, reading, ready };
    struct Content {
        bool full = false;
        Index version = 0;
    };
    struct Stage {
        State state = State::free;
        Slot slot{};
        Index version = 0;
        double asked = 0.0;

        bool reads() const noexcept { return state == State::reading || state == State::ready; }
    };

    Content& content_of(Slot slot) {
        std::vector<Content>& tier = contents_[static_cast<std::size_t>(slot.tier)];
        const auto i = static_cast<std::size_t>(slot.index);
        if (i >= tier.size()) tier.resize(i + 1);
        return tier[i];
    }
    Stage* stage_of(Slot slot, const Content& content) {
        for (Stage& s : stages_)
            if (s.state != State::free && s.slot == slot && s.version == content.version) return &s;
        return nullptr;
    }
    Stage* unused() {
        for (Stage& s : stages_) {
            if (s.state == State::ready) {
                const Content& now = content_of(s.slot);
                if (!now.full || now.version != s.version) s.state = State::free;
            }
            if (s.state == State::free) return &s;
        }
        return nullptr;
    }
    void begin(Stage& stage, State state, Slot slot, Index version) {
        stage = {state, slot, version, shown_.sweep};
        queue_.push_back(&stage);
        catch_up();
    }

    /// The sweep's own transfer: it only waits for one that has begun.
    void at_once(double time, Index& count) {
        free_ = std::max(free_, shown_.sweep) + time;
        ++count;
        wait_until(free_);
    }
    void wait_until(double time) {
        shown_.waited += std::max(0.0, time - shown_.sweep);
        shown_.sweep = std::max(shown_.sweep, time);
    }
    /// Begins the next transfer of the queue, or ends the one under way.
    void step() {
        if (!busy_) {
            busy_ = queue_.front();
            queue_.pop_front();
            const bool writes = busy_->state == State::writing;
            ++(writes ? shown_.written : shown_.read);
            end_ = free_ = std::max(free_, busy_->asked) + (writes ? write_ : read_);
        } else {
            busy_->state = busy_->state == State::writing ? State::free : State::ready;
            busy_ = nullptr;
        }
    }
    /// What the disk has done by now.
    void catch_up() {
        while (busy_ ? end_ <= shown_.sweep : !queue_.empty() && std::max(free_, queue_.front()->asked) <= shown_.sweep)
            step();
    }
    void wait_for_one() {
        if (!busy_) step();
        wait_until(end_);
        step();
        catch_up();
    }

    double write_, read_;
    std::vector<Stage> stages_;
    std::deque<Stage*> queue_;
    Stage* busy_ = nullptr;  // under way until end_
    double end_ = 0.0;
    double free_ = 0.0;  // when the disk has done what it has begun
    std::array<std::vector<Content>, 4> contents_{};
    Index newest_ = 0;
    Timeline shown_;
};

bool stored(Slot slot) {
    return slot.tier != Tier::ram && slot.index >= 0;
}

bool reads(const Action& a) {
    return (a.verb == Verb::load || a.verb == Verb::take || a.verb == Verb::fetch || a.verb == Verb::move) &&
           stored(a.from);
}

}  // namespace

Timeline timeline(Schedule& schedule, const Workload& w) {
    if (const std::string why = w.problem(); !why.empty()) throw InvalidArgument(why);
    const Index links = w.links();
    const double last = static_cast<double>(w.steps - (links - 1) * w.chunk) / static_cast<double>(w.chunk);
    const auto part = [&](const Action& a) { return a.steps.last == links ? last : 1.0; };  // of a full link
    Disk disk(w);
    std::array<Action, 64> actions{};  // as many as an Execution looks ahead
    std::size_t head = 0, filled = 0;
    bool announce = false;
    schedule.rewind();
    while (true) {
        if (head == filled) {
            filled = schedule.fill(actions);
            head = 0;
            announce = true;
        }
        if (std::exchange(announce, false))
            for (std::size_t i = head; i < filled; ++i)
                if (reads(actions[i])) disk.expect(actions[i].from);
        const Action a = actions[head++];
        if (a.verb == Verb::done) break;
        if (a.verb == Verb::advance) disk.run(static_cast<double>(a.steps.last - a.steps.first) * w.advance);
        if (a.verb == Verb::record || a.verb == Verb::tape) disk.run(part(a) * w.record);
        if (a.verb == Verb::reverse) disk.run(part(a) * w.reverse);
        if (reads(a)) {
            disk.read(a.from);
            announce = true;
        }
        const bool writes = a.verb == Verb::save || a.verb == Verb::stow || a.verb == Verb::move;
        if (writes && stored(a.to)) disk.write(a.to);
        const bool empties =
            a.verb == Verb::take || a.verb == Verb::fetch || a.verb == Verb::move || a.verb == Verb::drop;
        if (empties && stored(a.from)) disk.erase(a.from);
    }
    schedule.rewind();
    return disk.shown();
}

}  // namespace backsweep
