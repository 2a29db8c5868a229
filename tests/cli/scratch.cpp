// What runs keep on disk besides their own folder: field cases G28 and G29, as a user meets them.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE cli_scratch
#include "support/unit_test.hpp"

#include "cli/place.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

using namespace backsweep::test;

namespace {

/// 32 links an update, of which one lies on the disk at least; for runs in folders of their own, but for `shared`.
std::string on_disk(const std::string& memory, int updates) {
    return small_config("updates = " + std::to_string(updates) + "\nshards = 2\nthreads = 2",
                        "[memory]\ntime_axis = \"16 kB\"\ndisk = \"1 MB\"\n" + memory, "batch = 4\nwindow = 96");
}
const std::string shared = "folder = \"shared\"\n", commits = "commit_links = 3\n";

std::vector<std::string> words(const std::string& run, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"train", "config.toml", "--out", run};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

std::vector<std::string> files_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(folder)) names.push_back(file.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

/// Waits until a process that was just started has something in the folder; false: it ended before.
bool works_in(const fs::path& folder, std::size_t files, pid_t program) {
    while (!fs::exists(folder) || files_in(folder).size() <= files) {
        siginfo_t ended{};
        if (::waitid(P_PID, static_cast<id_t>(program), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid != 0)
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(scratch)

// Two runs in one directory destroy each other's checkpoints.
BOOST_AUTO_TEST_CASE(g28_two_runs_and_one_scratch_folder) {
    for (const std::string& memory : {shared, shared + commits}) {
        const bool commit = memory != shared;
        const Place place(on_disk(memory, 12), some_text(6000));
        const fs::path folder = place.path() / "shared";
        for (const char* name : {"shard0", "shard0.slots", "shard0.journal.0", "notes"})
            write_file(folder / name, std::string("of ") + name);
        const std::vector<std::string> before = files_in(folder);
        BOOST_TEST_CONTEXT(memory) {
            place.train("alone");
            BOOST_TEST(text_of_file(place.path() / "alone/config.toml").find("disk_slots") != std::string::npos);
            BOOST_TEST((files_in(folder) == before));

            // Two at a time: without files that are to be found again both have the bits of the one that was alone;
            // with them the second is refused, and the first does not notice. One of another seed has files of its own.
            const pid_t first = start_program(words("first"), place.path());
            if (commit) BOOST_TEST_REQUIRE(works_in(folder, before.size(), first));
            const fs::path aside = place.path() / "aside";
            fs::create_directories(aside);
            const std::string other = "cd ..; \"$BACKSWEEP_PROGRAM\" train config.toml --out ";
            const Answer second = run_shell(other + "second", aside);
            const Answer third = run_shell(other + "third --set train.seed=5", aside);
            BOOST_TEST_CONTEXT(second.err) BOOST_CHECK_EQUAL(second.code, commit ? 1 : 0);
            BOOST_TEST_CONTEXT(third.err) BOOST_CHECK_EQUAL(third.code, 0);
            if (commit) {
                for (const char* part : {"shared/shard0-", "in use by another process", "name another folder"})
                    BOOST_TEST(second.says(part), second.err);
                BOOST_TEST(!fs::exists(place.path() / "second"));
            } else {
                check_same_end(place.path() / "alone", place.path() / "second");
            }
            BOOST_CHECK_EQUAL(end_of(first), 0);
            check_same_end(place.path() / "alone", place.path() / "first");
            BOOST_TEST((files_in(folder) == before));

            // One that is killed leaves what another process may go on from, and that stays until it has; one of
            // another seed that works there meanwhile does not touch it.
            const pid_t killed = start_program(words("killed"), place.path());
            while (!fs::exists(place.path() / "killed/metrics.jsonl") ||
                   fs::file_size(place.path() / "killed/metrics.jsonl") == 0)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            ::kill(killed, SIGKILL);
            if (end_of(killed) == -SIGKILL) BOOST_TEST((files_in(folder) != before) == commit);
            const std::vector<std::string> left = files_in(folder);
            place.train("fourth", {"train.seed=6"});
            BOOST_TEST((files_in(folder) == left));
            place.train("killed", {}, {"--resume"});
            BOOST_TEST((tensors(place.path() / "killed") == tensors(place.path() / "alone")));
            BOOST_TEST((files_in(folder) == before));

            // An error leaves nothing of a run that commits nothing, and nothing at all where it comes before the first
            // update.
            if (!commit) {
                const Answer failed = run_program(words("failed", {"--set", "optimizer.rate=1e38"}), place.path());
                BOOST_TEST_CONTEXT(failed.err) BOOST_CHECK_EQUAL(failed.code, 1);
                BOOST_TEST((files_in(folder) == before));
            }
            BOOST_CHECK_EQUAL(
                run_program(words("refused", {"--set", "output.eval_every=1", "--set", "data.split=[1,0,0]"}),
                            place.path())
                    .code,
                2);
            BOOST_TEST((files_in(folder) == before));
        }
        for (const std::string& name : before) BOOST_TEST(text_of_file(folder / name) == "of " + name);
    }
}

BOOST_AUTO_TEST_CASE(g28_two_runs_that_begin_at_once_in_one_folder) {
    for (const std::string& memory : {std::string(), commits}) {
        const Place place(on_disk(memory, 6), some_text(6000));
        place.train("alone");
        for (int again = 0; again < 5; ++again) {
            const std::string run = "run" + std::to_string(again);
            const fs::path aside = place.path() / "aside";
            fs::create_directories(aside);
            const pid_t one = start_program(words(run), place.path());
            const Answer two = run_shell("cd ..; \"$BACKSWEEP_PROGRAM\" train config.toml --out " + run, aside);
            const int end = end_of(one);
            BOOST_TEST_CONTEXT(memory << ": " << text_of_file(place.path() / "err") << two.err) {
                BOOST_TEST((end == 0) != (two.code == 0));
                const std::string said = end == 0 ? two.err : text_of_file(place.path() / "err");
                const bool clear = said.find("another process") != std::string::npos ||
                                   said.find("is not empty; --resume") != std::string::npos;
                BOOST_TEST(clear);
            }
            check_same_end(place.path() / "alone", place.path() / run);
            BOOST_TEST(fs::is_empty(place.path() / run / "scratch"));
        }
    }
}

// Write errors ignored: a limit on the size of files, which ulimit counts in 512 bytes.
BOOST_AUTO_TEST_CASE(g29_slots_journals_and_models_that_cannot_be_written) {
    for (const std::string& memory : {std::string(), commits}) {
        const Place place(on_disk(memory, 6), some_text(6000));
        const auto limited = [&](int blocks, const std::string& run, const std::string& more = "") {
            return run_shell("ulimit -f " + std::to_string(blocks) +
                                 "; \"$BACKSWEEP_PROGRAM\" train config.toml --out " + run + more,
                             place.path());
        };
        const auto refused = [](const Answer& answer, const std::vector<std::string>& parts) {
            BOOST_TEST_CONTEXT(answer.err) {
                BOOST_CHECK_EQUAL(answer.code, 1);
                for (const std::string& part : parts) BOOST_TEST(answer.says(part), part);
            }
        };
        BOOST_TEST_CONTEXT(memory) {
            // No room for slots: nothing has begun.
            refused(limited(8, "small"), {"small/scratch/shard0-", "File too large", " bytes aside in", "ulimit -f"});
            BOOST_TEST(!fs::exists(place.path() / "small/config.toml"));
            BOOST_TEST(fs::is_empty(place.path() / "small/scratch"));

            // No room for a model: the one before it stands, and serves.
            place.train("whole");
            place.train("run", {"train.updates=3"});
            const fs::path run = place.path() / "run";
            const auto three = tensors(run);
            refused(limited(40, "run", " --resume"), {"run/snapshots/snapshot-000000006", "File too large", " bytes"});
            BOOST_TEST((tensors(run) == three));
            BOOST_CHECK_EQUAL(backsweep::read_newest(run / "snapshots").snapshot.update, 3);
            BOOST_TEST(backsweep::read_newest(run / "snapshots").skipped.empty());
            BOOST_CHECK_EQUAL(run_program({"eval", "run"}, place.path()).code, 0);
            BOOST_TEST(fs::is_empty(run / "scratch"));
            place.train("run", {}, {"--resume"});
            BOOST_TEST((tensors(run) == tensors(place.path() / "whole")));
            BOOST_TEST((updates(run) == updates(place.path() / "whole")));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
