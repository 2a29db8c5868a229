// Byte-level text: every pair read once and in its place for awkward sizes, cuts and look-backs alike, a file
// of any size in no memory, and every unusable file refused in words.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE text
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "backsweep/data/text.hpp"
#include "support/scratch.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

using namespace backsweep;
namespace fs = std::filesystem;

namespace {

struct Folder : test::Scratch {
    fs::path write(const std::string& name, const std::string& text) const {
        std::ofstream(path() / name, std::ios::binary) << text;
        return path() / name;
    }
};

std::string random_bytes(Index n, std::uint32_t kinds) {
    std::string text;
    const Random random(3, 0);
    for (Index i = 0; i < n; ++i) text.push_back(static_cast<char>(200 + random.below(kinds, 0, i)));
    return text;
}

template <class E>
auto says(const std::string& path, const std::string& word) {
    return [=](const E& e) {
        const std::string message = e.what();
        const bool found = message.find(path) != std::string::npos && message.find(word) != std::string::npos;
        if (!found) BOOST_TEST_MESSAGE(message);
        return found;
    };
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_pair_stands_once_in_its_stream) {
    const Folder folder;
    const std::string bytes = random_bytes(103, 50);
    const auto text = std::make_shared<const ByteText>(folder.write("text", bytes));
    BOOST_TEST(text->size() == 103);
    for (const Range part : {Range{0, 103}, Range{17, 90}, Range{0, 8}})
        for (const Index B : {1, 2, 5, 7})
            for (const Index T : {1, 3, 10, 32, 200})
                BOOST_TEST_CONTEXT("B " << B << ", T " << T << ", bytes " << part.size()) {
                    const TextSource<float> source(text, part, Vocabulary(text->bytes()), B, T);
                    const Index L = (part.size() - 1) / B;
                    BOOST_TEST(source.length() == L);
                    BOOST_TEST(source.windows() == (L + T - 1) / T);
                    BOOST_TEST(source.remainder() == (part.size() - 1) % B);
                    Index seen = 0;
                    Ledger ledger;
                    Batch<float> batch(ledger);
                    for (Index w = 0; w < source.windows(); ++w) {
                        BOOST_TEST(source.fresh(w) == (w == 0));
                        source.read({w, {0, B}}, batch);
                        BOOST_TEST(batch.first == seen);
                        BOOST_TEST(batch.loss_from == 0);
                        BOOST_TEST_REQUIRE(batch.steps == std::min(T, L - seen));
                        BOOST_TEST_REQUIRE(static_cast<Index>(batch.tokens.size()) == batch.steps * B);
                        BOOST_TEST_REQUIRE(batch.classes.size() == batch.tokens.size());
                        if (w == 0) BOOST_TEST(ledger.live()[Kind::data] == batch.steps * B * source.step_bytes());
                        bool right = true;
                        for (Index t = 0; t < batch.steps; ++t)
                            for (Index b = 0; b < B; ++b) {
                                const std::size_t at = static_cast<std::size_t>(part.first + b * L + seen + t);
                                const std::string pair = source.vocabulary().decode(
                                    std::vector{batch.tokens[static_cast<std::size_t>(t * B + b)],
                                                batch.classes[static_cast<std::size_t>(t * B + b)]});
                                right = right && pair == bytes.substr(at, 2);
                            }
                        BOOST_TEST(right);
                        seen += batch.steps;
                    }
                    BOOST_TEST(seen == L);
                    BOOST_TEST(source.fresh(source.windows()));
                }
}

BOOST_AUTO_TEST_CASE(cuts_and_look_backs_are_parts_of_the_whole) {
    const Folder folder;
    const auto text = std::make_shared<const ByteText>(folder.write("text", random_bytes(311, 40)));
    const Index B = 7, T = 6;
    const TextSource<double> source(text, {0, 311}, Vocabulary(), B, T);
    const TextSource<double> whole(text, {0, 311}, Vocabulary(), B, source.length());
    Batch<double> all, batch;
    whole.read({0, {0, B}}, all);
    for (Index w = 0; w < 2 * source.windows(); ++w)
        for (const Index look_back : {0, 1, 14})
            for (const Range columns : {Range{0, 7}, Range{2, 3}, Range{4, 7}}) {
                source.read({w, columns, look_back}, batch);
                const Index begin = w % source.windows() * T;
                BOOST_TEST(batch.first == std::max<Index>(0, begin - look_back));
                BOOST_TEST(batch.first + batch.loss_from == begin);
                BOOST_TEST(batch.first + batch.steps == std::min(begin + T, source.length()));
                bool right = true;
                for (Index t = 0; t < batch.steps; ++t)
                    for (Index b = 0; b < batch.batch; ++b) {
                        const auto here = static_cast<std::size_t>(t * batch.batch + b);
                        const auto there = static_cast<std::size_t>((batch.first + t) * B + columns.first + b);
                        right = right && batch.tokens[here] == all.tokens[there] &&
                                batch.classes[here] == all.classes[there];
                    }
                BOOST_TEST(right);
            }
    for (const Cut& cut : {Cut{-1, {0, 7}}, {0, {0, 8}}, {0, {3, 3}}, {0, {-1, 2}}, {0, {0, 7}, -1}})
        BOOST_CHECK_EXCEPTION(source.read(cut, batch), InvalidArgument,
                              says<InvalidArgument>(text->path(), "there are 7 sequences"));
}

BOOST_AUTO_TEST_CASE(vocabulary_has_the_bytes_that_occur) {
    const std::string text = "to be\xff\x01 or not";
    const Vocabulary few({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    BOOST_TEST(few.bytes() == "\x01 benort\xff");
    BOOST_TEST(few.size() == 9);
    BOOST_TEST(few.decode(few.encode(text)) == text);
    BOOST_TEST(few.token('x') == -1);
    BOOST_TEST((few.encode("\x01\xff") == std::vector<std::int32_t>{0, 8}));
    BOOST_TEST(Vocabulary(few.bytes()).encode(text) == few.encode(text));
    BOOST_CHECK_EXCEPTION(few.encode("tx"), InvalidArgument, says<InvalidArgument>("byte 0x78", "at place 1"));
    BOOST_CHECK_EXCEPTION(few.decode(std::vector{0, 9}), InvalidArgument, says<InvalidArgument>("no token 9", "has 9"));
    BOOST_CHECK_THROW(Vocabulary(std::string_view("ba")), InvalidArgument);
    BOOST_CHECK_THROW(Vocabulary(std::string_view("aa")), InvalidArgument);
    BOOST_CHECK_THROW(Vocabulary(std::string_view("")), InvalidArgument);
    const Vocabulary all;
    for (int k = 0; k < 256; ++k) BOOST_TEST(all.token(static_cast<std::uint8_t>(k)) == k);

    const Folder folder;
    const auto file = std::make_shared<const ByteText>(folder.write("text", "abcabx"));
    const TextSource<float> source(file, {0, 6}, Vocabulary(file->bytes().first(5)), 1, 10);
    Batch<float> batch;
    BOOST_CHECK_EXCEPTION(source.read({0, {0, 1}}, batch), InvalidArgument,
                          says<InvalidArgument>(file->path(), "byte 0x78 at 5"));
}

BOOST_AUTO_TEST_CASE(splits_cover_the_text) {
    for (const Index n : {0, 1, 2, 19, 100, 1115394}) {
        const Split s = split({}, n);
        BOOST_TEST(s.train.first == 0);
        BOOST_TEST(s.train.last == s.valid.first);
        BOOST_TEST(s.valid.last == s.test.first);
        BOOST_TEST(s.test.last == n);
        BOOST_TEST(std::abs(static_cast<double>(s.train.last) - 0.9 * static_cast<double>(n)) <= 0.5);
        BOOST_TEST(std::abs(static_cast<double>(s.valid.last) - 0.95 * static_cast<double>(n)) <= 0.5);
    }
    BOOST_TEST(split({1.0, 0.0}, 7).train.size() == 7);
    BOOST_TEST(SplitSpec{}.problem() == "");
    BOOST_TEST((SplitSpec{0.9, 0.2}.problem().find("0.9 and 0.2") != std::string::npos));
    BOOST_CHECK_THROW(split({0.0, 0.5}, 10), InvalidArgument);
}

BOOST_AUTO_TEST_CASE(unusable_files_are_named) {
    const Folder folder;
    const auto refused = [&](const fs::path& path, const std::string& word) {
        BOOST_CHECK_EXCEPTION(ByteText{path}, StoreError, says<StoreError>("'" + path.string() + "'", word));
    };
    refused(folder.path() / "missing", "o such file");
    refused(folder.path(), "it is a folder");
    refused(folder.write("empty", ""), "it is empty");
    refused("/dev/null", "no regular file");
    if (::geteuid() != 0) {
        const fs::path locked = folder.write("locked", "abc");
        fs::permissions(locked, fs::perms::none);
        refused(locked, "");
    }

    const auto one = std::make_shared<const ByteText>(folder.write("one", "a"));
    const auto three = std::make_shared<const ByteText>(folder.write("three", "abc"));
    const auto source = [](const auto& text, Range part, Index batch, Index window) {
        return [=] { TextSource<float>(text, part, Vocabulary(), batch, window); };
    };
    const auto throws = [](const std::function<void()>& make, const std::string& path, const std::string& word) {
        BOOST_CHECK_EXCEPTION(make(), InvalidArgument, says<InvalidArgument>(path, word));
    };
    throws(source(one, {0, 1}, 1, 10), one->path(), "need 2 bytes at least, but this part has 1");
    throws(source(three, {0, 3}, 3, 10), three->path(), "need 4 bytes at least, but this part has 3");
    throws(source(three, {3, 3}, 1, 10), three->path(), "this part has 0");
    throws(source(three, {0, 4}, 1, 10), three->path(), "has 3 bytes, none at [0, 4)");
    throws(source(three, {0, 3}, 0, 10), three->path(), "must be >= 1");
    throws(source(three, {0, 3}, 1, 0), three->path(), "must be >= 1");
    BOOST_CHECK_NO_THROW(source(three, {0, 3}, 2, 10)());
}

BOOST_AUTO_TEST_CASE(a_text_of_any_size_takes_no_memory) {
    // A sparse file of 8 GiB; the process has never held more than 256 MiB.
    const Folder folder;
    const fs::path path = folder.write("large", "begin");
    const Index size = Index{8} << 30;
    fs::resize_file(path, static_cast<std::uintmax_t>(size));
    const auto text = std::make_shared<const ByteText>(path);
    const TextSource<float> source(text, {0, size}, Vocabulary(), 4, 1000);
    BOOST_TEST(source.windows() == ((size - 1) / 4 + 999) / 1000);
    Batch<float> batch;
    source.read({0, {0, 1}}, batch);
    BOOST_TEST(batch.tokens[0] == 'b');
    BOOST_TEST(batch.classes[3] == 'n');
    source.read({source.windows() - 1, {0, 4}}, batch);
    BOOST_TEST(batch.steps == source.length() % 1000);
    BOOST_TEST(batch.classes[batch.classes.size() - 1] == 0);
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    BOOST_TEST(usage.ru_maxrss < 256 * 1024);
}
