// Reads TOML into a flat list of given keys; the only file of the program that knows the TOML library.
// SPDX-License-Identifier: MIT
#pragma once

#include "cli/config.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace backsweep::cli {

/// All keys of a file, tables flattened. Throws InvalidArgument: no such file, no TOML (with line), a value of a kind
/// that no key has.
std::vector<Given> read_toml(const std::filesystem::path& path);
/// The same for a text in memory; `source` stands for the path in messages, `base` is its folder.
std::vector<Given> parse_toml(std::string_view text, const std::string& source, const std::filesystem::path& base);

/// "key=value" of the command line. What is no TOML value is a text without its quotes.
Given parse_setting(const std::string& setting);

/// configure() of `given` and then of "key=value" settings.
Loaded configure_with(std::vector<Given> given, const std::vector<std::string>& settings);

}  // namespace backsweep::cli
