// Marks what the shared libraries export; everything else is hidden.
// SPDX-License-Identifier: MIT
#pragma once

#if defined(__GNUC__) || defined(__clang__)
#define BACKSWEEP_API __attribute__((visibility("default")))
#else
#define BACKSWEEP_API
#endif
