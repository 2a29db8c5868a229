// SPDX-License-Identifier: MIT
#include "backsweep/base/log.hpp"

#include "backsweep/base/error.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace backsweep {
namespace {

[[noreturn]] void fail(const std::string& folder, std::int64_t bytes, const char* what, int reason) {
    throw StoreError("a log of " + std::to_string(bytes) + " bytes in folder '" + folder + "': " + what + ": " +
                     std::system_category().message(reason) +
                     "; name a folder with so much room, or keep the log in RAM");
}

/// A file without a name, closed at the end of the scope; a mapping outlives it.
struct File {
    explicit File(const std::string& folder) : name(folder + "/backsweep-log-XXXXXX") {
        descriptor = ::mkostemp(name.data(), O_CLOEXEC);
        if (descriptor >= 0) ::unlink(name.c_str());
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (descriptor >= 0) ::close(descriptor);
    }
    std::string name;
    int descriptor = -1;
};

}  // namespace

MappedFile::MappedFile(const std::string& folder, std::int64_t bytes) {
    if (bytes == 0) return;
    const File file(folder);
    if (file.descriptor < 0) fail(folder, bytes, "no file can be made", errno);
    // Without room set aside a full disk would be met as a signal at some later write.
    if (const int reason = ::posix_fallocate(file.descriptor, 0, bytes); reason != 0)
        fail(folder, bytes, "no room", reason);
    void* const memory =
        ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor, 0);
    if (memory == MAP_FAILED) fail(folder, bytes, "it cannot be mapped", errno);
    data_ = memory;
    bytes_ = bytes;
}

MappedFile::~MappedFile() {
    if (data_) ::munmap(data_, static_cast<std::size_t>(bytes_));
}

void MappedFile::resident(std::int64_t first, std::int64_t last) noexcept {
    const auto page = static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
    const auto let_go = [&](std::int64_t from, std::int64_t to) {  // whole pages; the kernel writes what is dirty
        if (to > from) ::madvise(static_cast<char*>(data_) + from, static_cast<std::size_t>(to - from), MADV_DONTNEED);
    };
    let_go(0, first / page * page);
    let_go((last + page - 1) / page * page, bytes_);
}

}  // namespace backsweep
