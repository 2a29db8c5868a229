// Where tests find reference files and data sets, and how they say that a data set is not there.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

namespace backsweep::test {

/// The source folder; CTest passes it, a test started by hand takes the current folder.
inline std::filesystem::path source_dir() {
    const char* given = std::getenv("BACKSWEEP_SOURCE_DIR");
    return given && *given ? std::filesystem::path(given) : std::filesystem::current_path();
}

/// Folder of reference files: BACKSWEEP_REFERENCE, relative to the source folder; else ../shared/reference where it
/// exists, else tests/golden.
inline std::filesystem::path reference_dir() {
    if (const char* given = std::getenv("BACKSWEEP_REFERENCE"); given && *given) return source_dir() / given;
    const std::filesystem::path shared = source_dir() / "../shared/reference";
    return std::filesystem::is_directory(shared) ? shared : source_dir() / "tests/golden";
}

/// Folder of data sets: BACKSWEEP_DATA, relative to the source folder, else ../shared/data; empty where there is none.
inline std::optional<std::filesystem::path> data_dir() {
    const char* given = std::getenv("BACKSWEEP_DATA");
    const std::filesystem::path folder = source_dir() / (given && *given ? given : "../shared/data");
    if (std::filesystem::is_directory(folder)) return folder;
    return std::nullopt;
}

/// Marks the whole CTest test as skipped (cmake/BacksweepTargets.cmake lists the reasons that there are); call it and return.
inline void skip_without_data() {
    std::cout << "skipped: no data" << std::endl;
}

}  // namespace backsweep::test
