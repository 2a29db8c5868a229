// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE base_buffer
#include "support/unit_test.hpp"

#include "backsweep/base/buffer.hpp"

#include <cstdint>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

using namespace backsweep;

namespace {

Buffer<double> numbered(Index size, Kind kind, Ledger& ledger, double from = 1.0) {
    Buffer<double> b(size, kind, ledger);
    std::iota(b.begin(), b.end(), from);
    return b;
}

std::int64_t live(const Ledger& ledger, Kind kind) {
    return ledger.live()[kind];
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_buffer_books_what_it_holds_and_gives_it_back) {
    Ledger ledger;
    {
        Buffer<double> b(100, Kind::tape, ledger);
        BOOST_CHECK_EQUAL(live(ledger, Kind::tape), 800);
        BOOST_CHECK_EQUAL(b.bytes(), 800);
        for (const double x : b) BOOST_TEST(x == 0.0);
        b.resize(10);
        BOOST_CHECK_EQUAL(b.size(), 10);
        BOOST_CHECK_EQUAL(b.bytes(), 800);
        b.release();
        BOOST_CHECK_EQUAL(ledger.live_total(), 0);
        BOOST_TEST(b.empty());
        b.assign(3, 2.5);
        BOOST_CHECK_EQUAL(live(ledger, Kind::tape), 24);
        BOOST_TEST(b[2] == 2.5);
    }
    BOOST_CHECK_EQUAL(ledger.live_total(), 0);
    BOOST_CHECK_EQUAL(ledger.peak()[Kind::tape], 800);
}

BOOST_AUTO_TEST_CASE(growth_holds_the_old_and_the_new_memory_never_at_once) {
    Ledger ledger;
    Buffer<float> b(1000, Kind::workspace, ledger);
    b.resize(1001);
    BOOST_CHECK_EQUAL(ledger.peak_total(), 4004);
}

BOOST_AUTO_TEST_CASE(reserve_keeps_size_and_within_capacity_the_values) {
    Ledger ledger;
    Buffer<std::int32_t> b(Kind::log, ledger);
    b.reserve(50);
    BOOST_CHECK_EQUAL(b.size(), 0);
    BOOST_CHECK_EQUAL(live(ledger, Kind::log), 200);
    b.assign(7, 3);
    b.reserve(20);
    BOOST_CHECK_EQUAL(b.size(), 7);
    BOOST_CHECK_EQUAL(b[6], 3);
    b.reserve(2);
    BOOST_CHECK_EQUAL(b.size(), 7);
    BOOST_CHECK_EQUAL(live(ledger, Kind::log), 200);
}

BOOST_AUTO_TEST_CASE(memory_is_aligned_to_64_bytes) {
    for (const Index size : {1, 3, 17, 64, 1000}) {
        const Buffer<float> a(size, Kind::workspace);
        const Buffer<std::byte> b(size, Kind::workspace);
        BOOST_CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(a.data()) % 64, 0u);
        BOOST_CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(b.data()) % 64, 0u);
    }
}

BOOST_AUTO_TEST_CASE(a_default_buffer_adopts_ledger_and_kind_of_the_first_it_meets) {
    Ledger ledger;
    const Buffer<double> carry = numbered(5, Kind::carry, ledger);
    Buffer<double> copy;
    copy = carry;
    BOOST_TEST((copy.kind() == Kind::carry));
    BOOST_CHECK_EQUAL(live(ledger, Kind::carry), 80);
    BOOST_TEST(copy[4] == 5.0);

    Buffer<double> slot;
    slot.rebook(Kind::slots);
    slot = carry;
    BOOST_TEST((slot.kind() == Kind::slots));
    BOOST_CHECK_EQUAL(live(ledger, Kind::slots), 40);
    BOOST_CHECK_EQUAL(live(ledger, Kind::carry), 80);

    const Buffer<double> constructed(carry);
    BOOST_TEST((constructed.kind() == Kind::carry));
    BOOST_CHECK_EQUAL(live(ledger, Kind::carry), 120);
}

BOOST_AUTO_TEST_CASE(copies_keep_the_holders_kind_ledger_and_memory) {
    Ledger mine, theirs;
    Buffer<double> to(8, Kind::tape, mine);
    const double* const before = to.data();
    to = numbered(8, Kind::carry, theirs);  // moved: the memory comes along
    BOOST_TEST(to.data() != before);
    BOOST_CHECK_EQUAL(mine.live()[Kind::tape], 64);
    BOOST_CHECK_EQUAL(theirs.live_total(), 0);

    const Buffer<double> from = numbered(6, Kind::carry, theirs, 9.0);
    const double* const kept = to.data();
    to = from;  // copied: it does not
    BOOST_TEST(to.data() == kept);
    BOOST_CHECK_EQUAL(to.size(), 6);
    BOOST_TEST(to[0] == 9.0);
    BOOST_CHECK_EQUAL(mine.live()[Kind::tape], 64);
    BOOST_CHECK_EQUAL(theirs.live()[Kind::carry], 48);
    const Buffer<double>& alias = to;
    to = alias;
    BOOST_TEST(to[5] == 14.0);
}

