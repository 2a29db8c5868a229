// A store that fails, cuts or flips a bit: a StoreError each time, nothing leaked, nothing lost.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_faults
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/chain/gradient_check.hpp"
#include "support/every_schedule.hpp"
#include "support/fault_store.hpp"
#include "support/toy_chains.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

using namespace backsweep;
using test::FaultStore;
using test::Spilled;

namespace {

constexpr Index links = 14;

/// Changes the last bit of one byte of the header at the k-th write.
class Renaming : public RamStore {
public:
    std::size_t byte = 0;
    Index at_write = 0;
    Index writes = 0;
    void write(std::int32_t slot, std::span<const Blob> blobs) override {
        std::vector<std::byte> header(blobs[0].data, blobs[0].data + blobs[0].size);
        if (++writes == at_write) header[byte] ^= std::byte{1};
        std::vector<Blob> all(blobs.begin(), blobs.end());
        all[0].data = header.data();
        RamStore::write(slot, all);
    }
};

auto says(std::string words) {
    return [words](const StoreError& e) { return std::string(e.what()).find(words) != std::string::npos; };
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_write_may_go_wrong_in_every_way) {
    Ledger ledger;
    test::Field chain(links, 5, ledger);
    test::Field::Adjoint wanted = test::adjoint_by_hand(chain);
    const auto make = [](int kind) -> std::unique_ptr<Schedule> {
        if (kind == 0) return std::make_unique<Spilled>(revolve(links, 4), 1);
        if (kind == 1) return std::make_unique<Spilled>(periodic(links, 4), 2);
        return std::make_unique<Spilled>(store_all(links), 0);
    };
    for (const FaultStore::Fault fault :
         {FaultStore::Fault::fails, FaultStore::Fault::truncates, FaultStore::Fault::flips_a_bit})
        for (int kind = 0; kind < 3; ++kind) {
            FaultStore sound(fault, 0);
            Execution counted(chain, make(kind));
            counted.use(Tier::disk, sound);
            counted.forward();
            counted.backward();
            const Index writes = sound.writes;
            BOOST_TEST(writes >= 3);
            for (Index k = 1; k <= writes; ++k) {
                BOOST_TEST_CONTEXT("fault " << static_cast<int>(fault) << ", schedule " << kind << ", write " << k) {
                    const std::int64_t before = ledger.live_total();
                    {
                        FaultStore store(fault, k, 1000, ledger);
                        Execution run(chain, make(kind));
                        run.use(Tier::disk, store);
                        const auto sweep = [&] {
                            run.forward();
                            run.backward();
                        };
                        BOOST_CHECK_THROW(sweep(), StoreError);
                        BOOST_TEST(store.writes >= k);
                        sweep();  // the fault happens once
                        BOOST_TEST(detail::same_bits(run.adjoint(), wanted));
                        BOOST_CHECK_EQUAL(store.full(), 0u);
                        store.writes = k - 1;
                        BOOST_CHECK_THROW(sweep(), StoreError);  // and is left behind
                    }
                    BOOST_CHECK_EQUAL(ledger.live_total(), before);
                }
            }
        }
}

BOOST_AUTO_TEST_CASE(every_single_bit_matters) {
    test::Field chain(3, 2);  // header of 40 bytes, state of 16
    for (std::size_t bit = 0; bit < 8 * 56; ++bit) {
        BOOST_TEST_CONTEXT("bit " << bit) {
            FaultStore store(FaultStore::Fault::flips_a_bit, 1, bit);
            Execution run(chain, std::make_unique<Spilled>(revolve(3, 1), 0));
            run.use(Tier::disk, store);
            run.forward();
            BOOST_CHECK_EXCEPTION(run.backward(), StoreError, says("disk slot 0 should hold the state of step 0"));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_failed_write_leaves_nothing_in_the_store_that_outlives_the_run) {
    test::Field chain(links, 5);
    FaultStore store(FaultStore::Fault::fails, 2);
    {
        Execution run(chain, std::make_unique<Spilled>(revolve(links, 4), 0));
        run.use(Tier::disk, store);
        BOOST_CHECK_EXCEPTION(run.forward(), StoreError, says("write 2"));
        BOOST_CHECK_EQUAL(store.full(), 1u);  // the first, until the run goes
    }
    BOOST_CHECK_EQUAL(store.full(), 0u);
}

BOOST_AUTO_TEST_CASE(a_wrong_slot_is_named_by_both_steps) {
    test::Field chain(links, 5);
    const auto run_with = [&](std::size_t byte, const char* words) {
        Renaming store;
        store.byte = byte;
        store.at_write = 2;
        Execution run(chain, std::make_unique<Spilled>(revolve(links, 3), 0));
        run.use(Tier::disk, store);
        run.forward();
        BOOST_CHECK_EXCEPTION(run.backward(), StoreError, says(words));
    };
    Index second = 0;
    {
        const std::unique_ptr<Schedule> schedule = revolve(links, 3);
        for (Action a = schedule->next(); a.verb != Verb::done; a = schedule->next())
            if (a.verb == Verb::save && a.steps.first > 0 && second == 0) second = a.steps.first;
    }
    const std::string expected = "disk slot 1 should hold the state of step " + std::to_string(second) +
                                 ", but its header says the state of step " + std::to_string(second ^ 1);
    run_with(8, expected.c_str());
    run_with(0, "header was not written by Backsweep");
    run_with(24, "content is damaged");
    run_with(32, "content is damaged");
}
