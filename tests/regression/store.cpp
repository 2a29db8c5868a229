// Field cases of the disk store; numbers and expected values as in the collection of field cases.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE regression_store
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/chain/gradient_check.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/store/disk_store.hpp"
#include "backsweep/store/journal.hpp"
#include "support/every_schedule.hpp"
#include "support/fault_store.hpp"
#include "support/scratch.hpp"
#include "support/store_laws.hpp"
#include "support/toy_chains.hpp"

#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

constexpr Index links = 60;
constexpr std::int64_t slot_bytes = 1000;

DiskStoreOptions options_in(const std::filesystem::path& folder) {
    DiskStoreOptions o;
    o.folder = folder;
    o.slots = 8;
    o.slot_bytes = slot_bytes;
    return o;
}

/// A sweep all of whose slots but one lie on the disk: whether the gradient is the right one.
bool sweeps(const DiskStoreOptions& o) {
    test::Field chain(links, 20);
    DiskStore store(o);
    Execution run(chain, std::make_unique<test::Spilled>(revolve(links, 6), 1));
    run.use(Tier::disk, store);
    run.forward();
    run.backward();
    test::Field::Adjoint wanted = test::adjoint_by_hand(chain), found = run.adjoint();
    return store.traffic().writes > 20 && detail::same_bits(found, wanted);
}

bool says(const StoreError& e, std::vector<std::string> words) {
    for (const std::string& w : words)
        if (std::string(e.what()).find(w) == std::string::npos) return false;
    return true;
}

}  // namespace

// Two runs in one directory destroy each other's checkpoints.
BOOST_AUTO_TEST_CASE(G28) {
    const test::Scratch scratch;
    std::ofstream(scratch.path() / "slots") << "was here before";
    std::ofstream(scratch.path() / "slots-000000") << "this too";
    const std::vector<std::string> before = scratch.files();

    std::vector<pid_t> processes;
    for (int i = 0; i < 2; ++i) {
        processes.push_back(test::start_process([&] {
            std::filesystem::current_path(scratch.path());
            for (int sweep = 0; sweep < 20; ++sweep)
                if (!sweeps(options_in("."))) return 1;
            return 0;
        }));
    }
    for (const pid_t p : processes) BOOST_CHECK_EQUAL(test::end_of(p), 0);
    BOOST_TEST((scratch.files() == before));

    const auto thrown = [&] {
        DiskStore store(options_in(scratch.path()));
        std::vector<std::byte> bytes = test::some_bytes(slot_bytes, 1);
        const Blob b{bytes.data(), bytes.size()};
        store.write(0, {&b, 1});
        throw std::runtime_error("somewhere else");
    };
    BOOST_CHECK_THROW(thrown(), std::runtime_error);
    BOOST_TEST((scratch.files() == before));

    // One that is killed leaves nothing either, and files that are kept for recovery have one owner at a time.
    DiskStoreOptions kept = options_in(scratch.path());
    kept.keep = true;
    BOOST_CHECK_EQUAL(test::end_of(test::start_process([&] {
                          DiskStore store(options_in(scratch.path()));
                          ::raise(SIGKILL);
                          return 0;
                      })),
                      -SIGKILL);
    BOOST_TEST((scratch.files() == before));
    {
        DiskStore mine(kept);
        const auto refused = [&](const StoreError& e) { return says(e, {mine.path().string(), "in use by another"}); };
        BOOST_CHECK_EXCEPTION(sweeps(kept), StoreError, refused);
        DiskStoreOptions other = kept;
        other.run = 1;
        BOOST_TEST(sweeps(other));
        BOOST_CHECK_EQUAL(scratch.files().size(), before.size() + 2);
        DiskStore(other).remove();
        mine.remove();
    }
    BOOST_TEST((scratch.files() == before));
    std::ifstream in(scratch.path() / "slots");
    BOOST_TEST((std::string(std::istreambuf_iterator<char>(in), {}) == "was here before"));
}

// Write errors ignored: a limit on the size of files is met at once, and what was there before still loads.
BOOST_AUTO_TEST_CASE(G29) {
    const test::Scratch scratch;
    DiskStoreOptions kept = options_in(scratch.path() / "kept");
    kept.keep = true;
    const JournalOptions journal{scratch.path() / "journal", 5, 500, true};
    std::vector<std::byte> bytes = test::some_bytes(slot_bytes, 1);
    const Blob all{bytes.data(), bytes.size()}, half{bytes.data(), bytes.size() / 2};
    {
        DiskStore store(kept);
        store.write(3, {&all, 1});
        store.settle();
        Journal(journal).commit({&half, 1});
    }
    const int status = test::end_of(test::start_process([&] {
        const rlimit limit{4000, 4000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const DiskStoreOptions o = options_in(scratch.path());
        int found = 0;
        try {
            sweeps(o);
        } catch (const StoreError& e) {
            found += says(e, {scratch.path().string(), "File too large",
                              std::to_string(DiskStore::file_bytes(o)) + " bytes", "ulimit -f"});
        }
        Journal open(journal);
        std::vector<std::byte> large = test::some_bytes(5000, 2);
        const Blob b{large.data(), large.size()};
        try {
            open.commit({&b, 1});
        } catch (const StoreError& e) {
            found += says(e, {journal.path.string(), "File too large", "5064 bytes"});
        }
        return found;
    }));
    BOOST_CHECK_EQUAL(status, 2);
    std::vector<std::byte> back(slot_bytes);
    const Blob b{back.data(), back.size()}, first{back.data(), back.size() / 2};
    DiskStore store(kept);
    BOOST_TEST_REQUIRE(store.kept().size() == 1u);
    store.read(3, {&b, 1});
    BOOST_TEST((back == bytes));
    back.assign(back.size(), std::byte{0});
    Journal(journal).read({&first, 1});
    back.resize(back.size() / 2);
    bytes.resize(back.size());
    BOOST_TEST((back == bytes));
    BOOST_CHECK_EQUAL(scratch.files().size(), 3u);
}
