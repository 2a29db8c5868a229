// Slots of bytes in one file on a disk: room set aside beforehand, every slot checksummed, writes and look-ahead reads
// on a thread of the store's own. What a killed process left is found again and verified. docs/disk.md has the format.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/ledger.hpp"
#include "backsweep/base/range.hpp"
#include "backsweep/store/store.hpp"
#include "backsweep/store/throttle.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace backsweep {

/// How a content is packed; nothing is lost. What does not shrink is stored as it is.
enum class Compression : std::int32_t { none, zstd };
/// How numbers are stored. Only blobs that say that they hold numbers are rounded, to nearest, ties to even.
enum class Precision : std::int32_t {
    exact,
    float32,  ///< doubles as floats
    bfloat16  ///< floats and doubles as the upper half of a float: 8 bits of precision
};

BACKSWEEP_API const char* to_string(Compression compression) noexcept;
BACKSWEEP_API const char* to_string(Precision precision) noexcept;

struct BACKSWEEP_API DiskStoreOptions {
    /// The scratch folder, made if absent; it stays.
    std::filesystem::path folder;
    /// Of the file, one a shard: letters, digits, '-', '_' and '.'.
    std::string name = "slots";
    Index slots = 0;
    /// Room of a slot: the bytes of the largest content, after rounding (rounded_bytes) and before compression.
    std::int64_t slot_bytes = 0;
    /// Contents of a slot's size that writes and look-ahead reads may hold in RAM; they are booked as workspace. One is
    /// left to the writes, so that with 1 nothing is read ahead. With 0 there is no thread: write and read use the
    /// caller's memory and wait for the disk (exact and uncompressed only).
    Index buffers = 2;
    Compression compression = Compression::none;
    Precision precision = Precision::exact;
    /// settle() forces the disk: what it settled survives a power cut. Else it survives the death of the process only.
    bool durable = true;
    /// Whether the file outlives the process. If not, it has no name from the beginning, and goes with the store
    /// however that ends. If so, it is `folder/name-RUN.slots`, locked against other processes and kept until remove().
    bool keep = false;
    /// Fingerprint of the run; with `keep`, slots of another one are never taken for good.
    std::uint64_t run = 0;
    /// What the store's transfers go through, its reading of a kept file not; none: as fast as the disk is.
    std::shared_ptr<Throttle> throttle{};

    /// Empty if valid, else what is wrong.
    std::string problem() const;
};

/// Thread-safe against its own thread only: one caller at a time. Errors are StoreErrors that name the path, the bytes
/// and the system's reason. One of an earlier write is thrown by the next write, read or settle; the slot is empty
/// then.
class BACKSWEEP_API DiskStore : public Store {
public:
    /// Sets all room aside (a full disk is met here). With `keep`, takes over what a file of the same run holds.
    /// Throws InvalidArgument for options with a problem; StoreError if there is no room, if another process uses the
    /// file, or if a file of that name is of another kind or size.
    explicit DiskStore(DiskStoreOptions options, Ledger& ledger = Ledger::process());
    /// Waits for what is being written.
    ~DiskStore() override;
    DiskStore(const DiskStore&) = delete;
    DiskStore& operator=(const DiskStore&) = delete;

    /// Copies into a buffer and returns; waits while all are in use. Throws StoreError too if the content, rounded, is
    /// larger than a slot, there is no such slot, or a finite number is too large for the precision.
    void write(std::int32_t slot, std::span<const Blob> blobs) override;
    /// Served from the buffer that still holds it, from a look-ahead, or from the disk, then verified. What the blobs
    /// hold after an error is unspecified.
    void read(std::int32_t slot, std::span<const Blob> blobs) override;
    /// Forgets the content. On the disk it stays until it is overwritten: kept() of a later process may find it.
    void erase(std::int32_t slot) noexcept override;
    /// Begins to read into a free buffer; ignored if none is left beside the one for writes.
    void expect(std::int32_t slot) override;
    /// Everything written is on the disk when it returns.
    void settle() override;
    bool exact() const noexcept override;

    /// A slot that holds something.
    struct Kept {
        std::int32_t slot = 0;
        std::int64_t bytes = 0;      ///< of the content, as written
        std::uint64_t sequence = 0;  ///< number of its write: rises from write to write, over processes too
    };
    /// All of them, by slot. After opening: those of the run whose header and content can be read and are whole.
    std::vector<Kept> kept() const;
    /// Number of the newest write, 0 before the first: what is written later has a higher one.
    std::uint64_t sequence() const noexcept;
    /// The file of a kept store loses its name: nothing is left when the store goes.
    void remove();

    /// What the disk did since the store was opened.
    struct Traffic {
        std::int64_t writes = 0, reads = 0;               ///< slots
        std::int64_t bytes_written = 0, bytes_read = 0;   ///< in the file
        double seconds_writing = 0, seconds_reading = 0;  ///< of system calls and packing, not of the throttle
        double seconds_settling = 0;                      ///< of fdatasync
    };
    Traffic traffic() const;
    const std::filesystem::path& path() const noexcept;

    /// Bytes of the buffers, all that the store books: exactly.
    static std::int64_t buffer_bytes(const DiskStoreOptions& options);
    /// Bytes of the file, all set aside when the store opens.
    static std::int64_t file_bytes(const DiskStoreOptions& options);
    /// Bytes of the blobs once rounded: what they take of a slot.
    static std::int64_t rounded_bytes(std::span<const Blob> blobs, Precision precision) noexcept;

private:
    struct Inner;
    std::unique_ptr<Inner> inner_;
};

}  // namespace backsweep
