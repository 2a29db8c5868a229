// What this process is told and what it uses: signals, terminals, BLAS threads, memory.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdio>

namespace backsweep::cli {

/// One BLAS thread: the shards of a batch run on threads of their own. OpenBLAS only; the library never does this.
void pin_blas() noexcept;

/// From now on SIGINT and SIGTERM are noted once; a second one ends the process.
void note_interrupts() noexcept;
/// The signal that was noted, or 0.
int interrupted() noexcept;

/// Writing behind a limit of file sizes fails with a reason from now on, and kills no longer.
void survive_file_limits() noexcept;

bool is_terminal(std::FILE* file) noexcept;

/// Most memory that this process had resident so far, in bytes.
std::int64_t peak_rss() noexcept;

}  // namespace backsweep::cli