BOOST_AUTO_TEST_CASE(a_swap_keeps_every_sum_whatever_kinds_and_ledgers_meet) {
    for (const bool same_ledger : {true, false})
        for (const bool same_kind : {true, false})
            for (const auto& [m, n] : {std::pair<Index, Index>{10, 3}, {3, 10}, {0, 7}, {7, 0}, {4, 4}, {0, 0}}) {
                BOOST_TEST_CONTEXT("same ledger " << same_ledger << ", same kind " << same_kind << ", sizes " << m
                                                  << ' ' << n) {
                    Ledger parent, one(parent), two(parent);
                    Ledger& other = same_ledger ? one : two;
                    const Kind kind = same_kind ? Kind::carry : Kind::slots;
                    Buffer<double> a = numbered(m, Kind::carry, one, 1.0), b = numbered(n, kind, other, 100.0);
                    parent.reset_peaks();
                    a.swap(b);
                    BOOST_CHECK_EQUAL(a.size(), n);
                    BOOST_CHECK_EQUAL(b.size(), m);
                    if (n > 0) BOOST_TEST(a[0] == 100.0);
                    if (m > 0) BOOST_TEST(b[0] == 1.0);
                    BOOST_TEST((a.kind() == Kind::carry && b.kind() == kind));
                    Bytes wanted;
                    wanted[Kind::carry] += 8 * n;
                    wanted[kind] += 8 * m;
                    BOOST_TEST((parent.live() == wanted));
                    BOOST_CHECK_EQUAL(one.live_total(), same_ledger ? 8 * (m + n) : 8 * n);
                    BOOST_CHECK_EQUAL(parent.peak_total(), 8 * (m + n));  // no transient peak
                    a.release();
                    b.release();
                    BOOST_CHECK_EQUAL(parent.live_total(), 0);
                    BOOST_CHECK_EQUAL(one.live_total(), 0);
                    BOOST_CHECK_EQUAL(two.live_total(), 0);
                }
            }
}

BOOST_AUTO_TEST_CASE(unbound_buffers_swap_and_copy) {
    Buffer<double> a, b;
    a.rebook(Kind::slots);
    b.rebook(Kind::tape);
    swap(a, b);
    a = b;
    const Buffer<double> c(a);
    BOOST_TEST(c.empty());
    BOOST_TEST((a.kind() == Kind::slots && b.kind() == Kind::tape));

    Ledger ledger;
    Buffer<double> full = numbered(4, Kind::carry, ledger);
    swap(a, full);
    BOOST_CHECK_EQUAL(ledger.live()[Kind::slots], 32);
    BOOST_CHECK_EQUAL(ledger.live_total(), 32);
}

BOOST_AUTO_TEST_CASE(moves_hold_no_second_copy) {
    static_assert(std::is_nothrow_move_constructible_v<Buffer<double>> &&
                  std::is_nothrow_move_assignable_v<Buffer<double>>);
    Ledger ledger;
    Buffer<double> a = numbered(9, Kind::carry, ledger), b = numbered(9, Kind::slots, ledger, 50.0);
    ledger.reset_peaks();
    Buffer<double> c(std::move(a));
    BOOST_TEST(a.empty());
    c = std::move(b);
    BOOST_TEST(c[0] == 50.0);
    BOOST_TEST((c.kind() == Kind::carry));
    BOOST_CHECK_EQUAL(ledger.live()[Kind::carry], 72);
    BOOST_CHECK_EQUAL(ledger.live()[Kind::slots], 0);
    BOOST_CHECK_EQUAL(ledger.peak_total(), 144);
    std::swap(a, c);
    BOOST_TEST(a[0] == 50.0);
    BOOST_CHECK_EQUAL(ledger.peak_total(), 144);
}

BOOST_AUTO_TEST_CASE(rebook_moves_live_bytes_and_marks_later_ones) {
    Ledger ledger;
    Buffer<double> b(5, Kind::carry, ledger);
    b.rebook(Kind::slots);
    BOOST_CHECK_EQUAL(ledger.live()[Kind::carry], 0);
    BOOST_CHECK_EQUAL(ledger.live()[Kind::slots], 40);
    b.resize(6);
    BOOST_CHECK_EQUAL(ledger.live()[Kind::slots], 48);
    BOOST_CHECK_EQUAL(ledger.peak_total(), 48);
}
