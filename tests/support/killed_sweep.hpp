// What a process that may be killed tells its parent: in memory that both see.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/chain/commits.hpp"
#include "base/fail_point.hpp"
#include "support/scratch.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <vector>

namespace backsweep::test {

/// The status with which a process ends that kills itself.
inline constexpr int killed = fail_point_status;

/// Of so many events one is tried: under a sanitizer a process takes a hundred times as long to begin and to end.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr Index stride = 7;
#else
inline constexpr Index stride = 1;
#endif

struct Told {
    Index dies_at = 0;  ///< the event; 0: never
    Index events = 0;
    Index advances = 0, reversed = 0;
    Index reached = 0, left = 0;  ///< the farthest link of the forward sweep, and the last that was reversed
    Recovery::From from = Recovery::From::start;
    Index at = 0, states = 0;
    Index count = 0;
    std::array<double, 512> values{};

    void event() {
        if (++events == dies_at) ::_exit(killed);
    }
    template <class Numbers>
    void take(const Numbers& numbers) {
        for (const double v : numbers) values.at(static_cast<std::size_t>(count++)) = v;
    }
    std::vector<double> numbers() const { return {values.begin(), values.begin() + count}; }
};

/// Turns over one byte in every 64 of a file, its first page apart.
inline void flip_a_byte_of_every_slot(const std::filesystem::path& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path));
    for (std::streamoff at = 4096; at < size; at += 64) {
        file.seekg(at);
        const int byte = file.get();
        file.seekp(at);
        file.put(static_cast<char>(byte ^ 1));
    }
}

/// Several of them.
class Shared {
public:
    explicit Shared(std::size_t count) : bytes_(count * sizeof(Told)) {
        void* const room = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED) throw std::bad_alloc();
        told_ = static_cast<Told*>(room);
        std::uninitialized_default_construct_n(told_, count);
    }
    ~Shared() { ::munmap(told_, bytes_); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

    Told& operator[](std::size_t i) { return told_[i]; }

private:
    std::size_t bytes_;
    Told* told_;
};

}  // namespace backsweep::test
