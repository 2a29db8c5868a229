// A program of many sweeps that is killed a hundred times at random moments gives the bits of one that is not.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_restart_random
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/tiered_revolve.hpp"
#include "backsweep/store/disk_store.hpp"
#include "support/killed_sweep.hpp"
#include "support/toy_chains.hpp"

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr Index links = 600, width = 4000;

std::unique_ptr<Schedule> schedule() {
    ScheduleOptions o{.family = "tiered_revolve", .steps = links};
    o.levels = {{Tier::ram, 2}, {Tier::disk, 6}};
    return make_schedule(o);
}

/// One sweep; told.values: a few of the adjoint's numbers, and one that depends on all.
int sweep(const std::filesystem::path& folder, std::uint64_t number, Told& told) {
    DiskStore disk({.folder = folder, .slots = 6, .slot_bytes = 8 * width + 40, .keep = true, .run = 11});
    Journal journal({.path = folder / "journal", .run = 11});
    Field chain(links, width);
    Execution run(chain, schedule());
    run.use(Tier::disk, disk);
    run.commit_to(journal, {.links = number % 2 == 0 ? 20 : 0, .seconds = number % 2 == 0 ? 0.0 : 0.01});
    const Recovery found = run.recover(number);
    told.from = found.from;
    told.at = found.at;
    run.backward();
    double all = 0.0;
    for (const double v : run.adjoint().u.span()) all += v * v;
    told.take(run.adjoint().u.span().first(20));
    told.take(std::array{all});
    return 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_hundred_kills) {
    Shared told(1);
    const auto run = [&](const std::filesystem::path& folder, std::uint64_t number) {
        told[0] = {};
        return start_process([&, number] { return sweep(folder, number, told[0]); });
    };
    const Scratch alone;
    const auto begin = std::chrono::steady_clock::now();
    BOOST_TEST_REQUIRE(end_of(run(alone.path(), 0)) == 0);
    const std::chrono::duration<double> once = std::chrono::steady_clock::now() - begin;
    const std::vector<double> wanted = told[0].numbers();

    const Scratch scratch;
    std::mt19937_64 random(2026);
    std::uniform_real_distribution<double> moment(0.0, 0.5);
    int kills = 0;
    Index on_the_way = 0;
    for (std::uint64_t number = 0; kills < 100; ++number) {
        for (;;) {
            const pid_t process = run(scratch.path(), number);
            std::this_thread::sleep_for(once * moment(random));
            if (kills < 100) ::kill(process, SIGKILL);
            const int end = end_of(process);
            on_the_way += told[0].from != Recovery::From::start;
            if (end == 0) break;
            BOOST_TEST_REQUIRE(end == -SIGKILL);
            ++kills;
        }
        BOOST_TEST_REQUIRE(same_bits(told[0].numbers(), wanted), "sweep " << number);
    }
    BOOST_TEST(on_the_way > 50);
    BOOST_TEST_MESSAGE(kills << " kills, " << on_the_way << " processes went on");
}
