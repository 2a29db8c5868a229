// The two clocks: by hand, by laws, and beside an Execution whose links and store tell their time tick by tick.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE plan_timeline
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/plan/plan.hpp"
#include "backsweep/plan/timeline.hpp"
#include "backsweep/schedule/periodic_disk.hpp"
#include "backsweep/schedule/prediction.hpp"
#include "backsweep/schedule/tiered_revolve.hpp"
#include "backsweep/store/ram_store.hpp"

#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

constexpr auto disk = static_cast<std::size_t>(Tier::disk);

Workload workload(Index links, double advance, double record, double reverse, double write, double read,
                  Index buffers) {
    Workload w;
    w.steps = links;
    w.chunk = 1;
    w.advance = advance, w.record = record, w.reverse = reverse, w.write = write, w.read = read;
    w.disk_buffers = buffers;
    return w;
}

std::unique_ptr<Schedule> tiers(Index links, Index in_ram, Index on_disk) {
    return tiered_revolve({.steps = links, .ram_slots = in_ram, .disk_slots = on_disk});
}

std::unique_ptr<Schedule> blocks(Index links, Index period) {
    return periodic_disk({.steps = links, .ram_slots = 1 + period / 3, .period = period});
}

/// Time passes in ticks, and the disk works while it passes: one transfer at a time, in the order of the requests.
class Ticking : public RamStore {
public:
    explicit Ticking(const Workload& w)
        : write_(static_cast<Index>(w.write)),
          read_(static_cast<Index>(w.read)),
          buffers_(w.disk_buffers) {}

    Index now = 0, waited = 0;

    void tick(Index ticks) {
        for (; ticks > 0; --ticks) {
            ++now;
            if (left_ > 0 && --left_ == 0) finish();
        }
    }

    void write(std::int32_t slot, std::span<const Blob> content) override {
        RamStore::write(slot, content);
        holds_[slot] = ++newest_;
        if (buffers_ == 0) return alone(write_);
        while (used() == buffers_) wait();
        going_.push_back({slot, newest_, true});
        go();
    }
    void read(std::int32_t slot, std::span<const Blob> content) override {
        RamStore::read(slot, content);
        if (being_written(slot)) return;
        const auto looked_ahead = ahead_.find(slot);
        if (looked_ahead == ahead_.end()) return alone(read_);
        while (!looked_ahead->second) wait();
        ahead_.erase(looked_ahead);
    }
    void erase(std::int32_t slot) noexcept override {
        RamStore::erase(slot);
        holds_.erase(slot);
    }
    void expect(std::int32_t slot) override {
        if (!holds_.contains(slot) || being_written(slot) || ahead_.contains(slot)) return;
        if (used() >= buffers_ || static_cast<Index>(ahead_.size()) + 1 >= buffers_) return;
        ahead_[slot] = false;
        going_.push_back({slot, 0, false});
        go();
    }

private:
    struct Going {
        std::int32_t slot;
        Index version;
        bool writes;
    };

    bool being_written(std::int32_t slot) const {
        const auto held = holds_.find(slot);
        for (const Going& g : going_)
            if (g.writes && g.slot == slot && held != holds_.end() && g.version == held->second) return true;
        return false;
    }
    Index used() const {
        Index writes = 0;
        for (const Going& g : going_) writes += g.writes;
        return writes + static_cast<Index>(ahead_.size());
    }
    void wait() { tick(1), ++waited; }
    void alone(Index ticks) {
        while (left_ > 0) {
            alone_ = true;  // nothing else begins before
            wait();
        }
        now += ticks, waited += ticks;
        alone_ = false;
        go();
    }
    /// The first of those that are going begins, unless one is on its way.
    void go() {
        if (left_ > 0 || alone_ || going_.empty()) return;
        left_ = going_.front().writes ? write_ : read_;
        if (left_ == 0) finish();
    }
    void finish() {
        if (!going_.front().writes) ahead_[going_.front().slot] = true;
        going_.pop_front();
        go();
    }

    Index write_, read_, buffers_;
    std::deque<Going> going_;              // the front one is on its way while ticks are left
    Index left_ = 0;                       // ticks
    bool alone_ = false;                   // the sweep itself uses the disk next
    std::map<std::int32_t, bool> ahead_;   // whether it has come
    std::map<std::int32_t, Index> holds_;  // number of the write
    Index newest_ = 0;
};

/// Links whose time is the store's.
struct Clockwork {
    using State = std::vector<double>;
    using Tape = State;
    using Adjoint = double;
    const Workload& w;
    Ticking& clock;

