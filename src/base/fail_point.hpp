// Places where a test lets the process die or a call of the system go wrong: before every write, read, fsync and rename
// of a durable file, a store or a journal. BACKSWEEP_FAIL_POINT="fsync:3" ends the process at its third fsync, "any:5"
// at the fifth point of any name, "write:2:full" lets the second write meet a full disk.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"

#include <string_view>

namespace backsweep {

/// The status with which such a process ends.
inline constexpr int fail_point_status = 86;

/// What a call shall do. In the text: nothing more, "error", "full", "short", "lost", "flip".
enum class Fault {
    none,
    error,  ///< fails: EIO
    full,   ///< fails: ENOSPC
    cut,    ///< "short": does half and says so, as the system may
    lost,   ///< does half and says that it did all
    flip    ///< turns one bit over
};

/// Ends the process, without unwinding or flushing, if it was asked to die here; else what to do. Thread-safe.
BACKSWEEP_API Fault fail_point(std::string_view name) noexcept;

/// As if the environment had asked for this; null: for nothing.
BACKSWEEP_API void ask_for_fail_point(const char* text);

}  // namespace backsweep
