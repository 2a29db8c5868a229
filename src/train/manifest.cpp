// SPDX-License-Identifier: MIT
#include "backsweep/train/manifest.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/train/durable_file.hpp"
#include "base/build_info.hpp"
#include "train/checksum.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <system_error>
#include <thread>

namespace backsweep {

namespace {

std::string cpu_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name"))
            if (const auto at = line.find(": "); at != std::string::npos) return line.substr(at + 2);
    return "unknown";
}

}  // namespace

RunManifest this_program() {
    const BuildInfo& build = build_info();
    RunManifest manifest;
    manifest.version = build.version;
    manifest.compiler = build.compiler;
    manifest.flags = build.flags;
    manifest.build_type = build.build_type;
    manifest.cpu = cpu_name();
    manifest.cores = std::thread::hardware_concurrency();
    const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    manifest.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
    return manifest;
}

std::string file_checksum(const std::filesystem::path& path) {
    const auto refuse = [&] {
        throw StoreError(fmt::format("cannot read '{}' for its checksum: {}", path.string(), std::strerror(errno)));
    };
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (!file) refuse();
    Checksum sum;
    std::vector<char> piece(std::size_t{1} << 18);
    do {
        file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
        sum.add(std::string_view(piece.data(), static_cast<std::size_t>(file.gcount())));
    } while (file);
    if (file.bad()) refuse();
    return sum.text();
}

void write_manifest(const std::filesystem::path& folder, const RunManifest& m) {
    const nlohmann::ordered_json object{
        {"version", m.version},
        {"compiler", m.compiler},
        {"flags", m.flags},
        {"build_type", m.build_type},
        {"cpu", m.cpu},
        {"cores", m.cores},
        {"threads", m.threads},
        {"seed", m.seed},
        {"data", m.data},
        {"data_bytes", m.data_bytes},
        {"data_checksum", m.data_checksum},
        {"plan", m.plan.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json::parse(m.plan)},
        {"command", m.command},
        {"started", m.started},
    };
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw StoreError(fmt::format("cannot make the folder '{}': {}", folder.string(), error.message()));
    using Handler = nlohmann::ordered_json::error_handler_t;
    write_durable(folder / "manifest.json", object.dump(2, ' ', false, Handler::replace) + '\n');
}

}  // namespace backsweep