    std::optional<Index> length() const { return w.links(); }
    State initial() const { return {0.25, -1.5}; }
    Index advance(Range r, State& x) {
        clock.tick(r.size() * static_cast<Index>(w.advance));
        for (Index i = r.first; i < r.last; ++i) step(i, x);
        return r.last;
    }
    Index record(Range r, State& x, Tape& tape) {
        clock.tick(static_cast<Index>(w.record));
        tape = x;
        step(r.first, x);
        return r.last;
    }
    void seed(const State& x, Adjoint& a) { a = x[0]; }
    void reverse(Range r, State&, Tape& tape, Adjoint& a) {
        clock.tick(static_cast<Index>(w.reverse));
        a = a * tape[0] + tape[1] * static_cast<double>(r.first + 1);
    }

private:
    static void step(Index i, State& x) { x = {0.5 * x[1] + 0.01 * static_cast<double>(i), x[0]}; }
};

using Maker = std::function<std::unique_ptr<Schedule>()>;

void agrees_with_an_execution(const Workload& w, const Maker& make) {
    Ticking store(w);
    Clockwork chain{w, store};
    Execution run(chain, make());
    run.use(Tier::disk, store);
    run.forward();
    run.backward();
    const auto schedule = make();
    const Timeline clocks = timeline(*schedule, w);
    BOOST_CHECK_EQUAL(clocks.sweep, static_cast<double>(store.now));
    BOOST_CHECK_EQUAL(clocks.waited, static_cast<double>(store.waited));
}

