// What must be known of a run to repeat it or to doubt it, as JSON in the run's folder.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace backsweep {

/// Plain data; written with the members' names as keys.
struct RunManifest {
    std::string version;  ///< of Backsweep
    std::string compiler;
    std::string flags;  ///< those that can change bits
    std::string build_type;
    std::string cpu;    ///< the model's name, as the system gives it
    Index cores = 0;    ///< that this process may use
    Index threads = 0;  ///< that it does use
    std::uint64_t seed = 0;
    std::string data;  ///< path, or the name of the generator
    Index data_bytes = 0;
    std::string data_checksum;         ///< file_checksum(), or empty
    std::string plan;                  ///< the pinned plan, to_json(Plan); empty: none
    std::vector<std::string> command;  ///< program and arguments
    std::string started;               ///< UTC, "2024-02-29T12:00:00Z"
};

/// What this program knows of itself; seed, data, threads and command are the caller's to fill in.
RunManifest this_program();

/// CRC-32 over a file of any size, as "crc32:cbf43926". Throws StoreError, naming the path, if it cannot be read.
std::string file_checksum(const std::filesystem::path& path);

/// Writes folder/manifest.json, whole or not at all; makes the folder. Throws StoreError with path and reason.
void write_manifest(const std::filesystem::path& folder, const RunManifest& manifest);

}  // namespace backsweep
