// SPDX-License-Identifier: MIT
#include "backsweep/data/text.hpp"

#include "backsweep/base/error.hpp"
#include "data/check_cut.hpp"

#include <fmt/format.h>
#include <boost/iostreams/device/mapped_file.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <system_error>
#include <utility>

namespace backsweep {

ByteText::ByteText(const std::filesystem::path& path) : path_(path.string()) {
    namespace fs = std::filesystem;
    const auto refuse = [this](std::string_view reason) {
        throw StoreError(fmt::format("cannot read the text '{}': {}", path_, reason));
    };
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) refuse(error ? error.message() : "no such file");
    if (fs::is_directory(status)) refuse("it is a folder; give a file");
    if (!fs::is_regular_file(status)) refuse("it is no regular file and cannot be mapped; copy it to one");
    const auto size = fs::file_size(path, error);
    if (error) refuse(error.message());
    if (size == 0) refuse("it is empty");
    try {
        const auto map = std::make_shared<const boost::iostreams::mapped_file_source>(path_);
        bytes_ = {reinterpret_cast<const std::uint8_t*>(map->data()), map->size()};
        map_ = map;
    } catch (const std::exception& e) {
        refuse(e.what());
    }
}

Vocabulary::Vocabulary() {
    for (std::int32_t k = 0; k < 256; ++k) {
        token_[static_cast<std::size_t>(k)] = k;
        bytes_.push_back(static_cast<char>(k));
    }
}

Vocabulary::Vocabulary(std::span<const std::uint8_t> text) {
    std::array<bool, 256> occurs{};
    for (const std::uint8_t byte : text) occurs[byte] = true;
    for (std::size_t byte = 0; byte < 256; ++byte) {
        token_[byte] = occurs[byte] ? static_cast<std::int32_t>(bytes_.size()) : -1;
        if (occurs[byte]) bytes_.push_back(static_cast<char>(byte));
    }
}

Vocabulary::Vocabulary(std::string_view bytes)
    : Vocabulary({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}) {
    if (bytes.empty() || bytes != bytes_)
        throw InvalidArgument(
            fmt::format("the bytes of a vocabulary must rise, each once and one at least; {} came", bytes.size()));
}

std::vector<std::int32_t> Vocabulary::encode(std::string_view text) const {
    std::vector<std::int32_t> tokens;
    tokens.reserve(text.size());
    for (const char c : text) {
        const auto byte = static_cast<std::uint8_t>(c);
        if (token(byte) < 0)
            throw InvalidArgument(
                fmt::format("byte 0x{:02x} at place {} is none of the vocabulary's {} tokens; take it out or train "
                            "on a text that has it",
                            byte, tokens.size(), size()));
        tokens.push_back(token(byte));
    }
    return tokens;
}

std::string Vocabulary::decode(std::span<const std::int32_t> tokens) const {
    std::string text;
    text.reserve(tokens.size());
    for (const std::int32_t t : tokens) {
        if (t < 0 || t >= size()) throw InvalidArgument(fmt::format("no token {}; the vocabulary has {}", t, size()));
        text.push_back(bytes_[static_cast<std::size_t>(t)]);
    }
    return text;
}

std::string SplitSpec::problem() const {
    if (train > 0.0 && train <= 1.0 && valid >= 0.0 && train + valid <= 1.0) return {};
    return fmt::format("the fractions train > 0 and valid >= 0 must add up to 1 at most, but are {} and {}", train,
                       valid);
}

Split split(const SplitSpec& spec, Index bytes) {
    if (const std::string problem = spec.problem(); !problem.empty()) throw InvalidArgument(problem);
    const auto at = [bytes](double fraction) {
        return std::min<Index>(bytes, std::llround(fraction * static_cast<double>(bytes)));
    };
    const Index a = at(spec.train), b = at(spec.train + spec.valid);
    return {.train = {0, a}, .valid = {a, b}, .test = {b, bytes}};
}

template <class Real>
TextSource<Real>::TextSource(std::shared_ptr<const ByteText> text, Range part, Vocabulary vocabulary, Index batch,
                             Index window)
    : text_(std::move(text)),
      part_(part),
      vocabulary_(std::move(vocabulary)),
      batch_(batch),
      window_(window) {
    if (batch_ < 1 || window_ < 1)
        throw InvalidArgument(
            fmt::format("text '{}': batch and window must be >= 1, but are {} and {}", name(), batch_, window_));
    if (part_.first < 0 || part_.last > text_->size())
        throw InvalidArgument(
            fmt::format("text '{}' has {} bytes, none at [{}, {})", name(), text_->size(), part_.first, part_.last));
    length_ = (part_.size() - 1) / batch_;
    if (length_ < 1)
        throw InvalidArgument(
            fmt::format("text '{}': {} streams of a byte and its successor need {} bytes at least, but this part has "
                        "{}; take a smaller batch or a longer text",
                        name(), batch_, batch_ + 1, std::max<Index>(part_.size(), 0)));
}

template <class Real>
void TextSource<Real>::read(const Cut& cut, Batch<Real>& batch) const {
    check_cut(cut, name(), batch_, length_);
    Range steps = cut.steps;
    if (steps.size() == 0) {
        steps.first = cut.window % windows() * window_;
        steps.last = std::min(steps.first + window_, length_);
    }
    batch.clear();
    batch.first = std::max<Index>(0, steps.first - cut.look_back);
    batch.steps = steps.last - batch.first;
    batch.batch = cut.sequences.size();
    batch.loss_from = steps.first - batch.first;
    batch.tokens.resize(batch.steps * batch.batch);
    batch.classes.resize(batch.steps * batch.batch);

    for (Index b = 0; b < batch.batch; ++b) {
        const Index at = part_.first + (cut.sequences.first + b) * length_ + batch.first;
        const std::uint8_t* bytes = text_->bytes().data() + at;
        const auto token_at = [&](Index t) {
            const std::int32_t token = vocabulary_.token(bytes[t]);
            if (token < 0)
                throw InvalidArgument(
                    fmt::format("text '{}': byte 0x{:02x} at {} is none of the vocabulary's {} tokens", name(),
                                bytes[t], at + t, vocabulary_.size()));
            return token;
        };
        std::int32_t token = token_at(0);
        for (Index t = 0; t < batch.steps; ++t) {
            const Index place = t * batch.batch + b;
            batch.tokens[place] = token;
            batch.classes[place] = token = token_at(t + 1);
        }
    }
}

template class TextSource<float>;
template class TextSource<double>;

}  // namespace backsweep
