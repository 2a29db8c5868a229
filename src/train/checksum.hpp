// CRC-32 (the one of zip and PNG) as it is written into snapshots and manifests.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>
#include <boost/crc.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace backsweep {

class Checksum {
public:
    void add(std::span<const std::byte> bytes) { crc_.process_bytes(bytes.data(), bytes.size()); }
    void add(std::string_view text) { crc_.process_bytes(text.data(), text.size()); }
    /// "crc32:cbf43926" for "123456789".
    std::string text() const { return fmt::format("crc32:{:08x}", crc_.checksum()); }

private:
    boost::crc_32_type crc_;
};

}  // namespace backsweep
