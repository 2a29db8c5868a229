// A made text for tests of training.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/random.hpp"
#include "backsweep/data/text.hpp"
#include "support/scratch.hpp"

#include <fstream>
#include <memory>
#include <string>

namespace backsweep::test {

/// A text over 12 symbols that repeats itself now and then.
class Text {
public:
    explicit Text(Index bytes) {
        const auto path = folder_.path() / "text";
        std::ofstream out(path, std::ios::binary);
        const Random random(3, 1);
        for (Index k = 0; k < bytes; ++k)
            out.put(static_cast<char>('a' + (k + random.below(4, 0, static_cast<std::uint64_t>(k))) % 12));
        out.close();
        text_ = std::make_shared<const ByteText>(path);
    }
    template <class Real>
    TextSource<Real> source(Index batch, Index window) const {
        return {text_, Range{0, text_->size()}, Vocabulary(text_->bytes()), batch, window};
    }
    std::string folder() const { return folder_.path().string(); }

private:
    Scratch folder_;
    std::shared_ptr<const ByteText> text_;
};

}  // namespace backsweep::test
