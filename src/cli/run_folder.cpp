// SPDX-License-Identifier: MIT
#include "cli/run_folder.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/train/durable_file.hpp"
#include "cli/report.hpp"
#include "cli/toml.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace backsweep::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* lock_name = ".lock";

}  // namespace

RunFolder::~RunFolder() {
    if (lock_ >= 0) ::close(lock_);
}

bool RunFolder::used() const {
    std::error_code error;
    for (auto at = fs::recursive_directory_iterator(path_, error); at != fs::recursive_directory_iterator(); ++at) {
        if (at->path() == path_ / "scratch") at.disable_recursion_pending();  // of a process that has not begun, or this one
        if (!at->is_directory() && at->path().extension() != ".tmp" && at->path() != path_ / lock_name) return true;
    }
    return fs::exists(path_, error) && !fs::is_directory(path_, error);
}

void RunFolder::require_run() const {
    if (!fs::is_regular_file(path_ / "config.toml"))
        throw InvalidArgument(fmt::format(
            "'{}' is no run: it has no config.toml; give a folder that `backsweep train` wrote", path_.string()));
}

void RunFolder::lock() {
    const std::string name = (path_ / lock_name).string();
    lock_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
    if (lock_ >= 0 && errno == EWOULDBLOCK)
        throw InvalidArgument(
            fmt::format("another process is training in '{}'; wait for its end, or give another folder with --out",
                        path_.string()));
    throw StoreError(fmt::format("cannot lock '{}': {}", name, std::strerror(errno)));
}

void RunFolder::claim() {
    require_run();
    lock();
}

Config RunFolder::config(const std::vector<std::string>& settings) const {
    require_run();
    return configure_with(read_toml(path_ / "config.toml"), settings).config;
}

std::optional<NewestSnapshot> RunFolder::newest(std::vector<std::string>& warnings) const {
    if (backsweep::snapshots(snapshots()).empty()) return std::nullopt;
    try {
        NewestSnapshot found = read_newest(snapshots());
        for (const std::string& why : found.skipped) warnings.push_back("a damaged snapshot is passed over: " + why);
        return found;
    } catch (const StoreError& error) {
        throw InvalidArgument(error.what());
    }
}

void RunFolder::begin(const Config& config, const RunManifest& manifest, Index update) {
    std::error_code error;
    fs::create_directories(snapshots(), error);
    if (error) throw StoreError(fmt::format("cannot make the folder '{}': {}", snapshots().string(), error.message()));
    if (lock_ < 0) {
        lock();
        if (used())
            throw InvalidArgument(
                fmt::format("another process has begun a run in '{}'; give another folder with --out", path_.string()));
    }
    remove_stale_files(path_);
    remove_stale_files(snapshots());
    write_durable(path_ / "config.toml", "# Resolved by `backsweep train`; the plan is pinned.\n" + to_toml(config));
    write_manifest(path_, manifest);

    const fs::path metrics = path_ / "metrics.jsonl";
    std::string kept, line;
    std::ifstream old(metrics);
    while (std::getline(old, line))
        if (const Index of = update_of(line); of >= 0 && of <= update) kept += line + "\n";
    write_durable(metrics, kept);
    metrics_.open(metrics, std::ios::app);
}

void RunFolder::append(const std::string& line) {
    if (!(metrics_ << line << std::flush))
        throw StoreError(
            fmt::format("cannot write to '{}': {}", (path_ / "metrics.jsonl").string(), std::strerror(errno)));
}

OpenRun open_run(const fs::path& path, const std::vector<std::string>& settings, std::vector<std::string>& warnings) {
    if (fs::is_directory(path)) {
        const RunFolder folder(path);
        Config config = folder.config(settings);
        std::optional<NewestSnapshot> newest = folder.newest(warnings);
        if (!newest)
            throw InvalidArgument(
                fmt::format("the run '{}' has no snapshot yet; let it train until it has one", path.string()));
        return {std::move(config), std::move(newest->snapshot), std::move(newest->path)};
    }
    try {
        Snapshot snapshot = read_snapshot(path);
        const auto note = snapshot.notes.find(config_note);
        if (note == snapshot.notes.end())
            throw InvalidArgument(
                fmt::format("the snapshot '{}' does not tell its configuration; give the run's folder", path.string()));
        return {configure_with(parse_toml(note->second, path.string(), "/"), settings).config, std::move(snapshot),
                path};
    } catch (const StoreError& error) {
        throw InvalidArgument(error.what());
    }
}

}  // namespace backsweep::cli
