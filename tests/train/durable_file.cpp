// Durable files: whole or untouched after a kill at every write, fsync and rename, and write errors in words.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE durable_file
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/train/durable_file.hpp"
#include "base/fail_point.hpp"
#include "support/scratch.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

using namespace backsweep;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// More than three times what is written at once.
const std::string old_text(1'000'001, 'o'), new_text(900'001, 'n');

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_is_replaced_only_by_a_commit) {
    const test::Scratch scratch;
    const fs::path path = scratch.path() / "file";
    write_durable(path, old_text);
    BOOST_TEST((text_of(path) == old_text));
    {
        DurableFile file(path);
        file.stream() << new_text << std::flush;
        BOOST_TEST(scratch.files().size() == 2U);
        BOOST_TEST((text_of(path) == old_text));
    }
    BOOST_TEST((scratch.files() == std::vector<std::string>{"file"}));
    {
        DurableFile one(path), two(path);
        one.stream() << "one";
        two.stream() << "two";
        two.commit();
        one.commit();
    }
    BOOST_TEST(text_of(path) == "one");
    BOOST_TEST((scratch.files() == std::vector<std::string>{"file"}));
    write_durable(path, "");
    BOOST_TEST(fs::file_size(path) == 0U);

    const mode_t mask = ::umask(027);
    write_durable(scratch.path() / "other", "text");
    ::umask(mask);
    BOOST_TEST((fs::status(scratch.path() / "other").permissions() == static_cast<fs::perms>(0640)));
}

BOOST_AUTO_TEST_CASE(a_kill_at_any_point_leaves_the_old_text_or_the_new) {
    const test::Scratch scratch;
    const fs::path path = scratch.path() / "file";
    std::map<std::string, int> points;
    for (const std::string name : {"write", "fsync", "rename", "any"}) {
        for (int k = 1;; ++k) {
            write_durable(path, old_text);
            const int status = test::end_of(test::start_process([&] {
                ask_for_fail_point((name + ":" + std::to_string(k)).c_str());
                write_durable(path, new_text);
                return 0;
            }));
            const std::string text = text_of(path);
            BOOST_TEST_CONTEXT(name << " " << k) {
                BOOST_TEST((text == old_text || text == new_text));
            }
            if (status == 0) {
                BOOST_TEST((text == new_text));
                break;
            }
            BOOST_TEST_REQUIRE(status == fail_point_status);
            ++points[name];
        }
    }
    BOOST_TEST(points["write"] >= 4);
    BOOST_TEST(points["fsync"] == 2);
    BOOST_TEST(points["rename"] == 1);
    BOOST_TEST(points["any"] == points["write"] + 3);

    BOOST_TEST(scratch.files().size() > 4U);
    std::ofstream(scratch.path() / "mine.tmp") << "no file of ours";
    DurableFile live(path);
    remove_stale_files(scratch.path());
    BOOST_TEST(scratch.files().size() == 3U);
    live.stream() << "live";
    live.commit();
    BOOST_TEST((scratch.files() == std::vector<std::string>{"file", "mine.tmp"}));
    BOOST_TEST(text_of(path) == "live");
}

BOOST_AUTO_TEST_CASE(write_errors_say_path_bytes_and_reason) {
    const test::Scratch scratch;
    const fs::path path = scratch.path() / "file";
    write_durable(path, old_text);
    const auto refused = [&](const fs::path& where, const std::string& reason) {
        try {
            write_durable(where, new_text);
        } catch (const StoreError& e) {
            const std::string message = e.what();
            return message.find("'" + where.string() + "'") != std::string::npos &&
                   message.find(reason) != std::string::npos;
        }
        return false;
    };
    const int status = test::end_of(test::start_process([&] {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{300'000, 300'000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        return refused(path, "(300000 bytes written): File too large") ? 0 : 1;
    }));
    BOOST_TEST(status == 0);
    BOOST_TEST((text_of(path) == old_text));
    BOOST_TEST((scratch.files() == std::vector<std::string>{"file"}));

    BOOST_TEST(refused(scratch.path() / "none" / "file", "(0 bytes written): No such file or directory"));
    fs::create_directory(scratch.path() / "folder");
    BOOST_TEST(refused(scratch.path() / "folder", "Is a directory"));
    BOOST_TEST((scratch.files() == std::vector<std::string>{"file", "folder"}));
}
