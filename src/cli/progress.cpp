// SPDX-License-Identifier: MIT
#include "cli/progress.hpp"

#include "backsweep/plan/plan.hpp"
#include "cli/process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>

namespace backsweep::cli {

namespace {

constexpr int bar_width = 20;
constexpr std::chrono::milliseconds redraw{100};
constexpr std::chrono::seconds next_line{10};

/// "live 1.21 MiB", "time axis 0.70 MiB of 2.00 MiB": of two limits the one that is closer.
std::string memory_in_words(const Bytes& live, const Budget& budget) {
    const auto full = [](std::int64_t is, std::int64_t of) {
        return of == Budget::unlimited ? -1.0 : static_cast<double>(is) / static_cast<double>(of);
    };
    if (const double axis = full(live.time_axis(), budget.time_axis);
        axis >= 0.0 && axis >= full(live.total(), budget.ram))
        return fmt::format("time axis {} of {}", bytes_in_words(live.time_axis()), bytes_in_words(budget.time_axis));
    if (budget.ram != Budget::unlimited)
        return fmt::format("live {} of {}", bytes_in_words(live.total()), bytes_in_words(budget.ram));
    return fmt::format("live {}", bytes_in_words(live.total()));
}

}  // namespace

Progress::Progress(std::FILE* out, const Budget& budget) : out_(out), budget_(budget), terminal_(is_terminal(out)) {}

void Progress::show(const Standing& s) {
    const Clock::time_point now = Clock::now();
    if (now < next_) return;
    next_ = now + (terminal_ ? Clock::duration(redraw) : Clock::duration(next_line));
    const double left = s.fraction > 0.0 ? s.seconds * (1.0 - s.fraction) / s.fraction : 0.0;
    const std::string line = fmt::format("update {}, {:.0f} %, {:.0f} steps/s, {} left, loss {}, {}", s.update,
                                         100.0 * s.fraction, s.steps_per_second, time_in_words(left),
                                         loss_in_words(s.loss, s.bits), memory_in_words(s.live, budget_));
    if (terminal_) {
        const int filled = std::clamp(static_cast<int>(s.fraction * bar_width), 0, bar_width);
        fmt::print(out_, "\r\033[K[{:#<{}}{:.<{}}] {}", "", filled, "", bar_width - filled, line);
    } else {
        fmt::print(out_, "{}\n", line);
    }
    drawn_ = terminal_;
    std::fflush(out_);
}

void Progress::clear() {
    if (drawn_) fmt::print(out_, "\r\033[K");
    drawn_ = false;
    std::fflush(out_);
}

std::string loss_in_words(double loss, bool bits) {
    return bits ? fmt::format("{:.4f} ({:.4f} bits per character)", loss, loss / std::numbers::ln2)
                : fmt::format("{:.6g}", loss);
}

std::string time_in_words(double seconds) {
    const auto s = static_cast<long long>(seconds + 0.5);
    return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                     : fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace backsweep::cli
