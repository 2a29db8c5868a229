// The safetensors reader and writer: round trips in bits, a hand-written file, every malformed file refused in words.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE safetensors
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/data/safetensors.hpp"
#include "support/reference_dir.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

/// A file from its two parts; the length in front is right unless another is given.
std::vector<std::byte> file(const std::string& header, const std::string& data, std::int64_t length = -1) {
    const std::uint64_t n = length < 0 ? header.size() : static_cast<std::uint64_t>(length);
    std::string text(8, '\0');
    std::memcpy(text.data(), &n, 8);
    text += header + data;
    std::vector<std::byte> bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

/// The file must be refused with a StoreError that names the source and says `reason`.
void refused(const std::vector<std::byte>& bytes, const std::string& reason) {
    BOOST_TEST_CONTEXT("wanted: " << reason) {
        BOOST_CHECK_EXCEPTION(Safetensors::parse(bytes, "some/file"), StoreError, [&](const StoreError& e) {
            const std::string message = e.what();
            if (message.find(reason) == std::string::npos) BOOST_TEST_MESSAGE(message);
            return message.find("'some/file'") != std::string::npos && message.find(reason) != std::string::npos;
        });
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_types_come_back_in_bits) {
    const std::array<double, 4> f64{0.1, -0.0, std::numeric_limits<double>::infinity(), std::nan("")};
    const std::array<float, 3> f32{1.5F, std::numeric_limits<float>::denorm_min(), -3e38F};
    const std::array<std::int64_t, 2> i64{(std::int64_t{1} << 53) + 1, std::numeric_limits<std::int64_t>::min()};
    const std::array<std::int32_t, 2> i32{-7, std::numeric_limits<std::int32_t>::max()};
    const std::array<std::uint8_t, 5> u8{0, 1, 2, 254, 255};
    const std::map<std::string, std::string> metadata{{"op", "mixed \"quoted\" \n \xc3\xa4"}, {"empty", ""}};

    std::vector<TensorView> tensors;
    tensors.push_back(tensor_view<std::uint8_t>("bytes", {5}, u8));
    tensors.push_back(tensor_view<float>("single", {3, 1}, f32));
    tensors.push_back(tensor_view<double>("twice", {2, 2}, f64));
    tensors.push_back(tensor_view<std::int32_t>("small", {2}, i32));
    tensors.push_back(tensor_view<std::int64_t>("large", {2}, i64));
    tensors.push_back(tensor_view<double>("none", {0, 3}, {}));
    tensors.push_back(tensor_view<double>("scalar", {}, std::span(f64).first(1)));

    const auto bytes = safetensors_bytes(tensors, metadata);
    BOOST_TEST((bytes == safetensors_bytes(tensors, metadata)));
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), 8);
    BOOST_TEST(header % 8 == 0U);

    const Safetensors read = Safetensors::parse(bytes, "memory");
    BOOST_TEST((read.metadata() == metadata));
    BOOST_TEST_REQUIRE(read.tensors().size() == tensors.size());
    Index last = 8;
    for (const TensorView& t : read.tensors()) {
        BOOST_TEST(size_of(t.dtype) <= last);
        last = size_of(t.dtype);
    }
    for (const TensorView& t : tensors) {
        const TensorView& back = read.at(t.name);
        BOOST_TEST((back.dtype == t.dtype));
        BOOST_TEST((back.shape == t.shape));
        BOOST_TEST(std::equal(back.data.begin(), back.data.end(), t.data.begin(), t.data.end()));
    }
    BOOST_TEST(read.at("large").integers()[0] == 9007199254740993);
    BOOST_TEST(read.at("large").integers()[1] == i64[1]);
    BOOST_TEST(read.at("small").integers()[0] == -7);
    BOOST_TEST(read.at("bytes").integers()[4] == 255);
    BOOST_TEST(read.at("single").values<double>()[0] == 1.5);
    BOOST_TEST(read.at("twice").values<float>()[0] == 0.1F);
    BOOST_TEST(read.at("scalar").size() == 1);
    BOOST_TEST(read.at("none").size() == 0);
    BOOST_CHECK_THROW(read.at("single").integers(), InvalidArgument);
    BOOST_CHECK_THROW(read.at("small").values<double>(), InvalidArgument);
    BOOST_TEST(read.find("absent") == nullptr);
    BOOST_CHECK_THROW(read.at("absent"), StoreError);
    BOOST_TEST(read.metadata("op") == metadata.at("op"));
    BOOST_CHECK_THROW(read.metadata("absent"), StoreError);
}

