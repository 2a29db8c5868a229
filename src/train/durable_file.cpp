// SPDX-License-Identifier: MIT
#include "backsweep/train/durable_file.hpp"

#include "backsweep/base/error.hpp"
#include "base/system_calls.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

namespace backsweep {

namespace {

/// "<name>.<process>-<number>.tmp": no two live writers share it.
std::filesystem::path temporary_name(const std::filesystem::path& path) {
    static std::atomic<unsigned> number{0};
    return fmt::format("{}.{}-{}.tmp", path.string(), ::getpid(), ++number);
}

/// The process that wrote a file of that name, or 0.
pid_t writer(const std::filesystem::path& path) {
    if (path.extension() != ".tmp") return 0;
    const std::string process = path.stem().extension().string();  // ".<process>-<number>"
    pid_t pid = 0;
    if (process.empty()) return 0;
    const auto [end, error] = std::from_chars(process.data() + 1, process.data() + process.size(), pid);
    return error == std::errc{} && *end == '-' && pid > 0 ? pid : 0;
}

}  // namespace

/// Writes to a file descriptor, and throws with the reason where it cannot.
class DurableFile::Buffer : public std::streambuf {
public:
    explicit Buffer(const std::filesystem::path& path)
        : path_(path),
          temporary_(temporary_name(path)),
          memory_(std::size_t{1} << 18) {
        file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file_ < 0) fail();
        setp(memory_.data(), memory_.data() + memory_.size());
    }

    ~Buffer() override {
        if (file_ >= 0) ::close(file_);
        if (!committed_) ::unlink(temporary_.c_str());
    }

    void commit() {
        flush();
        if (sys::fsync(file_) != 0) fail();
        if (::close(std::exchange(file_, -1)) != 0) fail();
        if (sys::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
        committed_ = true;

        const std::filesystem::path parent = path_.parent_path();
        const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0) fail();
        const int status = sys::fsync(folder);
        const int reason = errno;
        ::close(folder);
        errno = reason;
        if (status != 0 && reason != EINVAL) fail();  // EINVAL: a file system that cannot force a folder
    }

protected:
    int_type overflow(int_type c) override {
        flush();
        if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
        return traits_type::not_eof(c);
    }

private:
    void flush() {
        const char* from = pbase();
        while (from != pptr()) {
            const ssize_t n = sys::write(file_, from, static_cast<std::size_t>(pptr() - from));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) fail();
            from += n;
            written_ += n;
        }
        setp(memory_.data(), memory_.data() + memory_.size());
    }

    [[noreturn]] void fail() const {
        const int reason = errno;
        throw StoreError(
            fmt::format("cannot write '{}' ({} bytes written): {}", path_.string(), written_, std::strerror(reason)));
    }

    std::filesystem::path path_, temporary_;
    std::vector<char> memory_;
    int file_ = -1;
    std::int64_t written_ = 0;
    bool committed_ = false;
};

DurableFile::DurableFile(std::filesystem::path path)
    : path_(std::move(path)),
      buffer_(std::make_unique<Buffer>(path_)),
      stream_(std::make_unique<std::ostream>(buffer_.get())) {
    stream_->exceptions(std::ios::badbit);
}

DurableFile::~DurableFile() = default;

void DurableFile::commit() {
    buffer_->commit();
}

void write_durable(const std::filesystem::path& path, std::string_view text) {
    DurableFile file(path);
    file.stream() << text;
    file.commit();
}

void remove_stale_files(const std::filesystem::path& folder) {
    std::error_code error;
    for (const auto& item : std::filesystem::directory_iterator(folder, error)) {
        const pid_t pid = writer(item.path());
        if (pid != 0 && ::kill(pid, 0) != 0 && errno == ESRCH) std::filesystem::remove(item.path(), error);
    }
}

}  // namespace backsweep
