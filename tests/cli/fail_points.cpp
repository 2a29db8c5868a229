// The program dies at every write, fsync and rename in turn: a snapshot can always be read once there was one, and the
// resumed run ends with the bits of one that nobody disturbed.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE cli_fail_points
#include "support/unit_test.hpp"

#include "base/fail_point.hpp"
#include "cli/program.hpp"

#include <cstdlib>

using namespace backsweep::test;

BOOST_AUTO_TEST_CASE(every_write_fsync_and_rename) {
    const Scratch scratch;
    write_file(scratch.path() / "text.txt", some_text(1500));
    write_file(scratch.path() / "config.toml", small_config("updates = 4", "[output]\nsnapshot_every = 1\n"));
    BOOST_TEST_REQUIRE(run_program({"train", "config.toml", "--out", "whole"}, scratch.path()).code == 0);
    const auto whole = tensors(scratch.path() / "whole");

    int points = 0;
    bool died = true;
    while (died) {
        const std::string name = "run" + std::to_string(++points);
        BOOST_TEST_CONTEXT("fail point " << points) {
            ::setenv("BACKSWEEP_FAIL_POINT", ("any:" + std::to_string(points)).c_str(), 1);
            const Answer first = run_program({"train", "config.toml", "--out", name}, scratch.path());
            ::unsetenv("BACKSWEEP_FAIL_POINT");
            died = first.code == backsweep::fail_point_status;
            if (!died) {
                BOOST_CHECK_EQUAL(first.code, 0);
            } else {
                const auto folder = scratch.path() / name / "snapshots";
                if (!backsweep::snapshots(folder).empty()) BOOST_CHECK_NO_THROW(backsweep::read_newest(folder));
                const Answer again = run_program({"train", "config.toml", "--out", name, "--resume"}, scratch.path());
                BOOST_TEST(again.code == 0, again.err);
            }
            BOOST_TEST((tensors(scratch.path() / name) == whole));
        }
        std::filesystem::remove_all(scratch.path() / name);
        BOOST_TEST_REQUIRE(points < 500);
    }
    BOOST_TEST_MESSAGE(points - 1 << " points");
    BOOST_TEST(points - 1 >= 4 * 3);  // four snapshots of a write, an fsync and a rename at least
}
