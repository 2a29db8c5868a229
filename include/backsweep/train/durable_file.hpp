// A file that is there whole or not at all: written beside its place, forced to the disk, then renamed.
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <memory>
#include <ostream>
#include <string_view>

namespace backsweep {

/// Until commit() the file `path` is what it was before, whatever happens; after it, the new one survives a power cut.
/// All errors are StoreErrors that name the path, the bytes written and the system's reason.
class DurableFile {
public:
    /// Opens a temporary file in the same folder, whose name ends in ".tmp"; readers ignore such names.
    explicit DurableFile(std::filesystem::path path);
    /// Without a commit the temporary file is removed.
    ~DurableFile();
    DurableFile(const DurableFile&) = delete;
    DurableFile& operator=(const DurableFile&) = delete;

    /// Where the content goes; throws when a write fails.
    std::ostream& stream() noexcept { return *stream_; }
    /// Writes what is buffered, fsync, rename, fsync of the folder. Once only.
    void commit();

private:
    class Buffer;

    std::filesystem::path path_;
    std::unique_ptr<Buffer> buffer_;
    std::unique_ptr<std::ostream> stream_;
};

/// A DurableFile of this text.
void write_durable(const std::filesystem::path& path, std::string_view text);

/// Removes the temporary files that killed processes of this machine left in a folder.
void remove_stale_files(const std::filesystem::path& folder);

}  // namespace backsweep
