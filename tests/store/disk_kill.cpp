// A process that writes to a kept disk store and a journal dies at every point in turn: the next one finds whole slots
// and the last whole record only.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE store_disk_kill
#include "support/unit_test.hpp"

#include "backsweep/store/disk_store.hpp"
#include "backsweep/store/journal.hpp"
#include "base/fail_point.hpp"
#include "support/scratch.hpp"
#include "support/store_laws.hpp"

#include <sys/mman.h>

#include <array>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;

namespace {

constexpr std::int32_t slots = 3;
constexpr int rounds = 6;

std::vector<std::byte> content(std::uint64_t number) {
    return test::some_bytes(20000 + 977 * (number % 7), static_cast<std::uint32_t>(number));
}

/// Larger from record to record: the journal's files grow.
std::vector<std::byte> record(std::uint64_t number) {
    std::vector<std::byte> bytes = test::some_bytes(3000 * number, static_cast<std::uint32_t>(number));
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

/// What the process says it has done, in memory that outlives it.
struct Said {
    std::uint64_t committed = 0;
    std::array<std::uint64_t, slots> settled{};
};

struct Case {
    DiskStoreOptions store;
    JournalOptions journal;
};

/// Takes over what is there and goes on for some rounds; 0, or what is wrong.
int live(const Case& c, Said& said) {
    DiskStore store(c.store);
    Journal journal(c.journal);
    for (const DiskStore::Kept& k : store.kept()) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(k.bytes));
        const Blob b{bytes.data(), bytes.size()};
        store.read(k.slot, {&b, 1});
        if (bytes != content(k.sequence) && k.bytes != 0) return 1;
        // Older than what was settled: a whole slot was lost, or a write came back that had been overwritten.
        if (k.sequence < said.settled[static_cast<std::size_t>(k.slot)]) return 2;
    }
    std::uint64_t number = 0;
    if (const auto last = journal.last()) {
        number = last->number;
        std::vector<std::byte> bytes(static_cast<std::size_t>(last->bytes));
        const Blob b{bytes.data(), bytes.size()}, first{bytes.data(), sizeof number};
        std::uint64_t told = 0;
        journal.read({&first, 1});
        std::memcpy(&told, bytes.data(), sizeof told);
        journal.read({&b, 1});
        if (told != number || bytes != record(number)) return 3;
    }
    if (number < said.committed || number > said.committed + 1) return 4;

    for (int round = 0; round < rounds; ++round) {
        std::array<std::uint64_t, slots> written{};
        for (std::int32_t slot = 0; slot < slots; ++slot) {
            const std::uint64_t next = store.sequence() + 1;
            std::vector<std::byte> bytes = content(next);
            const Blob b{bytes.data(), bytes.size()};
            store.write(slot, {&b, 1});
            written[static_cast<std::size_t>(slot)] = next;
        }
        store.settle();
        said.settled = written;
        std::vector<std::byte> bytes = record(number + 1);
        const Blob b{bytes.data(), bytes.size()};
        journal.commit({&b, 1});
        said.committed = ++number;
    }
    return 0;
}

Case case_in(const std::filesystem::path& folder, Index buffers, Compression compression) {
    Case c;
    c.store.folder = folder;
    c.store.slots = slots;
    c.store.slot_bytes = 26000;
    c.store.buffers = buffers;
    c.store.compression = compression;
    c.store.keep = true;
    c.store.durable = c.journal.durable = buffers == 1;  // the others need not wait for the disk: the system lives on
    c.journal.path = folder / "journal";
    c.journal.record_bytes = 5000;
    return c;
}

}  // namespace

BOOST_AUTO_TEST_CASE(at_every_point_in_turn) {
    auto* const said =
        static_cast<Said*>(::mmap(nullptr, sizeof(Said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    int points = 0;
    for (const auto& [buffers, compression] :
         {std::pair{0, Compression::none}, {1, Compression::none}, {2, Compression::zstd}}) {
        for (int k = 1;; ++k) {
            const test::Scratch scratch;
            const Case c = case_in(scratch.path(), buffers, compression);
            *said = {};
            const int status = test::end_of(test::start_process([&] {
                ask_for_fail_point(("any:" + std::to_string(k)).c_str());
                return live(c, *said);
            }));
            BOOST_TEST_CONTEXT("point " << k << ", " << buffers << " buffers") {
                BOOST_CHECK_EQUAL(test::end_of(test::start_process([&] { return live(c, *said); })), 0);
            }
            if (status == 0) break;
            BOOST_TEST_REQUIRE(status == fail_point_status);
            ++points;
        }
    }
    ::munmap(said, sizeof(Said));
    BOOST_TEST_MESSAGE(points << " points");
    BOOST_TEST(points > 150);
}

BOOST_AUTO_TEST_CASE(again_and_again_at_random_moments) {
    auto* const said =
        static_cast<Said*>(::mmap(nullptr, sizeof(Said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const test::Scratch scratch;
    const Case c = case_in(scratch.path(), 2, Compression::none);
    std::uint32_t seed = 1;
    for (int kill = 0; kill < 100; ++kill) {
        const pid_t child = test::start_process([&] {
            while (true)
                if (const int wrong = live(c, *said); wrong != 0) return wrong;
        });
        seed = seed * 1664525 + 1013904223;
        ::usleep(500 + (seed >> 16) % 10000);
        ::kill(child, SIGKILL);
        BOOST_TEST_REQUIRE(test::end_of(child) == -SIGKILL);
        if (said->committed > 40) {  // records grow: begin anew
            for (const auto& file : std::filesystem::directory_iterator(scratch.path())) std::filesystem::remove(file);
            *said = {};
        }
    }
    ::munmap(said, sizeof(Said));
}
