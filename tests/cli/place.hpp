// A folder in which the program trains, and what its runs leave there.
// SPDX-License-Identifier: MIT
#pragma once

#include "cli/program.hpp"
#include "support/unit_test.hpp"

namespace backsweep::test {

/// A folder with text.txt and config.toml.
struct Place : Scratch {
    explicit Place(const std::string& config = small_config(), const std::string& text = some_text(2000)) {
        write_file(path() / "text.txt", text);
        write_file(path() / "config.toml", config);
    }
    Answer train(const std::string& run, const std::vector<std::string>& settings = {},
                 const std::vector<std::string>& more = {}) const {
        std::vector<std::string> words{"train", "config.toml", "--out", run};
        for (const std::string& s : settings) words.insert(words.end(), {"--set", s});
        words.insert(words.end(), more.begin(), more.end());
        Answer answer = run_program(words, path());
        BOOST_TEST_CONTEXT(answer.err) BOOST_CHECK_EQUAL(answer.code, 0);
        return answer;
    }
};

/// The updates of metrics.jsonl without the clock and without what a process held.
inline std::vector<nlohmann::json> updates(const fs::path& run) {
    std::vector<nlohmann::json> kept;
    for (nlohmann::json line : metrics(run)) {
        if (line.contains("part")) continue;
        for (const char* key : {"seconds", "spent", "live", "peak", "peak_rss"}) line.erase(key);
        kept.push_back(std::move(line));
    }
    return kept;
}

inline void check_same_end(const fs::path& a, const fs::path& b) {
    BOOST_TEST((tensors(a) == tensors(b)));
    BOOST_TEST((updates(a) == updates(b)));
}

}  // namespace backsweep::test
