// Places where a test lets the process die: before every write, fsync and rename of a durable file.
// BACKSWEEP_FAIL_POINT="fsync:3" ends the process at its third fsync, "any:5" at the fifth point of any name.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace backsweep {

/// The status with which such a process ends.
inline constexpr int fail_point_status = 86;

/// Ends the process, without unwinding or flushing, if it was asked to die here; else does nothing.
void fail_point(std::string_view name) noexcept;

/// As if the environment had asked for this; null: for none.
void ask_for_fail_point(const char* text);

}  // namespace backsweep
