// The laws of every store: one call from a test of each.
// SPDX-License-Identifier: MIT
#pragma once

#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/store/store.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace backsweep::test {

/// `size` bytes without a pattern.
inline std::vector<std::byte> some_bytes(std::size_t size, std::uint32_t seed) {
    std::vector<std::byte> bytes(size);
    for (std::byte& b : bytes) b = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
    return bytes;
}

/// A message that names the slot: what users need first.
inline auto names(std::int32_t slot) {
    return
        [slot](const StoreError& e) { return std::string(e.what()).find(std::to_string(slot)) != std::string::npos; };
}

/// Writes, reads, overwrites and erases in an empty store.
inline void check_store(Store& store) {
    const auto blob = [](std::vector<std::byte>& bytes) { return Blob{bytes.data(), bytes.size()}; };
    const auto write = [&](std::int32_t slot, std::vector<std::byte> bytes) {
        const Blob b = blob(bytes);
        store.write(slot, {&b, 1});
        bytes.assign(bytes.size(), std::byte{0});  // the caller may overwrite what it wrote
    };
    const auto read = [&](std::int32_t slot, std::size_t size) {
        std::vector<std::byte> bytes(size);
        const Blob b = blob(bytes);
        store.read(slot, {&b, 1});
        return bytes;
    };

    for (const std::int32_t slot : {0, 1, 16}) {
        BOOST_TEST_CONTEXT("slot " << slot) {
            BOOST_CHECK_EXCEPTION(read(slot, 4), StoreError, names(slot));  // empty
            store.expect(slot);
            store.erase(slot);
        }
    }

    for (const std::size_t size : {1, 7, 64, 4096, 100003})
        write(static_cast<std::int32_t>(size % 97), some_bytes(size, 5));
    for (const std::size_t size : {100003, 1, 64, 7, 4096}) {
        const auto slot = static_cast<std::int32_t>(size % 97);
        BOOST_TEST_CONTEXT("slot " << slot) {
            store.expect(slot);
            BOOST_TEST((read(slot, size) == some_bytes(size, 5)));
            BOOST_TEST((read(slot, size) == some_bytes(size, 5)));  // reading empties nothing
            BOOST_CHECK_EXCEPTION(read(slot, size + 1), StoreError, names(slot));
            BOOST_CHECK_EXCEPTION(read(slot, size - 1), StoreError, names(slot));
            BOOST_TEST((read(slot, size) == some_bytes(size, 5)));
        }
    }

    // Overwritten by more, by fewer, by as many bytes.
    for (const std::size_t size : {200, 50, 50}) {
        write(3, some_bytes(size, static_cast<std::uint32_t>(size)));
        BOOST_TEST((read(3, size) == some_bytes(size, static_cast<std::uint32_t>(size))));
    }
    store.erase(3);
    BOOST_CHECK_EXCEPTION(read(3, 50), StoreError, names(3));
    store.erase(3);
    write(3, some_bytes(9, 2));
    BOOST_TEST((read(3, 9) == some_bytes(9, 2)));

    // Several blobs are one content: cut elsewhere, and with empty ones between.
    std::vector<std::byte> whole = some_bytes(1000, 77), back(1000);
    const std::vector<Blob> cut{
        {whole.data(), 1}, {whole.data() + 1, 0}, {whole.data() + 1, 498}, {whole.data() + 499, 501}, {nullptr, 0}};
    store.write(5, cut);
    const std::vector<Blob> other{{back.data(), 700}, {nullptr, 0}, {back.data() + 700, 300}};
    store.read(5, other);
    BOOST_TEST((back == whole));

    // Nothing at all is a content too.
    store.write(6, {});
    BOOST_CHECK_NO_THROW(store.read(6, {}));
    BOOST_CHECK_EXCEPTION(read(6, 1), StoreError, names(6));

    BOOST_CHECK_EXCEPTION(write(-1, some_bytes(4, 1)), StoreError, names(-1));
    BOOST_CHECK_EXCEPTION(read(-1, 4), StoreError, names(-1));
    store.erase(-1);
    for (std::int32_t slot = 0; slot < 97; ++slot) store.erase(slot);
}

}  // namespace backsweep::test
