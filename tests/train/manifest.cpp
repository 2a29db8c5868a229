// The manifest: what the program knows of itself, the checksum of a file, and the JSON that is written.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE manifest
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/train/manifest.hpp"
#include "support/scratch.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <regex>
#include <string>

using namespace backsweep;

BOOST_AUTO_TEST_CASE(a_manifest_says_what_is_needed_to_repeat_a_run) {
    const test::Scratch scratch;
    RunManifest m = this_program();
    BOOST_TEST(!m.version.empty());
    BOOST_TEST(!m.compiler.empty());
    BOOST_TEST(m.flags.find("-ffp-contract=off") != std::string::npos);
    BOOST_TEST(!m.cpu.empty());
    BOOST_TEST(m.cores >= 1);
    BOOST_TEST(std::regex_match(m.started, std::regex("20\\d\\d-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ")));
    m.seed = 18446744073709551615U;
    m.threads = 2;
    m.data = "text \xff.txt";
    m.data_bytes = Index{1} << 40;
    m.data_checksum = "crc32:cbf43926";
    m.plan = R"({"schedule":"revolve","slots":3})";
    m.command = {"backsweep", "train", "a \"b\".toml"};
    write_manifest(scratch.path() / "run", m);
    std::ifstream file(scratch.path() / "run" / "manifest.json");
    const auto json = nlohmann::json::parse(file);
    BOOST_TEST(json.size() == 14U);
    BOOST_TEST(json["compiler"] == m.compiler);
    BOOST_TEST(json["seed"] == m.seed);
    BOOST_TEST(json["data_bytes"] == m.data_bytes);
    BOOST_TEST(json["plan"]["slots"] == 3);
    BOOST_TEST((json["command"] == nlohmann::json(m.command)));
    BOOST_TEST(json["data"] == "text \xef\xbf\xbd.txt");
}

BOOST_AUTO_TEST_CASE(the_checksum_is_the_usual_crc_32) {
    const test::Scratch scratch;
    const auto sum = [&](const std::string& text) {
        std::ofstream(scratch.path() / "file", std::ios::binary) << text;
        return file_checksum(scratch.path() / "file");
    };
    BOOST_TEST(sum("123456789") == "crc32:cbf43926");  // the check value of CRC-32/ISO-HDLC
    BOOST_TEST(sum("") == "crc32:00000000");
    BOOST_TEST(sum(std::string(1'000'000, 'a')) == "crc32:dc25bfbc");  // Python's zlib.crc32
    for (const auto& path : {scratch.path() / "none", scratch.path()})
        BOOST_CHECK_EXCEPTION(file_checksum(path), StoreError, [&](const StoreError& e) {
            return std::string(e.what()).find("'" + path.string() + "'") != std::string::npos;
        });
}
