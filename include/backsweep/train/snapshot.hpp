// Snapshots: everything that a run needs to go on with the same bits, in .safetensors files of which one is always
// whole. The weights stand under their PyTorch names, so other tools read them too.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/data/safetensors.hpp"
#include "backsweep/nn/spec.hpp"
#include "backsweep/train/clip.hpp"
#include "backsweep/train/optimizer.hpp"
#include "backsweep/train/rate.hpp"
#include "backsweep/train/windows.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace backsweep {

/// One generation. Its tensors are views: of the trainer's memory in a snapshot to be saved (which must not change
/// before that), of memory that it keeps alive in one that was read. Copies share the memory.
struct Snapshot {
    Index update = 0;  ///< updates made: the number of the next window
    Index epoch = 0;
    Index step = 0;  ///< first step of the next window in its sequences
    std::uint64_t seed = 0;
    ModelSpec model{};
    OptimizerSpec optimizer{};
    RateSpec rate{};
    Plateau plateau{};  ///< the rate's state
    ClipSpec clip{};
    WindowSpec windows{};
    std::string plan{};                          ///< the pinned plan, as its room writes it
    std::map<std::string, std::string> notes{};  ///< what else the program must find again, UTF-8
    std::vector<TensorView> tensors{};
    std::string source = "this snapshot";  ///< for messages: the path, if it was read
    std::string checksum{};                ///< set when saved or read: CRC-32 over all of the above and the data
    std::vector<std::shared_ptr<const void>> memory{};

    /// A tensor whose elements another owns.
    template <class T>
    void add(std::string name, std::vector<Index> shape, std::span<const T> elements) {
        tensors.push_back(tensor_view<T>(std::move(name), std::move(shape), elements));
    }
    /// A tensor whose elements the snapshot keeps.
    template <class T>
    void keep(std::string name, std::vector<Index> shape, std::vector<T> elements) {
        const auto kept = std::make_shared<const std::vector<T>>(std::move(elements));
        add<T>(std::move(name), std::move(shape), *kept);
        memory.push_back(kept);
    }

    /// Null if there is none of that name.
    const TensorView* find(std::string_view name) const noexcept;
    /// Copies the elements of a tensor of one axis. Throws StoreError, naming what is wanted and what there is, if
    /// there is none of that name, type and size.
    template <class T>
    void read(std::string_view name, std::span<T> to) const {
        const TensorView& t = wanted(name, dtype_of<T>(), {static_cast<Index>(to.size())});
        std::copy(t.data.begin(), t.data.end(), std::as_writable_bytes(to).begin());
    }

    /// The parts of a flat vector, each under `prefix` and its parameter's name, with its shape. Reading is all or
    /// nothing; it throws as read() does.
    template <class Real>
    void add_parameters(const ParameterLayout& layout, std::span<const Real> values, const std::string& prefix = {});
    template <class Real>
    void read_parameters(const ParameterLayout& layout, std::span<Real> values, const std::string& prefix = {}) const;

    /// The optimizer's moments ("optimizer.exp_avg.rnn.weight_ih_l0") and its count of updates.
    template <class Real>
    void add_optimizer(const ParameterLayout& layout, const Optimizer<Real>& state);
    /// Throws InvalidArgument, naming both, if it was saved under another rule. All or nothing.
    template <class Real>
    void read_optimizer(const ParameterLayout& layout, Optimizer<Real>& state) const;

    /// Throws InvalidArgument, naming both, if the snapshot is not of this model.
    void require(const ModelSpec& wanted) const;

private:
    const TensorView& wanted(std::string_view name, DType type, const std::vector<Index>& shape) const;
};

/// Writes folder/snapshot-<update>.safetensors, whole or not at all; then removes all earlier generations but the last
/// `keep` (>= 2, this one counted), never a later one. Sets `checksum`; returns the path. Throws StoreError with path
/// and reason, and the earlier generations are still there; InvalidArgument for text that is no UTF-8.
std::filesystem::path save_snapshot(const std::filesystem::path& folder, Snapshot& snapshot, Index keep = 2);

/// The generations in a folder, oldest first; loadable or not. Empty if there is no such folder.
std::vector<std::filesystem::path> snapshots(const std::filesystem::path& folder);

/// Throws StoreError, naming path and reason, if the file is missing, cut, damaged or no snapshot.
Snapshot read_snapshot(const std::filesystem::path& path);

/// The newest generation that can be read.
struct NewestSnapshot {
    Snapshot snapshot;
    std::filesystem::path path;
    std::vector<std::string> skipped;  ///< why newer ones cannot: show these to the user
};
/// Throws StoreError, with all reasons, if there is none.
NewestSnapshot read_newest(const std::filesystem::path& folder);

}  // namespace backsweep
