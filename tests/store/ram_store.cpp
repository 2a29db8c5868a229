// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE store_ram_store
#include "support/unit_test.hpp"

#include "backsweep/store/ram_store.hpp"
#include "support/fault_store.hpp"
#include "support/store_laws.hpp"

#include <limits>

using namespace backsweep;

BOOST_AUTO_TEST_CASE(it_obeys_the_laws_and_gives_every_byte_back) {
    Ledger ledger;
    RamStore store(ledger);
    test::check_store(store);
    BOOST_CHECK_EQUAL(ledger.live_total(), 0);
    BOOST_TEST(ledger.peak()[Kind::slots] >= 100003);
    BOOST_CHECK_EQUAL(ledger.peak_total(), ledger.peak()[Kind::slots]);
}

BOOST_AUTO_TEST_CASE(it_books_exactly_what_it_holds) {
    Ledger ledger;
    {
        RamStore store(ledger);
        std::vector<std::byte> bytes = test::some_bytes(100, 1);
        const Blob all{bytes.data(), 100}, half{bytes.data(), 50};
        store.write(0, {&all, 1});
        store.write(std::numeric_limits<std::int32_t>::max(), {&half, 1});
        BOOST_CHECK_EQUAL(ledger.live()[Kind::slots], 150);
        store.write(0, {&all, 1});  // not twice at once
        BOOST_CHECK_EQUAL(ledger.peak_total(), 150);
        store.erase(0);
        BOOST_CHECK_EQUAL(ledger.live_total(), 50);
    }
    BOOST_CHECK_EQUAL(ledger.live_total(), 0);
}

BOOST_AUTO_TEST_CASE(the_fault_store_obeys_them_too_until_its_fault) {
    test::FaultStore store(test::FaultStore::Fault::fails, 0);
    test::check_store(store);
    BOOST_CHECK_EQUAL(store.full(), 0u);
}

BOOST_AUTO_TEST_CASE(errors_say_what_came) {
    RamStore store;
    std::vector<std::byte> bytes = test::some_bytes(10, 1);
    const Blob all{bytes.data(), 10}, less{bytes.data(), 9};
    store.write(4, {&all, 1});
    BOOST_CHECK_EXCEPTION(store.read(4, {&less, 1}), StoreError, [](const StoreError& e) {
        return std::string(e.what()) ==
               "RamStore: slot 4 holds 10 bytes, but 9 were asked for; read it into an object of the same shape";
    });
    BOOST_CHECK_EXCEPTION(store.read(5, {&less, 1}), StoreError, [](const StoreError& e) {
        return std::string(e.what()) == "RamStore: slot 5 is empty; write it before it is read";
    });
}
