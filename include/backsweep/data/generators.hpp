// Made tasks with a known long-range dependency: the adding problem [HS97] and copy memory [HS97], both in the form
// of [ASB16]. Window k of a seed is the same numbers wherever and whenever it is read.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/data/batches.hpp"

#include <cstdint>
#include <string>

namespace backsweep {

/// `steps` pairs (x, marker) with x uniform in [0, 1) and marker 1 at one place of each half, else 0.
/// Target of the last step: the sum of the two marked x; the other positions have weight 0.
/// Always saying 1 has a mean squared error of 1/6.
struct AddingSpec {
    Index steps = 100;     ///< >= 2
    Index batch = 32;      ///< sequences of a window, each new
    Index windows = 1000;  ///< that are called an epoch
    std::uint64_t seed = 1;

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// `length` random symbols, delay - 1 blanks, a delimiter, `length` blanks: delay + 2 length steps.
/// Targets: blanks, and in the last `length` steps the symbols. Tokens 0 .. symbols - 1, then blank and delimiter.
/// Forgetting all costs length ln(symbols) / (delay + 2 length) a step.
struct CopySpec {
    Index delay = 100;     ///< >= 1
    Index length = 10;     ///< >= 1
    Index symbols = 8;     ///< >= 1
    Index batch = 32;      ///< sequences of a window, each new
    Index windows = 1000;  ///< that are called an epoch
    std::uint64_t seed = 1;

    Index steps() const noexcept { return delay + 2 * length; }
    /// Tokens: the symbols, blank and delimiter; the targets have no delimiter.
    Index vocabulary() const noexcept { return symbols + 2; }
    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// inputs [step][batch][2], values [step][batch][1], weights [step][batch].
template <class Real>
class AddingSource final : public Source<Real> {
public:
    /// Throws InvalidArgument: spec.problem().
    explicit AddingSource(const AddingSpec& spec);

    const std::string& name() const noexcept override { return name_; }
    Index batch() const noexcept override { return spec_.batch; }
    Index window() const noexcept override { return spec_.steps; }
    Index windows() const noexcept override { return spec_.windows; }
    std::int64_t step_bytes() const noexcept override { return 4 * sizeof(Real); }
    Index remainder() const noexcept override { return 0; }
    bool fresh(Index) const noexcept override { return true; }
    void read(const Cut& cut, Batch<Real>& batch) const override;

private:
    AddingSpec spec_;
    std::string name_ = "adding problem";
};

/// tokens [step][batch], classes [step][batch].
template <class Real>
class CopySource final : public Source<Real> {
public:
    /// Throws InvalidArgument: spec.problem().
    explicit CopySource(const CopySpec& spec);

    const std::string& name() const noexcept override { return name_; }
    Index batch() const noexcept override { return spec_.batch; }
    Index window() const noexcept override { return spec_.steps(); }
    Index windows() const noexcept override { return spec_.windows; }
    std::int64_t step_bytes() const noexcept override { return 2 * sizeof(std::int32_t); }
    Index remainder() const noexcept override { return 0; }
    bool fresh(Index) const noexcept override { return true; }
    void read(const Cut& cut, Batch<Real>& batch) const override;

private:
    CopySpec spec_;
    std::string name_ = "copy memory";
};

}  // namespace backsweep
