// G06: a process that saves a 20 MB model again and again is killed at random moments; a whole snapshot is always
// there.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE snapshot_kill
#include "support/unit_test.hpp"

#include "backsweep/base/random.hpp"
#include "backsweep/train/snapshot.hpp"
#include "support/scratch.hpp"

#include <chrono>
#include <csignal>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace backsweep;

namespace {

constexpr Index size = 5'000'000;

/// Generation `update`: its numbers tell which it is.
Snapshot generation(Index update) {
    std::vector<float> weights(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = static_cast<float>(i % 1009) + static_cast<float>(update);
    Snapshot s;
    s.update = update;
    s.model.layers = {DenseSpec{.inputs = 1, .outputs = 1}};
    s.keep<float>("weight", {size}, std::move(weights));
    return s;
}

}  // namespace

BOOST_AUTO_TEST_CASE(g06_thirty_kills_at_random_moments) {
    const test::Scratch scratch;
    const auto begin = std::chrono::steady_clock::now();
    for (Index update = 0; update < 3; ++update) {
        Snapshot s = generation(update);
        save_snapshot(scratch.path(), s);
    }
    // How long a save takes depends on the disk: kills fall into the first three saves of a process.
    const std::chrono::duration<double> three_saves = std::chrono::steady_clock::now() - begin;
    const Random random(2024, 0);
    std::set<Index> found;
    int killed_in_save = 0;
    Index last = 2;
    for (std::uint64_t k = 0; k < 30; ++k) {
        const pid_t child = test::start_process([&] {
            for (Index update = last + 1;; ++update) {
                Snapshot s = generation(update);
                save_snapshot(scratch.path(), s);
            }
            return 0;
        });
        std::this_thread::sleep_for(three_saves * random.uniform(k, 0));
        ::kill(child, SIGKILL);
        BOOST_TEST_REQUIRE(test::end_of(child) == -SIGKILL);
        killed_in_save += scratch.files().back().ends_with(".tmp");

        const NewestSnapshot newest = read_newest(scratch.path());
        BOOST_TEST(newest.skipped.empty());
        BOOST_TEST_REQUIRE(newest.snapshot.update >= last);
        last = newest.snapshot.update;
        found.insert(last);
        std::vector<float> weights(static_cast<std::size_t>(size));
        newest.snapshot.read<float>("weight", weights);
        bool right = true;
        for (std::size_t i = 0; i < weights.size(); ++i)
            right = right && weights[i] == static_cast<float>(i % 1009) + static_cast<float>(last);
        BOOST_TEST(right);
    }
    BOOST_TEST(found.size() > 1U);
    BOOST_TEST(killed_in_save > 0);
    BOOST_TEST_MESSAGE(found.size() << " generations, " << killed_in_save << " kills within a save");
}
