// What a person sees of a running training: a bar that is drawn again on a terminal, else a plain line now and then.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/plan/workload.hpp"

#include <chrono>
#include <cstdio>
#include <string>

namespace backsweep::cli {

/// Where a training stands.
struct Standing {
    Index update = 0;
    double fraction = 0.0;          ///< of the run that is done, by the limit that comes first
    double seconds = 0.0;           ///< of training so far
    double steps_per_second = 0.0;  ///< of all sequences together
    double loss = 0.0;
    bool bits = false;  ///< the loss can be told in bits per character
    Bytes live{};
};

class Progress {
public:
    Progress(std::FILE* out, const Budget& budget);
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show(const Standing& standing);
    /// Takes the bar away; what is printed next stands on a line of its own.
    void clear();

private:
    using Clock = std::chrono::steady_clock;

    std::FILE* out_;
    Budget budget_;
    bool terminal_;
    bool drawn_ = false;
    Clock::time_point next_{};
};

/// "2.197 (3.170 bits per character)".
std::string loss_in_words(double loss, bool bits);
/// "1:05", "2:00:00".
std::string time_in_words(double seconds);

}  // namespace backsweep::cli
