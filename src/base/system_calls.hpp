// Calls of the system that pass a fail point of their name: as POSIX has them, unless a test asked for a death or
// fault.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/fail_point.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace backsweep::sys {

/// The errno of a fault that fails outright, or 0.
inline int reason(Fault fault) noexcept {
    return fault == Fault::error ? EIO : fault == Fault::full ? ENOSPC : 0;
}

/// Fails, or not; for calls that move no bytes.
inline bool fails(const char* name) noexcept {
    const int why = reason(fail_point(name));
    if (why != 0) errno = why;
    return why != 0;
}

/// `write(from, bytes)`, spoilt as was asked for.
template <class Write>
ssize_t faulty_write(const void* from, std::size_t bytes, Write write) {
    const Fault fault = fail_point("write");
    switch (fault) {
        case Fault::none:
            return write(from, bytes);
        case Fault::cut:
            return write(from, (bytes + 1) / 2);
        case Fault::lost: {
            const ssize_t n = write(from, bytes / 2);
            return n < 0 ? n : static_cast<ssize_t>(bytes);
        }
        case Fault::flip: {
            std::vector<char> copy(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
            copy[bytes / 2] = static_cast<char>(copy[bytes / 2] ^ 4);
            return write(copy.data(), bytes);
        }
        case Fault::error:
        case Fault::full:
            break;
    }
    errno = reason(fault);
    return -1;
}

inline ssize_t write(int file, const void* from, std::size_t bytes) {
    return faulty_write(from, bytes, [&](const void* p, std::size_t n) { return ::write(file, p, n); });
}

inline ssize_t pwrite(int file, const void* from, std::size_t bytes, off_t at) {
    return faulty_write(from, bytes, [&](const void* p, std::size_t n) { return ::pwrite(file, p, n, at); });
}

inline ssize_t pread(int file, void* to, std::size_t bytes, off_t at) {
    const Fault fault = fail_point("read");
    if (const int why = reason(fault); why != 0) {
        errno = why;
        return -1;
    }
    if (fault == Fault::lost) return 0;  // the end of the file
    const ssize_t n = ::pread(file, to, fault == Fault::cut ? (bytes + 1) / 2 : bytes, at);
    if (fault == Fault::flip && n > 0) {
        char& byte = static_cast<char*>(to)[n / 2];
        byte = static_cast<char>(byte ^ 4);
    }
    return n;
}

inline int fsync(int file) {
    return fails("fsync") ? -1 : ::fsync(file);
}

inline int fdatasync(int file) {
    return fails("fsync") ? -1 : ::fdatasync(file);
}

inline int rename(const char* from, const char* to) {
    return fails("rename") ? -1 : ::rename(from, to);
}

/// Sets `bytes` bytes of room aside from the beginning; 0 or -1 and errno.
inline int allocate(int file, off_t bytes) {
    if (fails("allocate")) return -1;
    const int why = bytes == 0 ? 0 : ::posix_fallocate(file, 0, bytes);
    errno = why;
    return why == 0 ? 0 : -1;
}

}  // namespace backsweep::sys
