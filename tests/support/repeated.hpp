// Arrays larger than memory: address space of which all but the end is one block of memory again and again.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>

namespace backsweep::test {

/// Floats in 16 MiB of memory. What is written to one is read from all that lie a multiple of `block` before or behind
/// it, but for the last `block` of them, which are their own. They begin as 0.
class Repeated {
public:
    static constexpr Index block = Index{1} << 21;

    explicit Repeated(Index size) : blocks_((size + block - 1) / block) {
        const int file = ::memfd_create("repeated", MFD_CLOEXEC);
        if (file < 0) fail("memfd_create");
        const auto once = static_cast<std::size_t>(block) * sizeof(float);
        const bool long_enough = ::ftruncate(file, static_cast<off_t>(2 * once)) == 0;
        if (long_enough)
            base_ = ::mmap(nullptr, bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        bool mapped = long_enough && base_ != MAP_FAILED;
        for (Index b = 0; mapped && b < blocks_; ++b)
            mapped =
                ::mmap(static_cast<char*>(base_) + static_cast<std::size_t>(b) * once, once, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, file, b + 1 < blocks_ ? 0 : static_cast<off_t>(once)) != MAP_FAILED;
        const int error = errno;
        ::close(file);
        if (!mapped) throw std::system_error(error, std::generic_category(), "mmap");
        data_ = static_cast<float*>(base_) + (blocks_ * block - size);
    }
    Repeated(Repeated&&) = delete;
    Repeated& operator=(Repeated&&) = delete;
    ~Repeated() { ::munmap(base_, bytes()); }

    float* data() const noexcept { return data_; }

private:
    [[noreturn]] static void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }
    std::size_t bytes() const noexcept { return static_cast<std::size_t>(blocks_ * block) * sizeof(float); }

    Index blocks_;
    void* base_ = nullptr;
    float* data_ = nullptr;
};

}  // namespace backsweep::test
