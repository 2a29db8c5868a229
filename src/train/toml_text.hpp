// Values as TOML writes them.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace backsweep {

inline std::string toml_string(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            out += fmt::format("\\u{:04x}", static_cast<int>(c));
        else
            out += c;
    }
    return out + '"';
}

inline std::string toml_number(double x) {
    std::string out = fmt::format("{}", x);
    return out.find_first_of(".en") == std::string::npos ? out + ".0" : out;
}

}  // namespace backsweep
