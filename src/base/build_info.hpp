// How this library was built; the manifest of every run repeats it.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace backsweep {

struct BuildInfo {
    std::string_view version;     ///< of the project, "0.1.0"
    std::string_view compiler;    ///< name and version, "GNU 12.2.0"
    std::string_view flags;       ///< those that can change bits: optimisation, language, contraction
    std::string_view build_type;  ///< CMake's, "Release"
};

const BuildInfo& build_info() noexcept;

}  // namespace backsweep
