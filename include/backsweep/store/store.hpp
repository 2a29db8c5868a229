// The interface of every store: numbered slots of bytes, no mathematics.
// RAM slots of an Execution are typed objects and need none; other tiers, the C faces and fault tests do.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/store/blob.hpp"

#include <cstdint>
#include <span>

namespace backsweep {

class BACKSWEEP_API Store {
public:
    virtual ~Store() = default;

    /// Replaces the content of `slot` (>= 0) by the blobs' bytes. May return before it is durable; the blobs may be
    /// overwritten as soon as it returns. Throws StoreError.
    virtual void write(std::int32_t slot, std::span<const Blob> blobs) = 0;
    /// Fills the blobs with the content of `slot`; waits for its write. Throws StoreError if the slot is empty or holds
    /// another number of bytes.
    virtual void read(std::int32_t slot, std::span<const Blob> blobs) = 0;
    /// Empties `slot`; an empty one stays empty.
    virtual void erase(std::int32_t slot) noexcept = 0;
    /// A hint: `slot` will be read soon.
    virtual void expect(std::int32_t slot) { static_cast<void>(slot); }
    /// Returns when everything written is durable, as far as the store can. Throws the StoreError of an earlier write.
    virtual void settle() {}
    /// Whether a read gives back every bit; a store that rounds numbers does not, and verifies its content itself.
    virtual bool exact() const noexcept { return true; }
};

}  // namespace backsweep
