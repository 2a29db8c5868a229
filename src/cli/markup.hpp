// Text within HTML and SVG.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace backsweep::cli {

/// Text as content or attribute; what XML has no way to say (control characters) becomes U+FFFD.
inline std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '"')
            out += "&quot;";
        else if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
            out += "\xef\xbf\xbd";
        else
            out += c;
    }
    return out;
}

}  // namespace backsweep::cli
