// An append-only array: what a sweep writes once, step after step, and every checkpoint shares instead of copying it. A
// replay writes the same numbers into the same places. It lives in RAM, or in a file of which a part is resident.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"
#include "backsweep/base/export.hpp"

#include <string>

namespace backsweep {

/// Memory mapped from a file without a name, which goes when its owner goes or the process dies.
class BACKSWEEP_API MappedFile {
public:
    MappedFile() noexcept = default;
    /// `bytes` zero bytes, with room on the disk set aside. Throws StoreError: the folder and the system's reason.
    MappedFile(const std::string& folder, std::int64_t bytes);
    MappedFile(MappedFile&& other) noexcept { swap(other); }
    MappedFile& operator=(MappedFile&& other) noexcept {
        MappedFile(std::move(other)).swap(*this);
        return *this;
    }
    ~MappedFile();

    void* data() const noexcept { return data_; }
    std::int64_t bytes() const noexcept { return bytes_; }
    /// Lets go of the RAM of all but the bytes [first, last); they stay in the file and come back when they are read.
    void resident(std::int64_t first, std::int64_t last) noexcept;

private:
    void swap(MappedFile& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
    }

    void* data_ = nullptr;
    std::int64_t bytes_ = 0;
};

/// The array. Its bytes, of a file those that are resident, are booked as Kind::log.
template <class T>
class Log {
public:
    /// In RAM; with a folder, in a file there.
    explicit Log(Ledger& ledger, std::string folder = {})
        : folder_(std::move(folder)),
          ram_(Kind::log, ledger),
          ledger_(&ledger) {}
    Log(Log&& other) noexcept
        : folder_(std::move(other.folder_)),
          ram_(std::move(other.ram_)),
          file_(std::move(other.file_)),
          ledger_(other.ledger_),
          booked_(std::exchange(other.booked_, 0)) {}
    Log& operator=(Log&&) = delete;
    ~Log() { book(0); }

    /// Room for `size` elements, of which a file keeps `resident` in RAM; the values are unspecified if that takes new
    /// memory.
    void reserve(Index size, Index resident) {
        if (folder_.empty()) return ram_.resize(size);
        if (bytes(size) > file_.bytes()) file_ = MappedFile(folder_, bytes(size));
        book(std::max(booked_, bytes(std::min(size, resident))));
    }
    /// Of the elements only [first, last) need to be near.
    void resident(Index first, Index last) noexcept {
        if (!folder_.empty()) file_.resident(bytes(first), bytes(last));
    }
    T* data() noexcept { return folder_.empty() ? ram_.data() : static_cast<T*>(file_.data()); }

private:
    static std::int64_t bytes(Index count) noexcept { return count * static_cast<std::int64_t>(sizeof(T)); }
    void book(std::int64_t now) noexcept {
        ledger_->book(Kind::log, now - booked_);
        booked_ = now;
    }

    std::string folder_;
    Buffer<T> ram_;
    MappedFile file_;
    Ledger* ledger_;
    std::int64_t booked_ = 0;
};

}  // namespace backsweep
