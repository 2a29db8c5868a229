// The newest of a series of records, whole after a crash at any moment: two files written in turn, so that the last
// record stands while the next is written. What a restartable sweep commits.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/store/blob.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

namespace backsweep {

struct BACKSWEEP_API JournalOptions {
    /// The files are `path.0` and `path.1`; their folder is made if absent. Locked against other processes.
    std::filesystem::path path;
    /// Fingerprint of the run: records of another one are not taken for good.
    std::uint64_t run = 0;
    /// Room set aside for a record; a larger one sets aside more.
    std::int64_t record_bytes = 0;
    /// A commit forces the disk. Else it survives the death of the process only.
    bool durable = true;
};

/// Not thread-safe. Holds no bytes of a record. Errors are StoreErrors that name the path, the bytes and the system's
/// reason; after one of commit() the newest record is what it was before (a later process may find the new one, if it
/// came to the disk whole).
class BACKSWEEP_API Journal {
public:
    /// Opens or makes both files, and finds the newest whole record of the run. Throws StoreError if there is no room,
    /// another process uses the files, or a file there is none of a journal.
    explicit Journal(JournalOptions options);
    /// The files stay, unless remove() was called.
    ~Journal();
    Journal(Journal&&) noexcept;
    Journal& operator=(Journal&&) noexcept;

    struct Record {
        std::uint64_t number = 0;  ///< one more than that of the record before, over processes too
        std::int64_t bytes = 0;
    };

    /// Makes the blobs' bytes the newest record; it is on the disk when this returns.
    void commit(std::span<const Blob> blobs);
    /// The newest record, or nothing.
    std::optional<Record> last() const noexcept;
    /// Fills the blobs with the newest record, or with its first bytes if they are fewer: read what tells the sizes,
    /// then all. Throws StoreError if there is none or it has fewer bytes; of a whole one also if it is damaged.
    void read(std::span<const Blob> blobs) const;
    /// Makes last() answer nothing, in later processes too. The room stays set aside.
    void clear();
    /// Deletes both files; the journal is of no use afterwards.
    void remove();

private:
    struct Inner;
    std::unique_ptr<Inner> inner_;
};

}  // namespace backsweep
