// A file of the store room: room set aside beforehand, whole reads and writes at a place, a lock, and errors that name
// the path, the bytes and the system's reason.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace backsweep {

class DiskFile {
public:
    /// A file in `folder` (made if absent) that has no name any more: it goes when it is closed, however that happens.
    static DiskFile nameless(const std::filesystem::path& folder, const std::string& name);
    /// Opens or makes the file (and its folder), and locks it against other openers. StoreError if it is locked.
    static DiskFile locked(const std::filesystem::path& path);

    DiskFile(DiskFile&& other) noexcept
        : path_(std::move(other.path_)),
          file_(std::exchange(other.file_, -1)),
          named_(other.named_),
          made_(other.made_) {}
    DiskFile& operator=(DiskFile&&) = delete;
    ~DiskFile();

    const std::filesystem::path& path() const noexcept { return path_; }
    /// Whether it was empty when it was opened.
    bool made() const noexcept { return made_; }
    std::int64_t size() const;

    /// Sets `bytes` bytes aside, from the beginning; never makes the file smaller.
    void allocate(std::int64_t bytes);
    void write(std::int64_t at, const void* from, std::size_t bytes);
    void read(std::int64_t at, void* to, std::size_t bytes) const;
    /// Forces the content to the disk; `folder`: the file's name too.
    void sync();
    void sync_folder();
    /// Takes the name away, if it is still this file's.
    void remove() noexcept;

private:
    DiskFile(std::filesystem::path path, int file, bool named) noexcept
        : path_(std::move(path)),
          file_(file),
          named_(named) {}
    /// Throws if the name went, by whoever's hand: what is written would be lost.
    void check_name() const;

    std::filesystem::path path_;
    int file_ = -1;
    bool named_ = false;
    bool made_ = true;
};

}  // namespace backsweep
