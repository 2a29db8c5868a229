// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE log
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/base/log.hpp"
#include "support/scratch.hpp"

#include <string>

using namespace backsweep;
using backsweep::test::Scratch;

BOOST_AUTO_TEST_SUITE(append_only)

BOOST_AUTO_TEST_CASE(in_ram_all_elements_are_booked) {
    Ledger ledger;
    {
        Log<double> log(ledger);
        log.reserve(1000, 10);
        log.data()[999] = 2.5;
        log.resident(0, 10);
        BOOST_TEST(log.data()[999] == 2.5);
        BOOST_TEST(ledger.live()[Kind::log] == 8000);
    }
    BOOST_TEST(ledger.live().total() == 0);
    BOOST_TEST(ledger.peak()[Kind::log] == 8000);
}

// What is let go of comes back out of the file; no name stays in the folder, not even while it is used.
BOOST_AUTO_TEST_CASE(in_a_file_the_resident_ones_are) {
    const Scratch folder;
    Ledger ledger;
    constexpr Index size = 100003;
    {
        Log<double> log(ledger, folder.path().string());
        log.reserve(size, 1000);
        BOOST_TEST(ledger.live()[Kind::log] == 8000);
        for (Index k = 0; k < size; ++k) log.data()[k] = 0.5 * static_cast<double>(k);
        log.resident(50001, 51001);
        Index wrong = 0;
        for (Index k = 0; k < size; ++k) wrong += log.data()[k] != 0.5 * static_cast<double>(k);
        BOOST_TEST(wrong == 0);
        BOOST_TEST(folder.files().empty());
        Log<double> moved(std::move(log));
        BOOST_TEST(moved.data()[7] == 3.5);
        moved.reserve(10, 10);  // there is room already
        BOOST_TEST(moved.data()[7] == 3.5);
        moved.reserve(3 * size, 2000);
        BOOST_TEST(ledger.live()[Kind::log] == 16000);
    }
    BOOST_TEST(ledger.live().total() == 0);
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_hold_it_is_an_error) {
    Ledger ledger;
    Log<double> nowhere(ledger, "/nonexistent-folder");
    const auto says = [](const char* what) {
        return [what](const Error& e) { return std::string(e.what()).find(what) != std::string::npos; };
    };
    BOOST_CHECK_EXCEPTION(nowhere.reserve(8, 8), StoreError, says("/nonexistent-folder"));
    const Scratch folder;
    Log<double> vast(ledger, folder.path().string());
    BOOST_CHECK_EXCEPTION(vast.reserve(Index{1} << 50, 8), StoreError, says("no room"));
    BOOST_TEST(folder.files().empty());
    BOOST_TEST(ledger.live().total() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