/// Any of so many, from the same seed every time.
struct Draw {
    std::uint32_t seed = 12345;
    Index operator()(std::uint32_t below) { return (seed = seed * 1664525 + 1013904223, (seed >> 8) % below); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(by_hand) {
    // x_0, x_1, x_2 to the disk, link 3 reversed, then each taken back. Links take 1 to advance or record, 2 to
    // reverse. Written at 0-3, 3-6, 6-9, the third after a wait of 1 for a buffer; it still lies there when it is taken
    // at 7. x_1 is read ahead at 9-11 (wanted at 10), x_0 at 11-13 (wanted at 14).
    const auto schedule = tiers(4, 0, 3);
    const Timeline two = timeline(*schedule, workload(4, 1, 1, 2, 3, 2, 2));
    BOOST_CHECK_EQUAL(two.sweep, 17.0);
    BOOST_CHECK_EQUAL(two.waited, 2.0);
    BOOST_CHECK_EQUAL(two.written, 3);
    BOOST_CHECK_EQUAL(two.read, 2);
    // One buffer: waits of 2 and 2 for it; nothing is read ahead, and x_2 lies on the disk (9) when it is taken (10).
    const Timeline one = timeline(*schedule, workload(4, 1, 1, 2, 3, 2, 1));
    BOOST_CHECK_EQUAL(one.sweep, 15.0 + 2.0 + 2.0 + 3 * 2.0);
    BOOST_CHECK_EQUAL(one.read, 3);
    // None: the sum.
    BOOST_CHECK_EQUAL(timeline(*schedule, workload(4, 1, 1, 2, 3, 2, 0)).sweep, 15.0 + 3 * 3.0 + 3 * 2.0);
    // Half a link at the end: x_2 is taken at 5.5; x_1 is on its way to the disk then, and not read ahead: wanted
    // at 8.5, it comes at 11, behind x_2 on its way there.
    Workload half = workload(4, 1, 1, 2, 3, 2, 2);
    half.chunk = 4;
    half.steps = 14;
    const Timeline short_link = timeline(*schedule, half);
    BOOST_CHECK_EQUAL(short_link.sweep, 17.0);
    BOOST_CHECK_EQUAL(short_link.waited, 1.0 + 2.5);
    // A slow disk, 10 a write and 4 a read: x_2 waits for a buffer until 10 and is taken back from it, and so is x_1,
    // which is still going out until 20; x_0 is read behind x_2, whose write ends at 30.
    const Timeline slow = timeline(*tiers(4, 0, 3), workload(4, 1, 1, 2, 10, 4, 2));
    BOOST_CHECK_EQUAL(slow.written, 3);
    BOOST_CHECK_EQUAL(slow.read, 1);
    BOOST_CHECK_EQUAL(slow.sweep, 34.0 + 3.0);
}

BOOST_AUTO_TEST_CASE(an_execution_takes_as_long) {
    Draw draw;
    for (int i = 0; i < 3000; ++i) {
        const Index links = 1 + draw(70), in_ram = draw(4), on_disk = 1 + draw(12), period = 1 + draw(9);
        const Workload w = workload(links, static_cast<double>(1 + draw(5)), static_cast<double>(1 + draw(5)),
                                    static_cast<double>(1 + draw(9)), static_cast<double>(draw(30)),
                                    static_cast<double>(draw(30)), draw(5));
        BOOST_TEST_CONTEXT("links " << links << ", slots " << in_ram << " and " << on_disk << ", period " << period
                                    << ", costs " << w.advance << ' ' << w.record << ' ' << w.reverse << ' ' << w.write
                                    << ' ' << w.read << ", " << w.disk_buffers << " buffers") {
            agrees_with_an_execution(w, [&] { return tiers(links, in_ram, on_disk); });
            agrees_with_an_execution(w, [&] { return blocks(links, period); });
        }
    }
}

BOOST_AUTO_TEST_CASE(between_the_links_alone_and_the_sum) {
    Draw draw;
    for (int i = 0; i < 2000; ++i) {
        const Index links = 1 + draw(90), in_ram = draw(4), on_disk = 1 + draw(12), period = 1 + draw(9);
        Workload w = workload(links, 0.7, 1.1, 2.3, 0.37 * static_cast<double>(draw(30)),
                              0.29 * static_cast<double>(draw(30)), draw(5));
        for (const auto& schedule : {tiers(links, in_ram, on_disk), blocks(links, period)}) {
            const Play play = predict(*schedule, links);
            const double alone = static_cast<double>(play.advances) * w.advance +
                                 static_cast<double>(links) * (w.record + w.reverse),
                         sum = static_cast<double>(play.writes[disk]) * w.write +
                               static_cast<double>(play.reads[disk]) * w.read;
            const Timeline t = timeline(*schedule, w), again = timeline(*schedule, w);
            BOOST_CHECK_EQUAL(t.sweep, again.sweep);
            const double close = 1e-12 * (alone + sum);
            BOOST_CHECK(std::abs(t.sweep - t.waited - alone) <= close);
            BOOST_CHECK(t.waited >= 0.0);
            BOOST_CHECK(t.waited <= sum + close);
            BOOST_CHECK(t.read <= play.reads[disk]);
            // The disk does one thing after the other.
            const double done = static_cast<double>(t.written) * w.write + static_cast<double>(t.read) * w.read;
            BOOST_CHECK(t.sweep >= done - static_cast<double>(w.disk_buffers) * w.write - close);
            if (w.disk_buffers == 0) BOOST_CHECK(std::abs(t.waited - sum) <= close);
            w.write = w.read = 0.0;
            BOOST_CHECK_EQUAL(timeline(*schedule, w).waited, 0.0);
        }
    }
}

BOOST_AUTO_TEST_CASE(the_unit_is_free) {
    for (const Index buffers : {0, 1, 2, 5})
        for (const auto& schedule : {tiers(61, 1, 6), tiers(61, 0, 4), blocks(61, 7)}) {
            const Timeline in_days = timeline(*schedule, workload(61, 1.25, 1.5, 2.75, 3.5, 2.125, buffers)),
                           in_hours = timeline(
                               *schedule, workload(61, 24 * 1.25, 24 * 1.5, 24 * 2.75, 24 * 3.5, 24 * 2.125, buffers));
            BOOST_CHECK_EQUAL(in_hours.sweep, 24.0 * in_days.sweep);
            BOOST_CHECK_EQUAL(in_hours.read, in_days.read);
        }
}

BOOST_AUTO_TEST_CASE(a_plan_weighs_what_is_waited_for) {
    // A disk that keeps up costs nothing, one that does not has fewer slots, and one that is slow enough none.
    Workload w = workload(200, 1, 1, 2, 0, 0, 2);
    w.state = 100, w.tape = 300, w.disk_slot = 100, w.buffers = 200;
    Budget budget;
    budget.ram = 300 + 200 + 5 * 100;
    const Plan without = make_plan(w, budget);
    budget.disk = Budget::unlimited;
    double before = 0.0;
    Index slots = 1000;
    for (const double transfer : {0.0, 0.5, 2.0, 8.0, 32.0, 128.0, 512.0}) {
        w.write = w.read = transfer;
        const Plan plan = make_plan(w, budget);
        BOOST_CHECK(plan.cost >= before);
        BOOST_CHECK(plan.cost <= without.cost);
        BOOST_CHECK(plan.disk_slots <= slots);
        if (plan.disk_slots > 0) {
            const auto schedule = schedule_for(plan, 200);
            BOOST_CHECK_EQUAL(plan.cost, price(w, plan.schedule).cost);
            BOOST_CHECK(std::abs(plan.cost - timeline(*schedule, w).sweep) <= 1e-12 * plan.cost);
        }
        if (transfer == 0.0) BOOST_CHECK_EQUAL(plan.advances, 199);
        if (transfer == 0.5) {
            // Each beside an advance or a reverse, but for reads that are the first of the 64 actions at hand.
            BOOST_CHECK_EQUAL(plan.advances, 199);
            BOOST_CHECK(plan.cost <= 199.0 + 200 * 3.0 + 0.5 * 1000 / 64);
        }
        before = plan.cost;
        slots = plan.disk_slots;
    }
    BOOST_CHECK_EQUAL(slots, 0);
}

BOOST_AUTO_TEST_CASE(refusals) {
    const auto schedule = tiers(4, 0, 3);
    BOOST_CHECK_THROW(timeline(*schedule, workload(4, 1, 1, 2, 3, 2, -1)), InvalidArgument);
    BOOST_CHECK_THROW(timeline(*schedule, workload(4, 1, 1, 2, -3, 2, 1)), InvalidArgument);
}
