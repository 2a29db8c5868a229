// Runs the program `backsweep` as a user does, and reads what a run leaves in its folder.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/train/snapshot.hpp"
#include "support/reference_dir.hpp"
#include "support/scratch.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace backsweep::test {

namespace fs = std::filesystem;

inline std::string text_of_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const fs::path& path, std::string_view text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

/// What a command answered.
struct Answer {
    int code = 0;  ///< exit status, or minus the signal
    std::string out, err;

    nlohmann::json json() const { return nlohmann::json::parse(out); }
    bool says(std::string_view words) const { return err.find(words) != std::string::npos; }
};

/// Starts `backsweep words...` in a folder; its output goes to the files out and err there.
inline pid_t start_program(const std::vector<std::string>& words, const fs::path& folder) {
    const char* given = std::getenv("BACKSWEEP_PROGRAM");
    const std::string program = given && *given ? given : "backsweep";
    return start_process([&] {
        const auto onto = [&](int descriptor, const char* name) {
            ::dup2(::open((folder / name).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644), descriptor);
        };
        fs::current_path(folder);
        onto(STDOUT_FILENO, "out");
        onto(STDERR_FILENO, "err");
        std::vector<char*> arguments{const_cast<char*>(program.c_str())};
        for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
        arguments.push_back(nullptr);
        ::execvp(program.c_str(), arguments.data());
        return 98;
    });
}

inline Answer run_program(const std::vector<std::string>& words, const fs::path& folder) {
    const int code = end_of(start_program(words, folder));
    return {code, text_of_file(folder / "out"), text_of_file(folder / "err")};
}

/// The same for a line of sh, in which $BACKSWEEP_PROGRAM is the program; `out` and `err` are the line's.
inline Answer run_shell(const std::string& line, const fs::path& folder) {
    const int code = end_of(start_process([&] {
        fs::current_path(folder);
        ::execl("/bin/sh", "sh", "-c", ("{ " + line + "\n} >out 2>err").c_str(), nullptr);
        return 98;
    }));
    return {code, text_of_file(folder / "out"), text_of_file(folder / "err")};
}

/// Text with every byte of a small alphabet and structure enough to learn something from.
inline std::string some_text(std::size_t bytes) {
    std::string text;
    for (std::uint64_t x = 88172645463325252u; text.size() < bytes; x ^= x << 13, x ^= x >> 7, x ^= x << 17)
        text += std::array{"the tape ", "is wound ", "back,\n", "step ", "by step ", "again. "}[x % 6];
    text.resize(bytes);
    return text;
}

/// A small configuration over text.txt beside it: T steps of B = 5 streams, ragged last window, hidden not a multiple
/// of 32.
inline std::string small_config(const std::string& train = "updates = 6", const std::string& more = "",
                                const std::string& data = "batch = 5\nwindow = 7") {
    return "[data]\npath = \"text.txt\"\nsplit = [80, 10, 10]\n" + data +
           "\n[model]\nembedding = 3\nhidden = 9\nlayers = 2\n[train]\nchunk = 3\nseed = 4\n" + train + "\n" + more;
}

/// The numbers of metrics.jsonl, a line each.
inline std::vector<nlohmann::json> metrics(const fs::path& run) {
    std::ifstream file(run / "metrics.jsonl");
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
}

/// The bytes of all tensors of the run's newest snapshot, by name.
inline std::map<std::string, std::vector<std::byte>> tensors(const fs::path& run) {
    const NewestSnapshot newest = read_newest(run / "snapshots");
    std::map<std::string, std::vector<std::byte>> all;
    for (const TensorView& t : newest.snapshot.tensors) all[t.name] = {t.data.begin(), t.data.end()};
    return all;
}

}  // namespace backsweep::test
