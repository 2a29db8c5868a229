// What the C faces share: no exception leaves a call, errors become a status and a text, and structs begin with the
// size that the caller knows.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/base/export.hpp"
#include "backsweep/c/backsweep.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace backsweep::face {

/// Keeps the text for backsweep_error_text() in this thread; answers the status.
BACKSWEEP_API int tell(int status, std::string_view text) noexcept;

/// `body` may answer with a status of its own; it has then told why.
template <class Body>
int guarded(Body&& body) noexcept {
    try {
        if constexpr (std::is_void_v<decltype(body())>) {
            body();
            return BACKSWEEP_OK;
        } else {
            return body();
        }
    } catch (const InvalidArgument& error) {
        return tell(BACKSWEEP_INVALID_ARGUMENT, error.what());
    } catch (const ScheduleError& error) {
        return tell(BACKSWEEP_SCHEDULE_ERROR, error.what());
    } catch (const StoreError& error) {
        return tell(BACKSWEEP_STORE_ERROR, error.what());
    } catch (const std::bad_alloc&) {
        return tell(BACKSWEEP_FAILURE, "there is not enough memory; give fewer slots");
    } catch (const std::exception& error) {
        return tell(BACKSWEEP_FAILURE, error.what());
    } catch (...) {
        return tell(BACKSWEEP_FAILURE, "an exception of unknown type");
    }
}

[[noreturn]] inline void refuse(const std::string& text) {
    throw InvalidArgument(text);
}

template <class Pointer>
Pointer given(Pointer pointer, const char* name, const char* what_to_give) {
    if (pointer == nullptr) refuse(std::string(name) + " is NULL; give " + what_to_give);
    return pointer;
}

/// The caller's sizeof a struct of which this library knows `known` bytes: structs grow by whole words at their end.
inline std::size_t size_from(std::size_t size, std::size_t known, const std::string& name) {
    constexpr std::size_t word = sizeof(std::size_t), most = std::size_t{1} << 16;
    if (size < 2 * word || size > most || size % word != 0) {
        refuse(name + ".size is " + std::to_string(size) + ", this library knows " + std::to_string(known) +
               " bytes; begin with the _INIT of the struct");
    }
    return size;
}

/// The caller's struct over the defaults, which are zero. An older caller gives fewer fields; a newer one may give more
/// as long as they are left at their default.
template <class Struct>
Struct read(const Struct* from, const std::string& name) {
    if (from == nullptr) refuse(name + " is NULL; give its _INIT, filled in");
    const std::size_t size = size_from(from->size, sizeof(Struct), name);
    Struct result{};
    std::memcpy(&result, from, std::min(size, sizeof(Struct)));
    if (size > sizeof(Struct)) {
        const std::span unknown(reinterpret_cast<const unsigned char*>(from) + sizeof(Struct), size - sizeof(Struct));
        const auto used = std::find_if(unknown.begin(), unknown.end(), [](unsigned char byte) { return byte != 0; });
        if (used != unknown.end()) {
            refuse(name + " has " + std::to_string(size) + " bytes, this library knows " +
                   std::to_string(sizeof(Struct)) + ", and byte " +
                   std::to_string(sizeof(Struct) + static_cast<std::size_t>(used - unknown.begin())) +
                   " is not 0; leave the newer fields out, or take the library that the header belongs to");
        }
    }
    return result;
}

/// An array of the caller's, each element converted.
template <class From, class Convert>
auto array(const From* from, std::size_t count, const std::string& name, Convert convert) {
    constexpr std::size_t most = std::numeric_limits<std::int32_t>::max();
    if (count > 0) given(from, name.c_str(), "as many elements as its count says");
    if (count > most) {
        refuse(name + " has " + std::to_string(count) + " elements, at most " + std::to_string(most) + " are taken");
    }
    std::vector<std::decay_t<decltype(convert(*from))>> result(count);
    std::transform(from, from + count, result.begin(), convert);
    return result;
}

inline bool flag(std::int32_t value, const char* name) {
    if (value != 0 && value != 1) refuse(std::string(name) + " must be 0 or 1, came " + std::to_string(value));
    return value == 1;
}

}  // namespace backsweep::face
