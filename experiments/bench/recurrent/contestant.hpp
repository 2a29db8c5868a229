// What the contestants that are C++ programs share: the case as `key=value` arguments, its numbers, which are the same
// in every contestant, and the talk with the driver over standard input and output, a word in and a line of JSON out.
// SPDX-License-Identifier: MIT
#pragma once

#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

/// A case: an array has [step][batch][hidden], inputs are as wide as the hidden layers.
struct Case {
    Case(int argc, char** argv) : words(parse(argc, argv)) {}
    static std::map<std::string, std::string> parse(int argc, char** argv) {
        std::map<std::string, std::string> words;
        for (int k = 1; k < argc; ++k) {
            const std::string word = argv[k];
            const auto at = word.find('=');
            if (at == std::string::npos) throw std::invalid_argument("an argument is key=value, got '" + word + "'");
            words[word.substr(0, at)] = word.substr(at + 1);
        }
        return words;
    }
    std::string text(const std::string& key, const std::string& otherwise) const {
        const auto found = words.find(key);
        return found == words.end() ? otherwise : found->second;
    }
    std::int64_t number(const std::string& key, std::int64_t otherwise) const {
        return std::stoll(text(key, std::to_string(otherwise)));
    }

    std::map<std::string, std::string> words;
    std::string cell = text("cell", "lstm");  ///< lstm, gru, lstm_norm
    std::int64_t steps = number("steps", 100), batch = number("batch", 32), hidden = number("hidden", 128),
                 layers = number("layers", 1), threads = number("threads", 1);
    double scale = 1.0 / static_cast<double>(steps * batch * hidden);  ///< of the sum of squares: their mean
};

enum class Array : std::uint64_t { parameters, inputs, targets };

/// Element k of an array: uniform in [-width, width).
inline float number(Array array, std::uint64_t k, float width) {
    std::uint64_t u = ((k + 1 + (static_cast<std::uint64_t>(array) << 28)) * 2654435761u) & 0xffffffff;
    u ^= u >> 16;
    u = (u * 0x85ebca6b) & 0xffffffff;
    u ^= u >> 13;
    return (static_cast<float>(u >> 8) * 0x1p-23f - 1.0f) * width;
}

inline double seconds(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Of this process: a line of /proc/self/status, in bytes.
inline std::int64_t status(const std::string& name) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);)
        if (line.compare(0, name.size(), name) == 0) return std::stoll(line.substr(name.size() + 1)) * 1024;
    return 0;
}

/// Loss, gradient of the parameters in PyTorch's order, gradient of the inputs.
inline void write(const std::string& path, double loss, const std::vector<float>& parameters,
                  const std::vector<float>& inputs) {
    std::ofstream file(path, std::ios::binary);
    const auto put = [&](const float* from, std::size_t count) {
        file.write(reinterpret_cast<const char*>(from), static_cast<std::streamsize>(count * sizeof(float)));
    };
    const auto first = static_cast<float>(loss);
    put(&first, 1);
    put(parameters.data(), parameters.size());
    put(inputs.data(), inputs.size());
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

/// Makes a contestant of the case and does what the driver says: `step`, `gradients PATH`, `facts`, or `memory`.
/// A contestant has version(), step(), gradients(path) and facts(), an object in JSON.
template <class Contestant>
int serve(int argc, char** argv) try {
    const Case c(argc, argv);
    {  // the code, and what libraries keep for themselves
        Case few = c;
        few.steps = std::min<std::int64_t>(few.steps, 4);
        Contestant(few).step();
    }
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";  // the peak from here on
    const std::int64_t before = status("VmRSS");
    Contestant contestant(c);
    std::cout << "{\"version\": \"" << contestant.version() << "\"}" << std::endl;
    for (std::string word; std::cin >> word;) {
        if (word == "step") {
            const double wall = seconds(CLOCK_MONOTONIC), processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
            contestant.step();
            const double used = seconds(CLOCK_PROCESS_CPUTIME_ID) - processor, passed = seconds(CLOCK_MONOTONIC) - wall;
            std::cout << "{\"wall\": " << passed << ", \"processor\": " << used << "}" << std::endl;
        } else if (word == "gradients") {
            std::string path;
            std::cin >> path;
            contestant.gradients(path);
            std::cout << "{}" << std::endl;
        } else if (word == "facts") {
            std::cout << contestant.facts() << std::endl;
        } else if (word == "memory") {
            const std::int64_t peak = status("VmHWM");
            std::cout << "{\"peak\": " << peak << ", \"held\": " << peak - before << "}" << std::endl;
        } else {
            throw std::invalid_argument("no such word: " + word);
        }
    }
    return EXIT_SUCCESS;
} catch (const std::exception& e) {
    std::cerr << argv[0] << ": " << e.what() << '\n';
    return EXIT_FAILURE;
}

}  // namespace bench
