// A training that is killed in the middle of an update goes on there, and has the bits of one that nobody killed.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE restart
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/models.hpp"
#include "backsweep/train/planner.hpp"
#include "support/scratch.hpp"
#include "train/made_text.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr int killed = 77;
constexpr Index updates = 3;

ModelEnds ends() {
    ModelEnds e;
    e.vocabulary = e.outputs = 256;
    return e;
}
ModelSpec lstm() {
    return recurrent_model({ends(), 5, {.name = "rnn", .hidden = 7, .layers = 2}});
}
ModelSpec xl() {
    TransformerXl o;
    o.ends = ends();
    o.features = 8;
    o.layers = 2;
    o.heads = 2;
    o.memory = 5;
    return transformer_xl(o);
}

struct Case {
    const char* name;
    ModelSpec model;
    TrainOptions options;
};

std::vector<Case> cases(const std::string& folder) {
    TrainOptions o;
    o.shards = 2;
    o.seed = 5;
    o.chunk = 3;
    o.optimizer.rule = AdamSpec{};
    o.commit.links = 1;
    o.scratch.folder = folder;
    o.schedule = {.family = "revolve"};
    o.schedule.slots = 2;
    std::vector<Case> all{{"RAM alone", lstm(), o}, {"rows in a log", xl(), o}};
    all.push_back({"disk", lstm(), o});
    TrainOptions& disk = all.back().options;
    disk.budget.disk = 1 << 24;
    disk.schedule = {.family = "tiered_revolve"};
    disk.schedule.levels.resize(2);
    disk.schedule.levels[0].slots = 1;
    disk.schedule.levels[1].tier = Tier::disk;
    disk.schedule.levels[1].slots = 2;
    all.push_back({"rows in states, on disk", xl(), disk});
    all.back().options.plan_memories = false;
    all.back().options.memories.places.assign(2, MemoryPlace::state);
    all.push_back({"micro-batches and threads", lstm(), disk});
    all.back().options.micro_batches = 2;
    all.back().options.threads = 2;
    all.push_back({"look-back, every fifth link", lstm(), o});
    all.back().options.look_back = 6;
    all.back().options.commit.links = 5;
    return all;
}

std::vector<float> parameters(const Trainer<float>& trainer) {
    return {trainer.parameters().begin(), trainer.parameters().end()};
}
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
bool nothing_in(const std::string& folder) {
    return !std::filesystem::exists(folder) || std::filesystem::is_empty(folder);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(restart)

BOOST_AUTO_TEST_CASE(a_killed_update_goes_on_with_the_same_bits) {
    const Scratch scratch;
    const std::string folder = (scratch.path() / "s").string();
    const Text text(1 + 4 * (24 * updates + 11));
    const auto source = text.source<float>(4, 24);
    for (const Case& c : cases(folder)) {
        const Network<float> network = build<float>(c.model);
        std::vector<float> whole;
        std::vector<Bytes> bytes;
        Index actions = 0;
        double loss = 0.0;
        {
            Trainer<float> trainer(network, source, c.options);
            std::atomic<Index> counted{0};
            trainer.observe_actions([&](const Played&) { ++counted; });
            trainer.run(updates, [&](const UpdateReport& r) { loss = r.loss; });
            whole = parameters(trainer);
            bytes = {trainer.measured(), trainer.plan().predicted};
            actions = counted;
        }
        BOOST_TEST((bytes[0] == bytes[1]), c.name);
        BOOST_TEST(nothing_in(folder), c.name);
        Index in_the_middle = 0, on_disk = 0;
        const Index stride = std::max<Index>(1, actions * 2 / 3 / 13);
        for (Index kill = 1 + actions / 3; kill <= actions; kill += stride) {
            const std::string first = (scratch.path() / "first").string();
            if (const pid_t child = ::fork(); child == 0) {
                Trainer<float> trainer(network, source, c.options);
                trainer.run(1);
                Snapshot snapshot = trainer.snapshot();
                save_snapshot(first, snapshot);
                std::atomic<Index> counted{actions / 3};
                trainer.observe_actions([&](const Played&) {
                    if (++counted == kill) ::_exit(killed);
                });
                trainer.run(updates - 1);
                ::_exit(0);
            } else {
                int status = 0;
                BOOST_REQUIRE_EQUAL(::waitpid(child, &status, 0), child);
                BOOST_REQUIRE(WIFEXITED(status));
                if (WEXITSTATUS(status) == 0) break;
                BOOST_REQUIRE_EQUAL(WEXITSTATUS(status), killed);
            }
            BOOST_TEST_CONTEXT(c.name << ", killed at action " << kill << " of " << actions) {
                TrainOptions again = c.options;
                if (kill % 2 == 0) again.verify = TrainOptions::Verify::steps;  // may be switched on for a resumed run
                Trainer<float> trainer(network, source, again);
                trainer.restore(read_newest(first).snapshot);
                double last = 0.0;
                trainer.run(updates - 1, [&](const UpdateReport& r) { last = r.loss; });
                BOOST_TEST(same_bits(parameters(trainer), whole));
                BOOST_TEST(last == loss);
                BOOST_TEST(trainer.overrun() == "");
                for (const Recovery& r : trainer.recoveries()) {
                    in_the_middle += r.from != Recovery::From::start ? 1 : 0;
                    on_disk += r.states;
                }
            }
            BOOST_TEST(nothing_in(folder), c.name);
            std::filesystem::remove_all(first);
        }
        BOOST_TEST(in_the_middle > 0, c.name);
        BOOST_TEST((on_disk > 0) == (c.options.budget.disk != 0), c.name);
    }
}

BOOST_AUTO_TEST_CASE(what_another_run_left_is_not_taken) {
    const Scratch scratch;
    const Text text(1 + 4 * (24 * updates + 11));
    const auto source = text.source<float>(4, 24);
    const Case c = cases((scratch.path() / "s").string()).front();
    const Network<float> network = build<float>(c.model);
    if (const pid_t child = ::fork(); child == 0) {
        Trainer<float> trainer(network, source, c.options);
        trainer.run(1);
        std::atomic<Index> counted{0};
        trainer.observe_actions([&](const Played&) {
            if (++counted == 25) ::_exit(killed);
        });
        trainer.run(1);
        ::_exit(0);
    } else {
        int status = 0;
        BOOST_REQUIRE_EQUAL(::waitpid(child, &status, 0), child);
        BOOST_REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == killed);
    }
    TrainOptions o = c.options;
    o.rate.peak *= 2.0;  // the second update has other parameters
    Trainer<float> trainer(network, source, o);
    trainer.run(1);
    BOOST_CHECK_EXCEPTION(trainer.update(), InvalidArgument, [](const Error& e) {
        return std::string(e.what()).find("other parameters or data (update 2)") != std::string::npos;
    });
    BOOST_TEST(trainer.updates() == 1);
}

