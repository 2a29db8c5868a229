// SPDX-License-Identifier: MIT
#include "train/fail_point.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace backsweep {

namespace {

struct Wish {
    std::string name;
    long count = 0;  // 0: none
    long passed = 0;

    explicit Wish(const char* text) {
        if (!text) return;
        const std::string wish = text;
        const auto colon = wish.find(':');
        name = wish.substr(0, colon);
        count = colon == std::string::npos ? 1 : std::atol(wish.c_str() + colon + 1);
    }
};

Wish& wish() {
    static Wish wish(std::getenv("BACKSWEEP_FAIL_POINT"));
    return wish;
}

}  // namespace

void fail_point(std::string_view name) noexcept {
    Wish& w = wish();
    if (w.count == 0 || (w.name != "any" && w.name != name)) return;
    if (++w.passed == w.count) ::_exit(fail_point_status);
}

void ask_for_fail_point(const char* text) {
    wish() = Wish(text);
}

}  // namespace backsweep
