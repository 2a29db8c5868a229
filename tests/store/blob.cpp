// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE store_blob
#include "support/unit_test.hpp"

#include "backsweep/store/blob.hpp"
#include "support/store_laws.hpp"

#include <array>
#include <cstring>
#include <set>
#include <vector>

using namespace backsweep;

namespace {

std::uint64_t of(std::vector<std::byte>& bytes) {
    const Blob b{bytes.data(), bytes.size()};
    return fingerprint({&b, 1});
}

}  // namespace

BOOST_AUTO_TEST_CASE(blobs_are_the_memory_of_the_object) {
    double number = 1.5;
    std::vector<float> vector{1, 2, 3};
    std::array<std::int32_t, 5> array{};
    Buffer<double> buffer(7, Kind::carry);
    const auto check = [](const std::vector<Blob>& all, const void* data, std::size_t size) {
        BOOST_CHECK_EQUAL(all.size(), 1u);
        BOOST_CHECK_EQUAL(static_cast<const void*>(all[0].data), data);
        BOOST_CHECK_EQUAL(all[0].size, size);
        BOOST_CHECK_EQUAL(total_size(all), size);
    };
    check(blobs(number), &number, 8);
    check(blobs(vector), vector.data(), 12);
    check(blobs(array), array.data(), 20);
    check(blobs(buffer), buffer.data(), 56);
    BOOST_CHECK_EQUAL(total_size({}), 0u);
}

BOOST_AUTO_TEST_CASE(a_fingerprint_sees_every_single_bit) {
    for (const std::size_t size : {1, 7, 8, 9, 31}) {
        std::vector<std::byte> bytes = test::some_bytes(size, 3);
        std::set<std::uint64_t> seen{of(bytes)};
        for (std::size_t bit = 0; bit < 8 * size; ++bit) {
            bytes[bit / 8] ^= std::byte{1} << (bit % 8);
            seen.insert(of(bytes));
            bytes[bit / 8] ^= std::byte{1} << (bit % 8);
        }
        BOOST_CHECK_EQUAL(seen.size(), 8 * size + 1);
    }
}

BOOST_AUTO_TEST_CASE(a_fingerprint_sees_order_length_and_cut) {
    std::vector<std::byte> zero(24);
    std::set<std::uint64_t> seen{fingerprint({})};
    for (std::size_t size = 0; size <= 24; ++size) {
        const Blob b{zero.data(), size};
        seen.insert(fingerprint({&b, 1}));
    }
    BOOST_CHECK_EQUAL(seen.size(), 26u);

    std::vector<std::byte> bytes = test::some_bytes(32, 9);
    const std::vector<Blob> two{{bytes.data(), 16}, {bytes.data() + 16, 16}}, turned{two[1], two[0]};
    BOOST_TEST(fingerprint(two) != fingerprint(turned));
    BOOST_TEST(fingerprint(two) != of(bytes));
}
