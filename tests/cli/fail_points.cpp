// The program dies, or meets a full disk, at every write, fsync and rename in turn: a snapshot can always be read once
// there was one, and the resumed run ends with the bits of one that nobody disturbed.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE cli_fail_points
#include "support/unit_test.hpp"

#include "base/fail_point.hpp"
#include "cli/program.hpp"

#include <cstdlib>

using namespace backsweep::test;

namespace {

const std::string plain = small_config("updates = 4", "[output]\nsnapshot_every = 1\n");
/// Of 7 links an update, with states on disk and commits.
const std::string committing =
    small_config("updates = 2\nshards = 1",
                 "[memory]\ntime_axis = \"6 kB\"\ndisk = \"1 MB\"\ncommit_links = 5\n[output]\nsnapshot_every = 1\n",
                 "batch = 4\nwindow = 21");

/// Runs it once for every point, with this fault there, and goes on; `check` looks at what the faulty run answered.
/// Answers how many points there are.
template <class F>
int at_every_point(const std::string& config, const std::string& fault, F check) {
    const Scratch scratch;
    write_file(scratch.path() / "text.txt", some_text(1500));
    write_file(scratch.path() / "config.toml", config);
    BOOST_TEST_REQUIRE(run_program({"train", "config.toml", "--out", "whole"}, scratch.path()).code == 0);
    BOOST_TEST((text_of_file(scratch.path() / "whole/config.toml").find("disk_slots") != std::string::npos) ==
               (config == committing));
    const auto whole = tensors(scratch.path() / "whole");

    int points = 0;
    bool went_wrong = true;
    while (went_wrong) {
        const std::string name = "run" + std::to_string(++points);
        BOOST_TEST_CONTEXT("fail point " << points << fault) {
            ::setenv("BACKSWEEP_FAIL_POINT", ("any:" + std::to_string(points) + fault).c_str(), 1);
            const Answer first = run_program({"train", "config.toml", "--out", name}, scratch.path());
            ::unsetenv("BACKSWEEP_FAIL_POINT");
            went_wrong = first.code != 0;
            if (went_wrong) {
                check(first);
                const auto folder = scratch.path() / name / "snapshots";
                if (!backsweep::snapshots(folder).empty()) BOOST_CHECK_NO_THROW(backsweep::read_newest(folder));
                const Answer again = run_program({"train", "config.toml", "--out", name, "--resume"}, scratch.path());
                BOOST_TEST(again.code == 0, again.err);
            }
            BOOST_TEST((tensors(scratch.path() / name) == whole));
            if (const auto left = scratch.path() / name / "scratch"; fs::exists(left)) BOOST_TEST(fs::is_empty(left));
        }
        std::filesystem::remove_all(scratch.path() / name);
        BOOST_TEST_REQUIRE(points < 500);
    }
    BOOST_TEST_MESSAGE(points - 1 << " points");
    return points - 1;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_write_fsync_and_rename) {
    const auto died = [](const Answer& a) { BOOST_TEST(a.code == backsweep::fail_point_status, a.err); };
    BOOST_TEST(at_every_point(plain, "", died) >= 4 * 3);  // four snapshots of a write, an fsync and a rename at least
    BOOST_TEST(at_every_point(committing, "", died) >= 2 * (3 + 3 * 2));  // a commit writes and forces the disk
}

// Write errors ignored.
BOOST_AUTO_TEST_CASE(g29_a_full_disk_at_every_write_fsync_and_rename) {
    BOOST_TEST(at_every_point(committing, ":full", [](const Answer& a) {
                   BOOST_TEST_CONTEXT(a.err) {
                       BOOST_CHECK_EQUAL(a.code, 1);
                       for (const char* part : {"No space left on device", "/run"}) BOOST_TEST(a.says(part), part);
                   }
               }) >= 2 * (3 + 3 * 2));
}
