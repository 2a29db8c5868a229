// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE store_journal
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/store/journal.hpp"
#include "base/fail_point.hpp"
#include "support/scratch.hpp"
#include "support/store_laws.hpp"

#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

using namespace backsweep;
namespace fs = std::filesystem;

namespace {

void commit(Journal& journal, std::vector<std::byte> bytes) {
    const std::size_t cut = bytes.size() / 3;
    const std::vector<Blob> parts{{bytes.data(), cut}, {nullptr, 0}, {bytes.data() + cut, bytes.size() - cut}};
    journal.commit(parts);
}

std::vector<std::byte> read(const Journal& journal, std::size_t size) {
    std::vector<std::byte> bytes(size);
    const Blob b{bytes.data(), bytes.size()};
    journal.read({&b, 1});
    return bytes;
}

auto says(std::string path, std::string words) {
    return [=](const StoreError& e) {
        const std::string message = e.what();
        const bool right = message.find(path) != std::string::npos && message.find(words) != std::string::npos;
        if (!right) BOOST_TEST_MESSAGE(message);
        return right;
    };
}

void spoil(const fs::path& path, std::int64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int c = file.get();
    file.seekp(at);
    file.put(static_cast<char>(c ^ 1));
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_newest_record_is_found_again) {
    const test::Scratch scratch;
    for (const bool durable : {false, true}) {
        JournalOptions o{scratch.path() / "new" / "journal", 77, 100, durable};
        {
            Journal journal(o);
            BOOST_TEST(!journal.last());
            BOOST_CHECK_EXCEPTION(read(journal, 0), StoreError, says(o.path.string(), "no record"));
            for (const std::size_t size : {0, 1, 100, 64, 5000, 3, 70000})  // grows past its room twice
            {
                commit(journal, test::some_bytes(size, 4));
                BOOST_TEST_REQUIRE(journal.last().has_value());
                BOOST_CHECK_EQUAL(journal.last()->bytes, static_cast<std::int64_t>(size));
                BOOST_TEST((read(journal, size) == test::some_bytes(size, 4)));
                BOOST_CHECK_EXCEPTION(read(journal, size + 1), StoreError, says(o.path.string(), "were asked for"));
            }
            BOOST_CHECK_EQUAL(journal.last()->number, 7u);
            BOOST_CHECK_EXCEPTION(Journal{o}, StoreError, says(o.path.string(), "in use by another process"));
        }
        {
            Journal journal(o);
            BOOST_TEST_REQUIRE(journal.last().has_value());
            BOOST_CHECK_EQUAL(journal.last()->number, 7u);
            BOOST_TEST((read(journal, 70000) == test::some_bytes(70000, 4)));
            BOOST_TEST((read(journal, 10) == read(journal, 10)));
            const auto first = test::some_bytes(70000, 4);
            BOOST_TEST((read(journal, 10) == std::vector<std::byte>(first.begin(), first.begin() + 10)));
        }
        JournalOptions other = o;
        other.run = 78;
        BOOST_TEST(!Journal(other).last());
        {
            Journal moved = Journal(o);
            BOOST_TEST(moved.last().has_value());
            moved.clear();
            BOOST_TEST(!moved.last());
            commit(moved, test::some_bytes(5, 5));
            BOOST_TEST((read(moved, 5) == test::some_bytes(5, 5)));
            moved.clear();
        }
        BOOST_TEST(!Journal(o).last());
        Journal(o).remove();
        BOOST_TEST(fs::is_empty(scratch.path() / "new"));
    }
}

BOOST_AUTO_TEST_CASE(a_damaged_record_gives_way_to_the_one_before) {
    const test::Scratch scratch;
    const JournalOptions o{scratch.path() / "journal", 1, 200, false};
    {
        Journal journal(o);
        commit(journal, test::some_bytes(150, 1));
        commit(journal, test::some_bytes(160, 2));
    }
    const fs::path newer = scratch.path() / "journal.1", older = scratch.path() / "journal.0";
    for (std::int64_t at = 0; at < 64 + 160; ++at) {
        if (at >= 48 && at < 64) continue;  // between head and content
        spoil(newer, at);
        BOOST_TEST_CONTEXT("byte " << at) {
            if (at < 8) {
                BOOST_CHECK_EXCEPTION(Journal{o}, StoreError, says(newer.string(), "no file of a journal"));
            } else {
                const Journal journal(o);
                BOOST_TEST_REQUIRE(journal.last().has_value());
                BOOST_CHECK_EQUAL(journal.last()->number, 1u);
                BOOST_TEST((read(journal, 150) == test::some_bytes(150, 1)));
            }
        }
        spoil(newer, at);
    }
    {
        const Journal journal(o);
        BOOST_CHECK_EQUAL(journal.last()->number, 2u);
        spoil(newer, 64 + 3);
        BOOST_CHECK_EXCEPTION(read(journal, 160), StoreError, says(newer.string(), "damaged"));
    }
    fs::resize_file(newer, 64 + 10);
    BOOST_CHECK_EQUAL(Journal(o).last()->number, 1u);
    spoil(older, 70);
    BOOST_TEST(!Journal(o).last());

    std::ofstream(newer) << "something else, of somebody else, and longer than a head of a record is, far longer";
    BOOST_CHECK_EXCEPTION(Journal{o}, StoreError, says(newer.string(), "no file of a journal"));
    std::ofstream(newer) << "short";
    BOOST_CHECK_EXCEPTION(Journal{o}, StoreError, says(newer.string(), "(5 bytes) is no file of a journal"));
    BOOST_CHECK_EQUAL(fs::file_size(newer), 5u);
}

BOOST_AUTO_TEST_CASE(a_failed_commit_leaves_the_record_before) {
    const test::Scratch scratch;
    int faults = 0;
    for (const std::string name : {"write", "fsync", "allocate"}) {
        for (const std::string what : {"error", "full", "short", "lost", "flip"}) {
            if (name != "write" && what != "error" && what != "full") continue;
            for (int k = 1; k < 15; ++k) {
                const JournalOptions o{scratch.path() / "journal", 1, 200, true};
                BOOST_TEST_CONTEXT(name << " " << what << " " << k) {
                    std::size_t last = 0;
                    ask_for_fail_point((name + ":" + std::to_string(k) + ":" + what).c_str());
                    bool silent = true;
                    try {
                        Journal journal(o);
                        for (std::size_t i = 1; i <= 5; ++i) {
                            try {
                                commit(journal, test::some_bytes(90 * i, 1));
                                last = i;
                            } catch (const StoreError& e) {
                                silent = false;
                                BOOST_TEST(says(scratch.path().string(),
                                                what == "full" ? "No space left" : "Input/output")(e));
                                BOOST_CHECK_EQUAL(journal.last() ? journal.last()->bytes : 0,
                                                  static_cast<std::int64_t>(90 * last));
                            }
                        }
                    } catch (const StoreError& e) {
                        silent = false;
                        BOOST_TEST(says(scratch.path().string(), what == "full" ? "No space left" : "Input/output")(e));
                        BOOST_TEST(scratch.files().empty());
                    }
                    ask_for_fail_point(nullptr);
                    const Journal journal(o);
                    const auto found = journal.last();
                    const auto size = static_cast<std::size_t>(found ? found->bytes : 0);
                    if (found) BOOST_TEST((read(journal, size) == test::some_bytes(size, 1)));
                    // What the disk lost or changed in silence gives way to the record before; what was written and
                    // could not be forced may be there.
                    const bool less = what == "lost" || what == "flip", more = name == "fsync" && !silent;
                    BOOST_TEST(
                        (size == 90 * last || (less && size + 90 == 90 * last) || (more && size == 90 * last + 90)));
                    if (what == "short") BOOST_TEST(silent);
                    ++faults;
                }
                for (const auto& file : fs::directory_iterator(scratch.path())) fs::remove(file);
            }
        }
    }
    BOOST_TEST(faults >= 100);
}

BOOST_AUTO_TEST_CASE(a_clear_that_dies_leaves_the_last_record_or_none) {
    const test::Scratch scratch;
    const JournalOptions o{scratch.path() / "journal", 1, 200, true};
    for (const std::size_t records : {1, 2, 3}) {
        for (int k = 1;; ++k) {
            {
                Journal journal(o);
                for (std::size_t i = 1; i <= records; ++i) commit(journal, test::some_bytes(i, 1));
            }
            const int status = test::end_of(test::start_process([&] {
                Journal journal(o);
                ask_for_fail_point(("any:" + std::to_string(k)).c_str());
                journal.clear();
                return 0;
            }));
            {
                Journal journal(o);
                if (journal.last()) BOOST_CHECK_EQUAL(journal.last()->bytes, static_cast<std::int64_t>(records));
                BOOST_TEST((status != 0 || !journal.last()));
                journal.remove();
            }
            if (status == 0) break;
        }
    }
}

BOOST_AUTO_TEST_CASE(a_removed_or_too_large_file_is_an_error) {
    const test::Scratch scratch;
    const JournalOptions o{scratch.path() / "folder" / "journal", 1, 200, false};
    {
        Journal journal(o);
        commit(journal, test::some_bytes(9, 1));
        fs::remove_all(scratch.path() / "folder");
        BOOST_CHECK_EXCEPTION(commit(journal, test::some_bytes(9, 2)), StoreError,
                              says(o.path.string() + ".1", "was removed"));
    }
    const int status = test::end_of(test::start_process([&] {
        const rlimit limit{100'000, 100'000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        Journal journal(o);
        commit(journal, test::some_bytes(1000, 1));
        try {
            commit(journal, test::some_bytes(200'000, 1));
        } catch (const StoreError& e) {
            if (!says(o.path.string() + ".1", "File too large; raise the limit")(e)) return 1;
            return journal.last()->bytes == 1000 && read(journal, 1000) == test::some_bytes(1000, 1) ? 3 : 2;
        }
        return 0;
    }));
    BOOST_CHECK_EQUAL(status, 3);
    BOOST_CHECK_EQUAL(Journal(o).last()->bytes, 1000);
}