BOOST_AUTO_TEST_CASE(views_survive_a_move) {
    const std::array<double, 2> values{3.25, -1.0};
    Safetensors first =
        Safetensors::parse(safetensors_bytes(std::array{tensor_view<double>("x", {2}, values)}), "memory");
    const Safetensors second = std::move(first);
    BOOST_TEST(second.at("x").values<double>()[0] == 3.25);
}

BOOST_AUTO_TEST_CASE(a_hand_written_file_is_read) {
    // Data out of the header's order, an odd header length and trailing spaces are allowed.
    const std::string header =
        "{\"b\":" + entry("BOOL", "[2]", "[4,6]") + ",\"a\":" + entry("I32", "[]", "[0,4]") + "}   ";
    const Safetensors read = Safetensors::parse(file(header, std::string("\x05\x00\x00\x00\x01\x00", 6)), "memory");
    BOOST_TEST_REQUIRE(read.tensors().size() == 2U);
    BOOST_TEST(read.tensors()[0].name == "a");
    BOOST_TEST(read.at("a").integers()[0] == 5);
    BOOST_TEST((read.at("b").integers() == std::vector<std::int64_t>{1, 0}));
    BOOST_TEST(Safetensors::parse(file("{}", ""), "memory").tensors().empty());
}

BOOST_AUTO_TEST_CASE(malformed_files_are_refused) {
    const std::string eight(8, 'x');
    refused({}, "at least 8 bytes");
    refused(std::vector<std::byte>(7), "at least 8 bytes");
    refused(file("{}", "", 3), "truncated");
    refused(file("{}", "", std::numeric_limits<std::int64_t>::max()), "truncated");
    refused(std::vector<std::byte>(20, std::byte{0xff}), "truncated");
    refused(file("", ""), "no valid JSON");
    refused(file("{", ""), "no valid JSON");
    refused(file("{}x", ""), "no valid JSON");
    refused(file("{\"\xff\":1}", ""), "no valid JSON");
    refused(file("[]", ""), "must be a JSON object");
    refused(file("3", ""), "must be a JSON object");
    refused(file(R"({"a":1})", ""), "must be an object");
    refused(file("{\"a\":" + std::string(100000, '['), ""), "nested too deeply");
    refused(file(R"({"__metadata__":[]})", ""), "__metadata__ must be an object");
    refused(file(R"({"__metadata__":{"k":1}})", ""), "must hold strings");
    refused(file(R"({"__metadata__":{"k":"1","k":"2"}})", ""), "'k' stands twice");

    const std::string a = entry("F64", "[1]", "[0,8]");
    refused(file("{\"a\":" + a + ",\"a\":" + a + "}", eight), "'a' stands twice");
    refused(file("{\"a\":" + entry("F16", "[4]", "[0,8]") + "}", eight), "\"F16\"; known: F64");
    refused(file("{\"a\":" + entry("F64", "[1]", "[0,8,8]") + "}", eight), "a list of two");
    refused(file("{\"a\":" + entry("F64", "3", "[0,8]") + "}", eight), "must be a list");
    refused(file("{\"a\":" + entry("F64", "[-1]", "[0,8]") + "}", eight), "whole number >= 0");
    refused(file("{\"a\":" + entry("F64", "[1.0]", "[0,8]") + "}", eight), "whole number >= 0");
    refused(file("{\"a\":" + entry("F64", "[18446744073709551615]", "[0,8]") + "}", eight), "whole number >= 0");
    refused(file("{\"a\":" + entry("F64", "[1]", "[-8,0]") + "}", eight), "whole number >= 0");
    refused(file("{\"a\":" + entry("F64", "[1]", "[8,0]") + "}", eight), "truncated or damaged");
    refused(file("{\"a\":" + a + "}", "1234567"), "truncated or damaged");
    refused(file("{\"a\":" + entry("F64", "[2]", "[0,8]") + "}", eight), "needs 16 bytes, but its offsets hold 8");
    refused(file("{\"a\":" + entry("F32", "[1]", "[0,8]") + "}", eight), "needs 4 bytes");
    refused(file("{\"a\":" + entry("F64", "[4294967296,4294967296]", "[0,8]") + "}", eight),
            "more bytes than can be counted");
    refused(file(R"({"a":{"dtype":"F64","shape":[1]}})", eight), "no 'data_offsets'");
    refused(file(R"({"a":{"dtype":"F64","data_offsets":[0,8]}})", eight), "no 'shape'");
    refused(file(R"({"a":{"shape":[1],"data_offsets":[0,8]}})", eight), "no 'dtype'");
    refused(file(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8],"more":1}})", eight), "unknown key 'more'");
    refused(file("{\"a\":" + a + ",\"b\":" + entry("F32", "[1]", "[4,8]") + "}", eight), "overlap");
    refused(file("{\"a\":" + a + ",\"b\":" + a + "}", eight), "overlap");
    refused(file("{\"a\":" + a + ",\"b\":" + entry("F64", "[1]", "[16,24]") + "}", std::string(24, 'x')), "a gap");
    refused(file("{\"a\":" + entry("F64", "[1]", "[8,16]") + "}", std::string(16, 'x')), "a gap");
    refused(file("{\"a\":" + a + "}", std::string(9, 'x')), "end at byte 8 of the data, but the file has 9");
}

