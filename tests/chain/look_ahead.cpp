// An Execution tells its stores what it will read: most reads are announced before.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_look_ahead
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/chain/gradient_check.hpp"
#include "backsweep/schedule/periodic_disk.hpp"
#include "backsweep/store/ram_store.hpp"
#include "support/every_schedule.hpp"
#include "support/toy_chains.hpp"

#include <map>

using namespace backsweep;

namespace {

/// Remembers what was announced before it was read.
class Listening : public RamStore {
public:
    Index reads = 0, announced = 0;
    void expect(std::int32_t slot) override { ++waited_for_[slot]; }
    void read(std::int32_t slot, std::span<const Blob> blobs) override {
        ++reads;
        announced += waited_for_[slot] > 0;
        waited_for_[slot] = 0;
        RamStore::read(slot, blobs);
    }

private:
    std::map<std::int32_t, int> waited_for_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(reads_are_announced) {
    PeriodicDiskOptions o;
    o.steps = 500;
    o.ram_slots = 2;
    o.period = 7;
    test::Field chain(o.steps, 5);
    Listening store;
    Execution run(chain, periodic_disk(o));
    run.use(Tier::disk, store);
    for (int sweep = 0; sweep < 2; ++sweep) {
        store.reads = store.announced = 0;
        run.forward();
        run.backward();
        BOOST_CHECK_EQUAL(store.reads, periodic_disk_counts(o).disk_reads);
        BOOST_CHECK_EQUAL(store.announced, store.reads);
    }
    test::Field::Adjoint wanted = test::adjoint_by_hand(chain), found = run.adjoint();
    BOOST_TEST(detail::same_bits(found, wanted));
}
