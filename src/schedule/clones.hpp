// Loops that are compiled twice, for AVX2 and for any x86-64; the machine chooses when the program is loaded.
// SPDX-License-Identifier: MIT
#pragma once

// The resolver runs before a thread sanitizer is ready for it.
#if defined(__SANITIZE_THREAD__)
#define BACKSWEEP_CLONES
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BACKSWEEP_CLONES
#endif
#endif
#if !defined(BACKSWEEP_CLONES) && defined(__x86_64__) && defined(__ELF__) && (defined(__GNUC__) || defined(__clang__))
#define BACKSWEEP_CLONES __attribute__((target_clones("avx2", "default")))
#elif !defined(BACKSWEEP_CLONES)
#define BACKSWEEP_CLONES
#endif
