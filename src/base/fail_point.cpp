// SPDX-License-Identifier: MIT
#include "base/fail_point.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

namespace backsweep {

namespace {

struct Wish {
    std::string name;
    long count = 0;  // 0: none
    long passed = 0;
    Fault fault = Fault::none;  // none: die

    explicit Wish(const char* text) {
        if (!text) return;
        const std::string wish = text;
        const auto colon = wish.find(':');
        name = wish.substr(0, colon);
        count = 1;
        if (colon == std::string::npos) return;
        count = std::atol(wish.c_str() + colon + 1);
        const std::string what = wish.substr(std::min(wish.find(':', colon + 1), wish.size()));
        constexpr std::array<std::pair<const char*, Fault>, 5> words{{{":error", Fault::error},
                                                                      {":full", Fault::full},
                                                                      {":short", Fault::cut},
                                                                      {":lost", Fault::lost},
                                                                      {":flip", Fault::flip}}};
        for (const auto& [word, meaning] : words)
            if (what == word) fault = meaning;
    }
};

std::mutex mutex;

Wish& wish() {
    static Wish wish(std::getenv("BACKSWEEP_FAIL_POINT"));
    return wish;
}

}  // namespace

Fault fail_point(std::string_view name) noexcept {
    const std::lock_guard lock(mutex);
    Wish& w = wish();
    if (w.count == 0 || (w.name != "any" && w.name != name)) return Fault::none;
    if (++w.passed != w.count) return Fault::none;
    if (w.fault == Fault::none) ::_exit(fail_point_status);
    return w.fault;
}

void ask_for_fail_point(const char* text) {
    const std::lock_guard lock(mutex);
    wish() = Wish(text);
}

}  // namespace backsweep
