// SPDX-License-Identifier: MIT
#include "store/disk_file.hpp"

#include "backsweep/base/error.hpp"
#include "base/system_calls.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace backsweep {

namespace {

const char* advice(int reason) {
    switch (reason) {
        case ENOSPC:
        case EDQUOT:
            return "; free some room there, or name another folder";
        case EFBIG:
            return "; raise the limit on the size of files (ulimit -f)";
        case EIO:
            return "; check the medium";
        case EACCES:
        case EPERM:
        case EROFS:
            return "; name a folder that you may write to";
        default:
            return "";
    }
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what, int reason) {
    throw StoreError(what + " '" + path.string() + "': " + std::system_category().message(reason) + advice(reason));
}

void make_folder(const std::filesystem::path& folder) {
    if (folder.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) fail(folder, "cannot make the folder", error.value());
}

std::string count(std::int64_t bytes) {
    return std::to_string(bytes) + " bytes";
}

}  // namespace

DiskFile DiskFile::nameless(const std::filesystem::path& folder, const std::string& name) {
    make_folder(folder);
    std::string path = (folder / (name + "-XXXXXX")).string();
    const int file = ::mkostemp(path.data(), O_CLOEXEC);
    if (file < 0) fail(path, "cannot make a file like", errno);
    ::unlink(path.c_str());
    return {path, file, false};
}

DiskFile DiskFile::locked(const std::filesystem::path& path) {
    make_folder(path.parent_path());
    while (true) {
        const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (file < 0) fail(path, "cannot open", errno);
        DiskFile opened(path, file, true);
        if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK) fail(path, "cannot lock", errno);
            throw StoreError("'" + path.string() +
                             "' is in use by another process; let it end, or name another folder for this run");
        }
        struct stat status {};
        if (::fstat(file, &status) != 0) fail(path, "cannot ask for the size of", errno);
        if (status.st_nlink == 0) continue;  // its last owner removed it between the two calls
        opened.made_ = status.st_size == 0;
        return opened;
    }
}

DiskFile::~DiskFile() {
    if (file_ >= 0) ::close(file_);
}

std::int64_t DiskFile::size() const {
    struct stat status {};
    if (::fstat(file_, &status) != 0) fail(path_, "cannot ask for the size of", errno);
    return status.st_size;
}

void DiskFile::allocate(std::int64_t bytes) {
    check_name();
    const std::string what = "cannot set " + count(bytes) + " aside in";
    // Beyond this limit the system would send a signal that ends the process.
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        static_cast<rlim_t>(bytes) > limit.rlim_cur)
        fail(path_, what, EFBIG);
    if (sys::allocate(file_, bytes) != 0) fail(path_, what, errno);
}

void DiskFile::write(std::int64_t at, const void* from, std::size_t bytes) {
    check_name();
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t n = sys::pwrite(file_, static_cast<const char*>(from) + done, bytes - done,
                                      at + static_cast<std::int64_t>(done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            const int reason = n == 0 ? EIO : errno;
            fail(path_,
                 "cannot write " + count(static_cast<std::int64_t>(bytes)) + " at byte " + std::to_string(at) + " (" +
                     std::to_string(done) + " written) to",
                 reason);
        }
        done += static_cast<std::size_t>(n);
    }
}

void DiskFile::read(std::int64_t at, void* to, std::size_t bytes) const {
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t n =
            sys::pread(file_, static_cast<char*>(to) + done, bytes - done, at + static_cast<std::int64_t>(done));
        if (n < 0 && errno == EINTR) continue;
        if (n > 0) {
            done += static_cast<std::size_t>(n);
            continue;
        }
        const int reason = errno;
        const std::string what = "cannot read " + count(static_cast<std::int64_t>(bytes)) + " at byte " +
                                 std::to_string(at) + " (" + std::to_string(done) + " read) from";
        if (n < 0) fail(path_, what, reason);
        throw StoreError(what + " '" + path_.string() + "': the file ends there; did somebody else cut it?");
    }
}

void DiskFile::sync() {
    check_name();
    if (sys::fdatasync(file_) != 0) fail(path_, "cannot force to the disk " + count(size()) + " of", errno);
}

void DiskFile::sync_folder() {
    const std::filesystem::path parent = path_.parent_path();
    const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) fail(parent, "cannot open the folder", errno);
    const int status = sys::fsync(folder);
    const int reason = errno;
    ::close(folder);
    // EINVAL: a file system that cannot force a folder
    if (status != 0 && reason != EINVAL) fail(parent, "cannot force to the disk the folder", reason);
}

void DiskFile::remove() noexcept {
    struct stat mine {
    }, there{};
    if (!named_ || ::fstat(file_, &mine) != 0 || ::stat(path_.c_str(), &there) != 0) return;
    if (mine.st_ino == there.st_ino && mine.st_dev == there.st_dev) ::unlink(path_.c_str());
    named_ = false;
}

void DiskFile::check_name() const {
    struct stat status {};
    if (!named_) return;
    if (::fstat(file_, &status) != 0) fail(path_, "cannot ask for the size of", errno);
    if (status.st_nlink == 0) {
        throw StoreError("'" + path_.string() + "' was removed while it was in use: what is written would be lost (" +
                         count(status.st_size) + "); keep the folder until the run has ended");
    }
}

}  // namespace backsweep
