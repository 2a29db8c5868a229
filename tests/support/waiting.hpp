// The one list of reference cases that cannot run yet, by operation and option, never by file name; empty at the end.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string_view>

namespace backsweep::test {

struct Waiting {
    std::string_view kind;       ///< folder of the reference files: "schedules", "nn"
    std::string_view operation;  ///< the file's own name for what it holds
    std::string_view
        option;  ///< the option that is missing ("lengths"), or its value ("name=l1"); empty: the whole operation
    std::string_view issue;  ///< what the case waits for
};

inline constexpr std::array<Waiting, 0> waiting_cases{};

/// The row that an operation, or one option of it, waits under; null if it must run.
constexpr const Waiting* waiting_for(std::string_view kind, std::string_view operation, std::string_view option = "") {
    for (const Waiting& row : waiting_cases) {
        if (row.kind == kind && row.operation == operation && (row.option.empty() || row.option == option)) return &row;
    }
    return nullptr;
}

}  // namespace backsweep::test
