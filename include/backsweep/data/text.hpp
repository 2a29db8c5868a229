// Byte-level text: a file of any size behind a memory map, its bytes as tokens, cut into streams that run side by side.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/data/batches.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace backsweep {

/// A file's bytes. Nothing is copied: pages are read when touched, and the system may drop them again.
class ByteText {
public:
    /// Throws StoreError, naming the path, if it is missing, no regular file, empty or unreadable.
    explicit ByteText(const std::filesystem::path& path);

    const std::string& path() const noexcept { return path_; }
    Index size() const noexcept { return static_cast<Index>(bytes_.size()); }
    std::span<const std::uint8_t> bytes() const noexcept { return bytes_; }

private:
    std::string path_;
    std::shared_ptr<const void> map_;
    std::span<const std::uint8_t> bytes_;
};

/// Which bytes are tokens: token k is the k-th of them, in rising order.
class Vocabulary {
public:
    /// All 256 bytes.
    Vocabulary();
    /// The bytes that occur; reads all of them once.
    explicit Vocabulary(std::span<const std::uint8_t> text);
    /// From bytes(); throws InvalidArgument if they do not rise or there are none.
    explicit Vocabulary(std::string_view bytes);

    /// Number of tokens.
    Index size() const noexcept { return static_cast<Index>(bytes_.size()); }
    /// The token of a byte, or -1.
    std::int32_t token(std::uint8_t byte) const noexcept { return token_[byte]; }
    /// The tokens' bytes.
    const std::string& bytes() const noexcept { return bytes_; }

    /// Throws InvalidArgument, naming byte and place, for a byte that is no token.
    std::vector<std::int32_t> encode(std::string_view text) const;
    /// Throws InvalidArgument for a token that there is not.
    std::string decode(std::span<const std::int32_t> tokens) const;

private:
    std::array<std::int32_t, 256> token_{};
    std::string bytes_;
};

/// Fractions of a text for training and validation; the rest is for the test.
struct SplitSpec {
    double train = 0.9;
    double valid = 0.05;

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// Contiguous ranges of bytes that cover the text.
struct Split {
    Range train, valid, test;
};
Split split(const SplitSpec& spec, Index bytes);

/// Predicts each byte of a part of a text from those before it. The part's n bytes hold n - 1 pairs (byte, next byte);
/// stream b of B has the pairs [b L, (b + 1) L), L = floor((n - 1) / B), in order, and carries its state from window to
/// window. The last window of an epoch may be short; n - 1 - B L < B pairs at the end are the remainder.
template <class Real>
class TextSource final : public Source<Real> {
public:
    /// Text and vocabulary are shared with other sources. Throws InvalidArgument if a stream would be empty, and
    /// read() if a byte is no token.
    TextSource(std::shared_ptr<const ByteText> text, Range part, Vocabulary vocabulary, Index batch, Index window);

    const std::string& name() const noexcept override { return text_->path(); }
    Index batch() const noexcept override { return batch_; }
    Index window() const noexcept override { return window_; }
    Index windows() const noexcept override { return 1 + (length_ - 1) / window_; }
    bool divisible() const noexcept override { return true; }
    std::int64_t step_bytes() const noexcept override { return 2 * sizeof(std::int32_t); }
    Index remainder() const noexcept override { return part_.size() - 1 - batch_ * length_; }
    bool fresh(Index window) const noexcept override { return window % windows() == 0; }
    void read(const Cut& cut, Batch<Real>& batch) const override;

    Index length() const noexcept override { return length_; }
    const Vocabulary& vocabulary() const noexcept { return vocabulary_; }

private:
    std::shared_ptr<const ByteText> text_;
    Range part_;
    Vocabulary vocabulary_;
    Index batch_, window_, length_;
};

}  // namespace backsweep
