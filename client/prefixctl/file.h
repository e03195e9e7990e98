// Files as the commands use them: every error names the file, and nothing half-written stays behind.
#ifndef PREFIXD_CLIENT_PREFIXCTL_FILE_H_
#define PREFIXD_CLIENT_PREFIXCTL_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace prefixd::cli {

// A file, a pipe or, as "-", standard input.
// Threads: one at a time, but Interrupt from any.
class InputFile {
 public:
  // Reads fail with DEADLINE_EXCEEDED once the deadline has passed, and don't wait longer. Open does not wait for the
  // writer of a FIFO; reads do.
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(const std::string& path, absl::Time deadline);
  ~InputFile();

  // Fills `out`; returns fewer bytes only at the end.
  absl::StatusOr<size_t> Read(std::byte* out, size_t max_bytes);
  // Back to `offset_bytes`; false for what is no regular file.
  bool Seek(uint64_t offset_bytes);
  // Makes a Read that waits, and all that would, fail with CANCELLED.
  void Interrupt();

  const std::string& name() const { return name_; }                   // For messages.
  std::optional<uint64_t> size_bytes() const { return size_bytes_; }  // Absent: no regular file.
  uint64_t bytes_read() const { return bytes_read_; }                 // Since the start.

 private:
  InputFile() = default;
  absl::Status TooLate() const;
  absl::Status WaitForInput();

  std::string name_;
  int fd_ = -1;
  int interrupt_fd_ = -1;
  absl::Time deadline_;
  std::optional<uint64_t> size_bytes_;
  uint64_t bytes_read_ = 0;
};

// A file that appears complete or not at all: it is written without a name, gets another one in the same folder from
// Close and its own from Commit. Where the file system has no files without a name, it has the other one from the
// start, and SIGKILL leaves it behind. "-" is standard output; pipes and devices are written directly.
class OutputFile {
 public:
  // Where a pipe's reader would be waited for after the deadline, Open and Write fail with DEADLINE_EXCEEDED.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Open(const std::string& path,
                                                          absl::Time deadline = absl::InfiniteFuture());
  ~OutputFile();  // Removes what was not committed.

  // Bytes that follow one another, at once where the file takes them: large writes cost a regular file least.
  absl::Status Write(absl::Span<const std::string_view> pieces);
  absl::Status Write(std::string_view bytes) { return Write(absl::MakeConstSpan(&bytes, 1)); }
  // Overwrites the first bytes. Needs: can_rewrite().
  absl::Status Rewrite(std::string_view bytes);
  bool can_rewrite() const { return !temporary_.empty(); }

  // Everything is written, or an error says what was not.
  absl::Status Close();
  // Gives the file its name. Needs: closed.
  absl::Status Commit();

 private:
  OutputFile() = default;
  absl::Status TooLate() const;
  absl::Status WaitForRoom();

  std::string name_;          // For messages.
  std::string path_;          // The name it gets.
  std::string temporary_;     // The name it has before that; empty if it is written directly.
  bool is_nameless_ = false;  // Until Close.
  int fd_ = -1;
  int signal_slot_ = -1;
  absl::Time deadline_;
  bool may_wait_ = false;  // For a reader: it is no regular file.
};

// Whether both names mean one regular file, or one that is still to be made.
bool SameFile(const std::string& a, const std::string& b);

// Whether a write failed because nobody reads standard output any more, as in `prefixctl ... | head`.
bool IsClosedPipe(const absl::Status& status);

// Fills the place of a closed standard stream, which the next file to be opened would take. "-" is still an error then.
// Needs: to come first, before other threads.
void OpenStandardStreams();

// From now on signals that end the process, such as SIGINT, first remove the files that are still being written.
void RemoveTemporaryFilesOnSignal();

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_FILE_H_
