#include "client/cli/file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "kernels/status.h"

namespace prefixd::cli {
namespace {

absl::Status FileError(std::string_view what, const std::string& name) {
  const int error = errno;
  return absl::ErrnoToStatus(error, AbslView(StrCat(what, " ", name)));
}

// What a signal has to remove. A slot is written by its owner while `used` is false.
struct TemporarySlot {
  std::atomic<bool> taken = false;
  std::atomic<bool> used = false;
  char path[PATH_MAX] = {};
};
std::array<TemporarySlot, 4> temporary_slots;

int TakeSlot(const std::string& path) {
  for (size_t i = 0; i < temporary_slots.size(); ++i) {
    TemporarySlot& slot = temporary_slots[i];
    if (path.size() >= sizeof(slot.path) || slot.taken.exchange(true)) continue;
    std::memcpy(slot.path, path.c_str(), path.size() + 1);
    slot.used = true;
    return static_cast<int>(i);
  }
  return -1;
}

void ReleaseSlot(int i) {
  if (i < 0) return;
  temporary_slots[i].used = false;
  temporary_slots[i].taken = false;
}

void OnSignal(int signal) {
  for (TemporarySlot& slot : temporary_slots) {
    if (slot.used) unlink(slot.path);
  }
  raise(signal);  // SA_RESETHAND: this time it ends the process.
}

}  // namespace

// ---- InputFile -----------------------------------------------------------------------------------------------------
absl::StatusOr<std::unique_ptr<InputFile>> InputFile::Open(const std::string& path, absl::Time deadline) {
  std::unique_ptr<InputFile> file(new InputFile());
  file->name_ = path == "-" ? "standard input" : path;
  file->deadline_ = deadline;
  file->fd_ = path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file->fd_ < 0) return FileError("cannot open", file->name_);
  struct stat info;
  if (fstat(file->fd_, &info) != 0) return FileError("cannot read", file->name_);
  if (S_ISDIR(info.st_mode)) return absl::FailedPreconditionError(StrCat(path, " is a directory"));
  // Standard input may be a file that something else has read a part of.
  if (S_ISREG(info.st_mode) && path != "-") file->size_bytes_ = info.st_size;
  file->interrupt_fd_ = eventfd(0, EFD_CLOEXEC);
  if (file->interrupt_fd_ < 0) return FileError("cannot wait for", file->name_);
  return file;
}

InputFile::~InputFile() {
  if (fd_ >= 0) close(fd_);
  if (interrupt_fd_ >= 0) close(interrupt_fd_);
}

absl::Status InputFile::WaitForInput() {
  for (;;) {
    int timeout_ms = -1;
    if (deadline_ != absl::InfiniteFuture()) {
      const int64_t left_ms = absl::ToInt64Milliseconds(absl::Ceil(deadline_ - absl::Now(), absl::Milliseconds(1)));
      timeout_ms = static_cast<int>(std::clamp<int64_t>(left_ms, 0, INT_MAX));
    }
    pollfd fds[] = {{fd_, POLLIN, 0}, {interrupt_fd_, POLLIN, 0}};
    const int ready = poll(fds, 2, timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return FileError("cannot wait for", name_);
    if (fds[1].revents != 0) return absl::CancelledError(StrCat("stopped reading ", name_));
    if (fds[0].revents != 0) return absl::OkStatus();
    if (absl::Now() >= deadline_) {
      return absl::DeadlineExceededError(StrCat(name_, " did not end before the timeout"));
    }
  }
}

absl::StatusOr<size_t> InputFile::Read(std::byte* out, size_t max_bytes) {
  size_t done = 0;
  while (done < max_bytes) {
    if (!size_bytes_) PREFIXD_RETURN_IF_ERROR(WaitForInput());
    const ssize_t count = read(fd_, out + done, max_bytes - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError("cannot read", name_);
    if (count == 0) break;
    done += count;
  }
  bytes_read_ += done;
  return done;
}

bool InputFile::Seek(uint64_t offset_bytes) {
  if (!size_bytes_ || lseek(fd_, static_cast<off_t>(offset_bytes), SEEK_SET) < 0) return false;
  bytes_read_ = offset_bytes;
  return true;
}

void InputFile::Interrupt() {
  const uint64_t one = 1;
  // It can't fail: the counter is far from its limit.
  [[maybe_unused]] const ssize_t written = write(interrupt_fd_, &one, sizeof(one));
}

// ---- OutputFile ----------------------------------------------------------------------------------------------------
absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Open(const std::string& path) {
  std::unique_ptr<OutputFile> file(new OutputFile());
  file->name_ = path == "-" ? "standard output" : path;
  if (path == "-") {
    file->fd_ = dup(STDOUT_FILENO);
    if (file->fd_ < 0) return FileError("cannot write", file->name_);
    return file;
  }
  struct stat info;
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return absl::FailedPreconditionError(StrCat(path, " is a directory"));
  // /dev/stdout may lead to a regular file which is not ours to replace; appending suits it, pipes and devices.
  if ((exists && !S_ISREG(info.st_mode)) || path.starts_with("/dev/")) {
    file->fd_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file->fd_ < 0) return FileError("cannot open", path);
    return file;
  }
  // What may not be written may not be replaced either, though the folder would allow it.
  if (exists && access(path.c_str(), W_OK) != 0) return FileError("cannot write", path);
  std::error_code error;
  std::filesystem::path target = path;
  if (exists) target = std::filesystem::canonical(path, error);  // A link stays a link.
  if (error) return absl::ErrnoToStatus(error.value(), AbslView(StrCat("cannot open ", path)));
  file->path_ = target.string();
  std::random_device random;
  const uint64_t unique = uint64_t{random()} << 32 | random();
  file->temporary_ = target.replace_filename(absl::StrFormat(".prefixctl-%016x", unique)).string();
  file->signal_slot_ = TakeSlot(file->temporary_);
  file->fd_ = open(file->temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file->fd_ < 0) return FileError("cannot create", path);
  if (exists) fchmod(file->fd_, info.st_mode & 07777);  // As it was, if that is allowed.
  return file;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
  ReleaseSlot(signal_slot_);
}

absl::Status OutputFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError("cannot write", name_);
    bytes.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Rewrite(std::string_view bytes) {
  if (lseek(fd_, 0, SEEK_SET) < 0) return FileError("cannot write", name_);
  return Write(bytes);
}

absl::Status OutputFile::Close() {
  if (close(std::exchange(fd_, -1)) != 0) return FileError("cannot write", name_);
  return absl::OkStatus();
}

absl::Status OutputFile::Commit() {
  if (temporary_.empty()) return absl::OkStatus();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return FileError("cannot replace", name_);
  temporary_.clear();
  return absl::OkStatus();
}

void RemoveTemporaryFilesOnSignal() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before;
    // A parent that ignores the signal (nohup) is obeyed.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

}  // namespace prefixd::cli
