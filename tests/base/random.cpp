// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE base_random
#include "support/unit_test.hpp"

#include "backsweep/base/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

using namespace backsweep;

// Known answers of philox4x32 with 10 rounds: Random123's kat_vectors; the first two output words.
BOOST_AUTO_TEST_CASE(bits_are_those_of_philox4x32_10) {
    BOOST_CHECK_EQUAL(Random(0, 0).bits(0, 0), 0xe169c58d6627e8d5u);
    BOOST_CHECK_EQUAL(Random(0xffffffffffffffff, 0xffffffff).bits(0xffffffff, 0xffffffffffffffff), 0x41c83b0e408f276du);
    BOOST_CHECK_EQUAL(Random(0x299f31d0a4093822, 0x03707344).bits(0x13198a2e, 0x85a308d3243f6a88), 0x94fdccebd16cfe09u);
}

// All four output words of the same known answers.
BOOST_AUTO_TEST_CASE(four_words_share_a_block) {
    const auto four = [](const Random& random, std::uint64_t step, std::uint64_t block) {
        std::vector<std::uint32_t> words;
        for (std::uint64_t w = 0; w < 4; ++w) words.push_back(random.word(step, 4 * block + w));
        return words;
    };
    using Words = std::vector<std::uint32_t>;
    BOOST_TEST((four(Random(0, 0), 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    const Random random(7, 3);
    for (const std::uint64_t block : {std::uint64_t{0}, std::uint64_t{5}, (std::uint64_t{1} << 61) + 3}) {
        const Words words = four(random, 9, block);
        BOOST_CHECK_EQUAL(std::uint64_t{words[1]} << 32 | words[0], random.bits(9, block));
        BOOST_TEST(std::set<std::uint32_t>(words.begin(), words.end()).size() == 4);
    }
}

BOOST_AUTO_TEST_CASE(a_run_of_words_is_the_words_one_by_one) {
    const Random random(7, 3);
    for (std::uint64_t first = 0; first < 9; ++first)
        for (std::uint64_t count = 0; count < 14; ++count) {
            std::vector<std::uint32_t> run, single;
            random.words(2, first, count, [&](std::uint64_t k, std::uint32_t word) {
                BOOST_CHECK_EQUAL(k, run.size());
                run.push_back(word);
            });
            for (std::uint64_t k = 0; k < count; ++k) single.push_back(random.word(2, first + k));
            BOOST_TEST((run == single));
        }
}

BOOST_AUTO_TEST_CASE(a_number_is_a_function_of_its_place) {
    const Random first(7, 3);
    std::vector<double> forward, again(600);
    for (std::uint64_t step = 0; step < 20; ++step)
        for (std::uint64_t element = 0; element < 30; ++element) forward.push_back(first.uniform(step, element));
    const Random second(7, 3);
    for (std::uint64_t step = 20; step-- > 0;)
        for (std::uint64_t element = 30; element-- > 0;) again[step * 30 + element] = second.uniform(step, element);
    BOOST_TEST((forward == again));
    const std::set<double> distinct(forward.begin(), forward.end());
    BOOST_CHECK_EQUAL(distinct.size(), forward.size());
}

BOOST_AUTO_TEST_CASE(seed_stream_step_and_element_all_matter) {
    const std::uint64_t here = Random(7, 3).bits(5, 11);
    BOOST_TEST(Random(8, 3).bits(5, 11) != here);
    BOOST_TEST(Random(7 + (std::uint64_t{1} << 32), 3).bits(5, 11) != here);
    BOOST_TEST(Random(7, 4).bits(5, 11) != here);
    BOOST_TEST(Random(7, 3).bits(6, 11) != here);
    BOOST_TEST(Random(7, 3).bits(5, 12) != here);
    BOOST_TEST(Random(7, 3).bits(5, 11 + (std::uint64_t{1} << 32)) != here);
}

// Bounds: five standard errors of N = 200000 independent numbers.
BOOST_AUTO_TEST_CASE(distributions_have_their_moments) {
    const Random random(20240229, 1);
    constexpr std::uint64_t n = 200000;
    double mean = 0, square = 0, normal_mean = 0, normal_square = 0, normal_fourth = 0, least = 1, most = 0;
    std::vector<int> counts(7);
    for (std::uint64_t k = 0; k < n; ++k) {
        const double u = random.uniform(k / 1000, k % 1000), z = random.normal(500 + k / 1000, k % 1000);
        least = std::min(least, u), most = std::max(most, u);
        mean += u / n, square += u * u / n;
        normal_mean += z / n, normal_square += z * z / n, normal_fourth += z * z * z * z / n;
        ++counts[random.below(7, 1000 + k / 1000, k % 1000)];
    }
    const double root = std::sqrt(static_cast<double>(n));
    BOOST_TEST((least >= 0.0 && least < 1e-4 && most < 1.0 && most > 1 - 1e-4));
    BOOST_TEST(std::abs(mean - 0.5) < 5 * std::sqrt(1.0 / 12) / root);
    BOOST_TEST(std::abs(square - 1.0 / 3) < 5 * std::sqrt(4.0 / 45) / root);
    BOOST_TEST(std::abs(normal_mean) < 5 / root);
    BOOST_TEST(std::abs(normal_square - 1) < 5 * std::sqrt(2.0) / root);
    BOOST_TEST(std::abs(normal_fourth - 3) < 5 * std::sqrt(96.0) / root);
    for (const int count : counts)
        BOOST_TEST(std::abs(count - static_cast<double>(n) / 7) < 5 * std::sqrt(n * 6.0 / 49));
}
