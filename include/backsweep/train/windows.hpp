// How a stream of steps is cut into the windows of updates: equal ones, of random length [MKS18, section 5], or cut at
// random with the gradient made unbiased [TO17].
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace backsweep {

/// Plain data. The mean length is the source's window.
struct WindowSpec {
    enum class Law {
        fixed,   ///< every window as long as the source says
        normal,  ///< N(mean, deviation), with chance `half` N(mean / 2, deviation); the rate is scaled by length / mean
        artbp    ///< cut behind a link with a chance that makes `mean` steps on average; see cut_window
    };

    Law law = Law::fixed;
    double deviation = 5.0;  ///< normal: steps
    double half = 0.05;      ///< normal: chance
    Index shortest = 5;      ///< normal: no window is shorter, but for the end of the stream
    double tail = 4.0;       ///< artbp: alpha of [TO17], > 3: the gradient's variance is finite; 0: constant chance
    Index longest = 0;  ///< random laws: steps of the longest window; 0: normal: mean + 6 deviation, artbp: 64 mean

    /// Steps of the longest window.
    Index most(Index mean) const;
    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
    /// The same, for windows of this mean and links of so many steps.
    std::string problem(Index mean, Index chunk) const;
};

/// One window.
struct WindowCut {
    Index steps = 0;
    /// artbp: of each link but the first, by what the adjoint is multiplied that leaves it for the link before.
    std::vector<double> factors;
};

/// The window of an update, a function of the arguments alone; `left` steps of the stream are left, >= 1.
/// artbp: behind every link but the last of the stream the window ends with chance c, a function of the steps since it
/// began; where it goes on, the adjoint gets the factor 1 / (1 - c) [TO17]: the expected gradient of the sum of
/// all losses of a stream is that of full back-propagation. A window that is cut for its length alone (`longest`) is
/// the exception.
WindowCut cut_window(const WindowSpec& spec, Index mean, Index chunk, Index left, std::uint64_t seed, Index update);

}  // namespace backsweep
