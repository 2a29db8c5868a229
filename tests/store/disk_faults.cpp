// Calls of the system that go wrong under a disk store: each is a clear error or is made good, and nothing wrong is
// ever read.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE store_disk_faults
#include "support/unit_test.hpp"

#include "backsweep/store/disk_store.hpp"
#include "base/fail_point.hpp"
#include "support/scratch.hpp"
#include "support/store_laws.hpp"

#include <sys/resource.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace backsweep;
namespace fs = std::filesystem;

namespace {

constexpr std::int32_t slots = 4;
constexpr std::size_t size = 9000;

std::vector<std::byte> content(int generation) {
    return test::some_bytes(size - static_cast<std::size_t>(generation), static_cast<std::uint32_t>(generation));
}

/// What happened in a life of a store under one fault.
struct Life {
    int wrong = 0;                    ///< reads that gave something else than what was written last
    std::vector<std::string> errors;  ///< what was said
    bool reported_late = false;       ///< a slot was found empty though no call had said why
};

/// Writes, overwrites, settles, reads and reopens with one fault asked for; then without it, until all is well again.
Life live(DiskStoreOptions o, const std::string& fault) {
    Life life;
    std::map<std::int32_t, int> model;  // generations; absent: empty, or an error was thrown
    const auto tried = [&](auto call) {
        try {
            call();
        } catch (const StoreError& e) {
            life.errors.push_back(e.what());
            return false;
        }
        return true;
    };
    const auto check = [&](DiskStore& store, bool all) {
        for (std::int32_t slot = 0; slot < slots; ++slot) {
            if (!all && !model.contains(slot)) continue;
            std::vector<std::byte> bytes(model.contains(slot) ? content(model[slot]).size() : size);
            const Blob b{bytes.data(), bytes.size()};
            const std::size_t before = life.errors.size();
            const bool read = tried([&] { store.read(slot, {&b, 1}); });
            if (read) life.wrong += !model.contains(slot) || bytes != content(model[slot]);
            if (!read && before == 0) life.reported_late = life.errors.back().find("empty") != std::string::npos;
        }
    };
    const auto forget = [&](DiskStore& store) {  // what the store has not: an error may have been of an earlier write
        std::map<std::int32_t, int> still;
        for (const auto& k : store.kept())
            if (model.contains(k.slot)) still[k.slot] = model[k.slot];
        model = still;
    };

    ask_for_fail_point(fault.c_str());
    std::optional<DiskStore> store;
    if (tried([&] { store.emplace(o); })) {
        int generation = 0;
        for (int round = 0; round < 3; ++round) {
            for (std::int32_t slot = 0; slot < slots; ++slot) {
                std::vector<std::byte> bytes = content(++generation);
                const Blob b{bytes.data(), bytes.size()};
                if (tried([&] { store->write(slot, {&b, 1}); }))
                    model[slot] = generation;
                else
                    tried([&] { store->settle(); }), store->erase(slot), forget(*store);
            }
            if (!tried([&] { store->settle(); })) forget(*store);
            for (std::int32_t slot = 0; slot < slots; slot += 2) store->expect(slot);
            check(*store, false);
        }
        store.reset();
        if (o.keep && tried([&] { store.emplace(o); })) {  // the last two lives of a process
            for (const auto& k : store->kept()) life.wrong += !model.contains(k.slot) && life.errors.empty();
            forget(*store);  // what could not be read then counts as empty
            check(*store, false);
        }
    }
    ask_for_fail_point(nullptr);
    store.reset();
    // Without the fault: a store that opens works.
    if (o.keep) {
        std::optional<DiskStore> again;
        if (tried([&] { again.emplace(o); })) forget(*again), check(*again, false), again->remove();
    }
    for (const auto& file : fs::directory_iterator(o.folder)) fs::remove(file);
    return life;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_call_of_the_system_may_go_wrong) {
    const test::Scratch scratch;
    int faults = 0, said = 0;
    for (const auto& [buffers, compression] :
         {std::pair{0, Compression::none}, {1, Compression::none}, {3, Compression::none}, {2, Compression::zstd}}) {
        for (const std::string name : {"write", "read", "fsync", "allocate"}) {
            for (const std::string what : {"error", "full", "short", "lost", "flip"}) {
                if ((name == "fsync" || name == "allocate") && what != "error" && what != "full") continue;
                for (int k = 1; k < 45; k += name == "write" ? 2 : 3) {
                    const std::string fault = name + ":" + std::to_string(k) + ":" + what;
                    BOOST_TEST_CONTEXT(fault << ", " << buffers << " buffers, " << to_string(compression)) {
                        DiskStoreOptions o;
                        o.folder = scratch.path();
                        o.slots = slots;
                        o.slot_bytes = size;
                        o.buffers = buffers;
                        o.compression = compression;
                        o.keep = true;
                        o.durable = name == "fsync";
                        const Life life = live(o, fault);
                        BOOST_CHECK_EQUAL(life.wrong, 0);
                        BOOST_TEST(!life.reported_late);
                        for (const std::string& e : life.errors)
                            BOOST_CHECK_MESSAGE(e.find(scratch.path().string()) != std::string::npos, e);
                        if (!life.errors.empty() && (what == "error" || what == "full")) {
                            const std::string reason =
                                what == "full" ? "No space left on device" : "Input/output error";
                            bool found = false;
                            for (const std::string& e : life.errors)
                                found = found || e.find(reason + "; ") != std::string::npos;
                            BOOST_CHECK_MESSAGE(found, life.errors.front());
                        }
                        if (what == "short") BOOST_TEST(life.errors.empty());  // made good
                        ++faults;
                        said += !life.errors.empty();
                    }
                }
            }
        }
    }
    BOOST_TEST_MESSAGE(faults << " faults, " << said << " errors");
    BOOST_TEST(faults >= 200);
    BOOST_TEST(said >= 200);
}

BOOST_AUTO_TEST_CASE(a_failed_write_is_told_by_the_next_call) {
    const test::Scratch scratch;
    for (const std::string next : {"write", "read", "settle"}) {
        DiskStoreOptions o;
        o.folder = scratch.path();
        o.slots = 2;
        o.slot_bytes = 100;
        DiskStore store(o);
        std::vector<std::byte> bytes = test::some_bytes(100, 1);
        const Blob b{bytes.data(), 100};
        store.write(0, {&b, 1});
        store.settle();
        ask_for_fail_point("write:1:full");
        store.write(1, {&b, 1});
        for (int i = 0; i < 100'000 && store.kept().size() == 2; ++i) ::usleep(100);
        ask_for_fail_point(nullptr);
        const auto clear = [&](const StoreError& e) {
            const std::string message = e.what();
            return message.find("slot 1 of '" + store.path().string()) == 0 &&
                   message.find("100 bytes") != std::string::npos &&
                   message.find("No space left on device; free some room") != std::string::npos;
        };
        if (next == "write") BOOST_CHECK_EXCEPTION(store.write(0, {&b, 1}), StoreError, clear);
        if (next == "read") BOOST_CHECK_EXCEPTION(store.read(0, {&b, 1}), StoreError, clear);
        if (next == "settle") BOOST_CHECK_EXCEPTION(store.settle(), StoreError, clear);
        BOOST_CHECK_EXCEPTION(store.read(1, {&b, 1}), StoreError, test::names(1));
        store.read(0, {&b, 1});
        store.write(1, {&b, 1});  // and all is well again
        store.settle();
        store.read(1, {&b, 1});
        BOOST_TEST((bytes == test::some_bytes(100, 1)));
    }
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_met_when_the_store_opens) {
    const test::Scratch scratch;
    for (const bool keep : {false, true}) {
        const int status = test::end_of(test::start_process([&] {
            const rlimit limit{1'000'000, 1'000'000};
            ::setrlimit(RLIMIT_FSIZE, &limit);  // its signal would end the process
            DiskStoreOptions o;
            o.folder = scratch.path();
            o.slots = 10;
            o.slot_bytes = 100'000;
            o.keep = keep;
            try {
                DiskStore store(o);
            } catch (const StoreError& e) {
                const std::string message = e.what();
                return message.find(std::to_string(DiskStore::file_bytes(o)) + " bytes") != std::string::npos &&
                               message.find(scratch.path().string()) != std::string::npos &&
                               message.find("File too large; raise the limit") != std::string::npos
                           ? 3
                           : 1;
            }
            return 0;
        }));
        BOOST_CHECK_EQUAL(status, 3);
        BOOST_TEST(scratch.files().empty());
    }
    DiskStoreOptions o;
    o.folder = scratch.path();
    o.slots = 1 << 20;
    o.slot_bytes = std::int64_t{1} << 38;  // no disk has that
    o.buffers = 0;
    BOOST_CHECK_THROW(DiskStore{o}, StoreError);
    o.keep = true;
    BOOST_CHECK_THROW(DiskStore{o}, StoreError);
    BOOST_TEST(scratch.files().empty());
}
