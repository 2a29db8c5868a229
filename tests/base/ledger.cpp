// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE base_ledger
#include "support/unit_test.hpp"

#include "backsweep/base/ledger.hpp"

#include <string>
#include <thread>
#include <vector>

using namespace backsweep;

BOOST_AUTO_TEST_CASE(peaks_are_kept_by_kind_and_for_the_sum) {
    Ledger ledger;
    ledger.book(Kind::carry, 100);
    ledger.book(Kind::carry, -60);
    ledger.book(Kind::tape, 50);
    ledger.book(Kind::tape, -50);
    ledger.book(Kind::log, 7);
    BOOST_CHECK_EQUAL(ledger.live()[Kind::carry], 40);
    BOOST_CHECK_EQUAL(ledger.live()[Kind::tape], 0);
    BOOST_CHECK_EQUAL(ledger.live_total(), 47);
    BOOST_CHECK_EQUAL(ledger.peak()[Kind::carry], 100);
    BOOST_CHECK_EQUAL(ledger.peak()[Kind::tape], 50);
    BOOST_CHECK_EQUAL(ledger.peak_total(), 100);  // less than the peaks' sum
    ledger.reset_peaks();
    BOOST_TEST((ledger.peak() == ledger.live()));
    BOOST_CHECK_EQUAL(ledger.peak_total(), 47);
}

BOOST_AUTO_TEST_CASE(bookings_reach_every_parent) {
    const std::int64_t before = Ledger::process().live()[Kind::slots];
    Ledger run, shard(run), other(run);
    shard.book(Kind::slots, 11);
    other.book(Kind::slots, 31);
    BOOST_CHECK_EQUAL(shard.live_total(), 11);
    BOOST_CHECK_EQUAL(other.live_total(), 31);
    BOOST_CHECK_EQUAL(run.live()[Kind::slots], 42);
    BOOST_CHECK_EQUAL(Ledger::process().live()[Kind::slots] - before, 42);
    shard.book(Kind::slots, -11);
    other.book(Kind::slots, -31);
    BOOST_CHECK_EQUAL(run.live_total(), 0);
    BOOST_CHECK_EQUAL(run.peak_total(), 42);
    BOOST_CHECK_EQUAL(Ledger::process().live()[Kind::slots], before);
}

BOOST_AUTO_TEST_CASE(rebooking_moves_bytes_and_leaves_the_sum) {
    Ledger parent, ledger(parent);
    ledger.book(Kind::carry, 64);
    ledger.rebook(Kind::carry, Kind::slots, 64);
    ledger.rebook(Kind::slots, Kind::slots, 64);
    for (const Ledger* l : {&parent, &ledger}) {
        BOOST_CHECK_EQUAL(l->live()[Kind::carry], 0);
        BOOST_CHECK_EQUAL(l->live()[Kind::slots], 64);
        BOOST_CHECK_EQUAL(l->live_total(), 64);
        BOOST_CHECK_EQUAL(l->peak_total(), 64);
        BOOST_CHECK_EQUAL(l->peak()[Kind::carry], 64);
    }
}

BOOST_AUTO_TEST_CASE(threads_lose_no_byte_and_no_peak) {
    Ledger parent;
    constexpr int workers = 4, rounds = 20000;
    std::vector<std::thread> threads;
    for (int t = 0; t < workers; ++t)
        threads.emplace_back([&parent] {
            Ledger own(parent);
            for (int k = 1; k <= rounds; ++k) {
                own.book(Kind::tape, k);
                own.rebook(Kind::tape, Kind::slots, k);
                own.book(Kind::slots, -k);
            }
            own.book(Kind::log, 5);
        });
    for (std::thread& t : threads) t.join();
    BOOST_CHECK_EQUAL(parent.live()[Kind::tape], 0);
    BOOST_CHECK_EQUAL(parent.live()[Kind::slots], 0);
    BOOST_CHECK_EQUAL(parent.live()[Kind::log], 5 * workers);
    BOOST_CHECK_EQUAL(parent.live_total(), 5 * workers);
    BOOST_TEST(parent.peak_total() >= rounds);
    BOOST_TEST(parent.peak_total() <= workers * rounds + 5 * workers);
}

BOOST_AUTO_TEST_CASE(bytes_add_up) {
    Bytes b;
    for (std::size_t k = 0; k < kind_count; ++k) b.by_kind[k] = std::int64_t{1} << k;
    BOOST_CHECK_EQUAL(b.total(), 511);
    BOOST_CHECK_EQUAL(b.time_axis(), b[Kind::data] + b[Kind::carry] + b[Kind::slots] + b[Kind::tape] + b[Kind::log]);
    b += b;
    BOOST_CHECK_EQUAL(b.total(), 1022);
}

BOOST_AUTO_TEST_CASE(every_kind_has_a_name) {
    const std::vector<std::string> names{"parameters", "gradients", "moments", "data", "carry",
                                         "slots",      "tape",      "log",     "workspace"};
    BOOST_CHECK_EQUAL(names.size(), kind_count);
    for (std::size_t k = 0; k < kind_count; ++k) BOOST_CHECK_EQUAL(to_string(static_cast<Kind>(k)), names[k]);
}
