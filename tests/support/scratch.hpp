// A folder for one test, and processes that may be killed in it.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace backsweep::test {

/// Empty at first, gone afterwards.
class Scratch {
public:
    Scratch() {
        std::string name = (std::filesystem::temp_directory_path() / "backsweep-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~Scratch() { std::filesystem::remove_all(path_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }
    /// Names of the files in it, sorted.
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const auto& item : std::filesystem::directory_iterator(path_))
            names.push_back(item.path().filename().string());
        std::sort(names.begin(), names.end());
        return names;
    }

private:
    std::filesystem::path path_;
};

/// Runs f in a process of its own, which ends with the status that f returns, or 99 if it throws.
template <class F>
pid_t start_process(F f) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    int status = 99;
    try {
        status = f();
    } catch (...) {}
    ::_exit(status);
}

/// Waits; the exit status, or minus the signal that killed the process.
inline int end_of(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace backsweep::test
