// Kills without warning at random moments: a snapshot can always be read, and the resumed run ends with the bits of one
// that nobody disturbed.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE cli_kill
#include "support/unit_test.hpp"

#include "cli/program.hpp"

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

using namespace backsweep::test;

BOOST_AUTO_TEST_CASE(g06_thirty_kills) {
    constexpr int kills = 30;
    const Scratch scratch;
    write_file(scratch.path() / "text.txt", some_text(20000));
    write_file(scratch.path() / "config.toml",
               small_config("updates = 6000", "[optimizer]\nrate = 0.01\n[output]\nsnapshot_every = 1\n",
                            "batch = 5\nwindow = 30"));
    const std::vector<std::string> whole{"train", "config.toml", "--out", "whole"};
    const auto from = std::chrono::steady_clock::now();
    BOOST_CHECK_EQUAL(end_of(start_program(whole, scratch.path())), 0);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();

    // Each life lasts a random part of what a thirtieth of the run takes, beside the start of the process: a third of the
    // run in all, for the machine may be three times as fast as it was a moment ago.
    std::mt19937 random(20240229);
    std::uniform_real_distribution<double> life(0.0, 0.6 * seconds / kills);
    const std::vector<std::string> resume{"train", "config.toml", "--out", "killed", "--resume"};
    const auto folder = scratch.path() / "killed/snapshots";
    int killed = 0, loadable = 0;
    backsweep::Index reached = 0;
    for (; killed < kills; ++killed) {
        const pid_t program = start_program(resume, scratch.path());
        std::this_thread::sleep_for(std::chrono::duration<double>(0.03 + life(random)));
        ::kill(program, SIGKILL);
        const int end = end_of(program);
        if (end == 0) break;  // it was faster
        BOOST_CHECK_EQUAL(end, -SIGKILL);
        if (backsweep::snapshots(folder).empty()) {
            BOOST_CHECK_EQUAL(reached, 0);  // killed before the first
            continue;
        }
        const backsweep::Index update = backsweep::read_newest(folder).snapshot.update;
        BOOST_TEST(update >= reached);
        reached = update;
        ++loadable;
    }
    BOOST_TEST_MESSAGE(killed << " kills, " << loadable << " with a snapshot, the last at update " << reached);
    BOOST_CHECK_EQUAL(killed, kills);
    BOOST_TEST(loadable > kills / 2);
    BOOST_TEST(reached > 0);
    BOOST_CHECK_EQUAL(end_of(start_program(resume, scratch.path())), 0);
    BOOST_TEST((tensors(scratch.path() / "whole") == tensors(scratch.path() / "killed")));
    const auto losses = [&](const char* run) {
        std::vector<double> all;
        for (const auto& line : metrics(scratch.path() / run)) all.push_back(line.at("loss").get<double>());
        return all;
    };
    BOOST_TEST((losses("whole") == losses("killed")));
}
