// The exceptions of the library. Each message says what was wanted, what came and what to do.
// Standard library only: the planning rooms include it.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"

#include <stdexcept>
#include <string>

namespace backsweep {

/// Base of everything the library throws.
class BACKSWEEP_API Error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A value, option or shape that the callee cannot work with.
class BACKSWEEP_API InvalidArgument : public Error {
    using Error::Error;
};

/// An illegal action, or a schedule used against its rules.
class BACKSWEEP_API ScheduleError : public Error {
    using Error::Error;
};

/// A store or file that failed; the message names the path and the system's reason.
class BACKSWEEP_API StoreError : public Error {
    using Error::Error;
};

/// A numerical library or device that failed; the message names the call and its status in words.
class BACKSWEEP_API BackendError : public Error {
    using Error::Error;
};

/// A value that is not finite; the message names step and layer.
class BACKSWEEP_API NumericError : public Error {
    using Error::Error;
};

/// No plan fits the limit; the message names the least that works.
class BACKSWEEP_API NoPlan : public Error {
    using Error::Error;
};

}  // namespace backsweep
