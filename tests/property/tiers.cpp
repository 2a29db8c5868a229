// The gradient has the same bits under every schedule over tiers, slower tiers being stores of bytes; a counting link
// sees what the schedule was predicted to do.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE property_tiers
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/multistage.hpp"
#include "backsweep/schedule/periodic_disk.hpp"
#include "backsweep/schedule/tiered_revolve.hpp"
#include "backsweep/schedule/two_level.hpp"
#include "support/counting_chain.hpp"
#include "support/every_schedule.hpp"
#include "support/toy_chains.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;
using test::Flavour;
using test::Oscillator;

namespace {

struct Predicted {
    std::string name;
    std::unique_ptr<Schedule> schedule;
    Index advances;
    Index writes;  // to all tiers
    Index reads;
};

Predicted predicted(std::string name, const MultistageOptions& options) {
    const MultistageCounts counts = multistage_counts(options);
    Predicted each{std::move(name), multistage(options), counts.advances, 0, 0};
    for (const Index count : counts.writes) each.writes += count;
    for (const Index count : counts.reads) each.reads += count;
    return each;
}

std::vector<Predicted> over_tiers(Index n, bool needs_state) {
    std::vector<Predicted> all;
    MultistageOptions levels;
    levels.steps = n;
    levels.needs_state = needs_state;
    levels.levels = {{Tier::ram, 2}, {Tier::disk, 3, 2.0, 1.0}};
    all.push_back(predicted("two levels", levels));
    levels.levels = {{Tier::ram, 1, 0.25, 0.5}, {Tier::pinned, 2, 0.5, 0.75}, {Tier::disk, 2, 2.0, 1.0}};
    all.push_back(predicted("three levels", levels));
    levels.levels = {{Tier::ram, 2}, {Tier::disk, -1, 2.0, 1.0}};
    all.push_back(predicted("disk without limit", levels));
    levels.reads = LevelReads::one;
    all.push_back(predicted("disk without limit, read once", levels));
    for (const SweepRule rule : {SweepRule::fewest_writes, SweepRule::maximum}) {
        TieredRevolveOptions options;
        options.steps = n;
        options.ram_slots = 2;
        options.disk_slots = 2;
        options.rule = rule;
        options.needs_state = needs_state;
        const TieredRevolveCounts counts = tiered_revolve_counts(options);
        Predicted each{"tiered revolve", tiered_revolve(options), counts.advances, 0, 0};
        for (const Index count : counts.writes) each.writes += count;
        for (const Index count : counts.reads) each.reads += count;
        all.push_back(std::move(each));
    }
    for (const Index period : {0, 1, 4}) {
        PeriodicDiskOptions options;
        options.steps = n;
        options.ram_slots = 2;
        options.write = 2.0;
        options.read = 1.0;
        options.period = period;
        options.needs_state = needs_state;
        const PeriodicDiskCounts counts = periodic_disk_counts(options);
        all.push_back({"periodic disk " + std::to_string(period), periodic_disk(options), counts.advances,
                       counts.disk_writes + counts.ram_writes, counts.disk_reads + counts.ram_reads});
    }
    return all;
}

std::vector<double> joined(const std::vector<double>& adjoint, const std::array<double, 5>& parameters) {
    std::vector<double> all = adjoint;
    all.insert(all.end(), parameters.begin(), parameters.end());
    return all;
}

template <Flavour f>
std::vector<double> by_hand(Oscillator<f>& chain) {
    chain.gradient = {};
    const std::vector<double> a = adjoint_by_hand(chain);
    return joined(a, chain.gradient);
}

template <Flavour f>
void same_over_tiers() {
    for (const Index n : {1, 2, 3, 7, 37}) {
        Oscillator<f> chain(n);
        const std::vector<double> wanted = by_hand(chain);
        for (const double g : wanted) BOOST_TEST_REQUIRE((std::isfinite(g) && g != 0.0));
        for (auto& [name, schedule, advances, writes, reads] : over_tiers(n, Oscillator<f>::needs_state)) {
            BOOST_TEST_CONTEXT(n << " links, " << name) {
                RamStore pinned;
                RamStore disk;
                test::Counting counting(chain);
                Execution run(counting, std::move(schedule));
                run.use(Tier::pinned, pinned);
                run.use(Tier::disk, disk);
                for (int round = 0; round < 2; ++round) {
                    chain.gradient = {};
                    counting.restart();
                    run.forward();
                    run.backward();
                    BOOST_TEST(test::same_bits(joined(run.adjoint(), chain.gradient), wanted));
                    BOOST_CHECK_EQUAL(counting.advances, advances);
                    BOOST_CHECK_EQUAL(counting.records, n);
                    BOOST_CHECK_EQUAL(run.counts().saves, writes);
                    BOOST_CHECK_EQUAL(run.counts().loads, reads);
                }
            }
        }
    }
}

/// A chain that does not know its length: an advance stops at the end.
class Unannounced : public Oscillator<> {
public:
    explicit Unannounced(Index links) : Oscillator<>(links), links_(links) {}
    std::optional<Index> length() const { return std::nullopt; }
    Index advance(Range r, State& x) {
        r.last = std::min(r.last, links_);
        advances += r.size();
        return Oscillator<>::advance(r, x);
    }
    Index advances = 0;

private:
    Index links_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(plain_chain) {
    same_over_tiers<Flavour::plain>();
}

BOOST_AUTO_TEST_CASE(chain_whose_keep_spoils_the_state) {
    same_over_tiers<Flavour::keeps>();
}

BOOST_AUTO_TEST_CASE(chain_whose_reverse_reads_the_state) {
    same_over_tiers<Flavour::needs_state>();
}

BOOST_AUTO_TEST_CASE(two_level_on_a_chain_of_unknown_length) {
    for (const Index n : {0, 1, 2, 5, 10, 37}) {
        for (const Index period : {1, 3, 5, 50}) {
            for (const Index extra : {0, 1, 2, 9}) {
                BOOST_TEST_CONTEXT(n << " links, period " << period << ", " << extra << " extra slots") {
                    Oscillator<> known(n);
                    const std::vector<double> wanted = by_hand(known);
                    Unannounced chain(n);
                    TwoLevelOptions options;
                    options.period = period;
                    options.extra_slots = extra;
                    RamStore disk;
                    Execution run(chain, two_level(options));
                    run.use(Tier::disk, disk);
                    for (int round = 0; round < 2; ++round) {
                        chain.gradient = {};
                        chain.advances = 0;
                        run.forward();
                        run.backward();
                        BOOST_TEST(test::same_bits(joined(run.adjoint(), chain.gradient), wanted));
                        BOOST_CHECK_EQUAL(chain.advances, two_level_counts(options, n).advances);
                        BOOST_CHECK_EQUAL(run.counts().reversed, n);
                    }
                }
            }
        }
    }
}