BOOST_AUTO_TEST_CASE(every_truncation_of_a_good_file_is_refused) {
    const std::array<double, 3> values{1.0, 2.0, 3.0};
    const auto whole = safetensors_bytes(std::array{tensor_view<double>("x", {3}, values)}, {{"k", "v"}});
    for (std::size_t n = 0; n < whole.size(); ++n)
        BOOST_CHECK_THROW(Safetensors::parse({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)}, "cut"),
                          StoreError);
}

BOOST_AUTO_TEST_CASE(the_writer_refuses_what_it_could_not_read) {
    const std::array<double, 2> values{1.0, 2.0};
    const TensorView x = tensor_view<double>("x", {2}, values);
    BOOST_CHECK_THROW(safetensors_bytes(std::array{x, x}), InvalidArgument);
    BOOST_CHECK_THROW(safetensors_bytes(std::array{tensor_view<double>("__metadata__", {2}, values)}), InvalidArgument);
    BOOST_CHECK_THROW(safetensors_bytes(std::array{tensor_view<double>("x", {3}, values)}), InvalidArgument);
    BOOST_CHECK_THROW(safetensors_bytes(std::array{x}, {{"k", "\xff"}}), InvalidArgument);
}

BOOST_AUTO_TEST_CASE(missing_files_and_folders_are_named) {
    const auto names = [](const std::string& path) {
        return [path](const StoreError& e) { return std::string(e.what()).find(path) != std::string::npos; };
    };
    BOOST_CHECK_EXCEPTION(Safetensors::read("/no/such/file"), StoreError, names("/no/such/file"));
    const std::string folder = std::filesystem::temp_directory_path().string();
    BOOST_CHECK_EXCEPTION(Safetensors::read(folder), StoreError, names(folder));
}

BOOST_AUTO_TEST_CASE(all_reference_files_are_read_and_written_again) {
    int files = 0;
    for (const auto& item : std::filesystem::directory_iterator(test::reference_dir() / "nn")) {
        if (item.path().extension() != ".safetensors") continue;
        ++files;
        BOOST_TEST_CONTEXT(item.path()) {
            const Safetensors read = Safetensors::read(item.path());
            const Safetensors again = Safetensors::parse(safetensors_bytes(read.tensors(), read.metadata()), "again");
            BOOST_TEST((again.metadata() == read.metadata()));
            BOOST_TEST_REQUIRE(again.tensors().size() == read.tensors().size());
            for (const TensorView& t : read.tensors()) {
                const auto& data = again.at(t.name).data;
                BOOST_TEST(std::equal(data.begin(), data.end(), t.data.begin(), t.data.end()));
            }
        }
    }
    BOOST_TEST(files > 0);
    BOOST_TEST_MESSAGE(files << " files");
}