BOOST_AUTO_TEST_CASE(one_folder_serves_one_trainer_that_commits) {
    const Scratch scratch;
    const Text text(1 + 4 * 90);
    const auto source = text.source<float>(4, 24);
    const Case c = cases((scratch.path() / "s").string()).front();
    const Network<float> network = build<float>(c.model);
    Trainer<float> one(network, source, c.options);
    BOOST_CHECK_EXCEPTION(Trainer<float>(network, source, c.options), StoreError, [&](const StoreError& e) {
        return std::string(e.what()).find("/shard0-") != std::string::npos;
    });
    TrainOptions o = c.options;
    o.commit.links = -1;
    BOOST_CHECK_THROW(Trainer<float>(network, source, o), InvalidArgument);
    o = c.options;
    o.scratch.folder.clear();
    BOOST_CHECK_THROW(Trainer<float>(network, source, o), InvalidArgument);
}

// Of two that begin at once none may hold what the other wants and want what it holds.
BOOST_AUTO_TEST_CASE(files_are_opened_in_the_order_of_shards) {
    const Scratch scratch;
    const std::filesystem::path folder = scratch.path() / "s";
    const Text text(1 + 4 * 90);
    const auto source = text.source<float>(4, 24);
    const Case c = cases(folder.string())[4];
    const Network<float> network = build<float>(c.model);
    std::vector<std::filesystem::path> names;
    {
        const Trainer<float> made(network, source, c.options);
        for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path());
    }
    BOOST_TEST_REQUIRE(names.size() == 6);
    std::sort(names.begin(), names.end());  // of each shard both files of its journal, then its slots
    const int held = ::open(names[2].c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    BOOST_TEST_REQUIRE(::flock(held, LOCK_EX) == 0);
    BOOST_CHECK_EXCEPTION(Trainer<float>(network, source, c.options), StoreError, [&](const StoreError& e) {
        return std::string(e.what()).find(names[2].string() + "' is in use") != std::string::npos;
    });
    for (std::size_t k = 3; k < names.size(); ++k) BOOST_TEST(!std::filesystem::exists(names[k]), names[k]);
    ::close(held);
}

BOOST_AUTO_TEST_SUITE_END()
