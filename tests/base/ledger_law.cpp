// Every byte is counted: what the heap holds beyond the ledger does not grow with the length of the chain.
// This executable replaces operator new and delete to know what the heap holds.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE base_ledger_law
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "support/counted_heap.hpp"
#include "support/toy_chains.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

using namespace backsweep;

namespace {

constexpr Index width = 500;

/// Mutant: a Field whose tape keeps a second copy of the state that no ledger knows.
class Smuggler : public test::Field {
public:
    using Field::Field;
    struct Tape {
        Buffer<double> u;
        std::vector<double> hidden;
    };
    Index record(Range r, State& x, Tape& tape) {
        tape.hidden.assign(x.u.begin(), x.u.end());
        return Field::record(r, x, tape.u);
    }
    void reverse(Range r, State& x, Tape& tape, Adjoint& a) { Field::reverse(r, x, tape.u, a); }
};

/// Mutant: a Field that logs a number of each link in a vector.
class Logger : public test::Field {
public:
    using Field::Field;
    Index record(Range r, State& x, Tape& tape) {
        log_.push_back(x.u[0]);
        return Field::record(r, x, tape);
    }

private:
    std::vector<double> log_;
};

using Maker = std::function<std::unique_ptr<Schedule>(Index links)>;

/// Peak of the heap less the peak of the ledger over one forward and backward sweep.
template <class C>
std::int64_t uncounted(Index links, const Maker& schedule) {
    Ledger ledger;
    std::unique_ptr<Schedule> plan = schedule(links);  // O(slots) by law, the schedule's own business
    const std::int64_t before = heap_live;
    heap_peak = before;
    std::int64_t counted = 0;
    {
        C chain(links, width, ledger);
        Execution run(chain, std::move(plan));
        run.forward();
        run.backward();
        counted = ledger.peak_total();
    }
    BOOST_CHECK_EQUAL(ledger.live_total(), 0);
    return heap_peak - before - counted;
}

/// Bytes a link by which the heap outgrows the ledger.
template <class C>
double growth(const Maker& schedule) {
    constexpr Index few = 67, many = 1033;
    return static_cast<double>(uncounted<C>(many, schedule) - uncounted<C>(few, schedule)) / (many - few);
}

const Maker few_slots = [](Index links) { return revolve(links, 5); };
const Maker everything = [](Index links) { return store_all(links); };
const Maker blocks = [](Index links) { return periodic(links, 32); };

/// A tape object and the note of what its slot holds, for every tape that is kept, and what a deque needs to find it.
constexpr double bookkeeping = 112.0;
static_assert(sizeof(Buffer<double>) + 32 <= bookkeeping);

}  // namespace

BOOST_AUTO_TEST_CASE(the_heap_is_really_counted) {
    const std::int64_t before = heap_live;
    auto block = std::make_unique<std::vector<double>>(1000);
    BOOST_CHECK_EQUAL(heap_live - before, 8000 + static_cast<std::int64_t>(sizeof(std::vector<double>)));
    block.reset();
    BOOST_CHECK_EQUAL(heap_live, before);
}

BOOST_AUTO_TEST_CASE(with_a_number_of_slots_nothing_uncounted_grows) {
    BOOST_CHECK_EQUAL(growth<test::Field>(few_slots), 0.0);
}

BOOST_AUTO_TEST_CASE(where_tapes_are_kept_only_their_bookkeeping_grows) {
    const double all = growth<test::Field>(everything), some = growth<test::Field>(blocks);
    BOOST_TEST_MESSAGE("uncounted bytes a link: store_all " << all << ", periodic " << some);
    BOOST_TEST((all > 0.0 && all <= bookkeeping));
    BOOST_TEST((some >= 0.0 && some <= bookkeeping / 16));
}

BOOST_AUTO_TEST_CASE(an_allocation_outside_the_ledger_is_caught) {
    BOOST_TEST(growth<Smuggler>(everything) > static_cast<double>(sizeof(double) * width));
    BOOST_TEST(growth<Logger>(few_slots) >= 8.0);
}
