#include "client/prefixctl/file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/uio.h>
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
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace prefixd::cli {
namespace {

absl::Status FileError(std::string_view what, const std::string& name) {
  const int error = errno;
  return absl::ErrnoToStatus(error, AbslView(StrCat(what, " ", name)));
}

// What poll takes: at least as long as the deadline is away, if there is one.
int MillisecondsUntil(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return -1;
  const int64_t left_ms = absl::ToInt64Milliseconds(absl::Ceil(deadline - absl::Now(), absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<int64_t>(left_ms, 0, INT_MAX));
}

constexpr std::string_view kClosedPipe = "CLOSED_PIPE";

// These lead to whatever the process was given, which is not ours to replace even if it is a regular file.
bool IsOpenAlready(const std::string& path) {
  return path == "/dev/stdout" || path == "/dev/stderr" || path.starts_with("/dev/fd/") ||
         path.starts_with("/proc/self/fd/");
}

// Follows links, to a file that need not exist.
std::filesystem::path FollowLinks(std::filesystem::path path, std::error_code& error) {
  constexpr int kMaxLinks = 40;  // As Linux.
  for (int links = 0; std::filesystem::is_symlink(std::filesystem::symlink_status(path, error)); ++links) {
    if (links == kMaxLinks) error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
    if (error) return {};
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  error.clear();  // That there is no such file is none.
  return path;
}

// A standard stream for ourselves. What the process was started with it inherited through exec, so it is not marked to
// close there; anything else is a file of a library, or of OpenStandardStreams, in the place of a closed one.
absl::StatusOr<int> DupInherited(int fd, const std::string& name) {
  const int flags = fcntl(fd, F_GETFD);
  if (flags < 0 || (flags & FD_CLOEXEC) != 0) return absl::FailedPreconditionError(StrCat(name, " is closed"));
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return FileError("cannot open", name);
  return copy;
}

// The link to an open file that it can be named by.
std::string DescriptorPath(int fd) { return StrCat("/proc/self/fd/", fd); }

// A file without a name, which is gone when the process is, whatever ends it. -1 where the file system or the system
// has none.
int OpenNameless(const std::string& folder) {
  const int fd = open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0 || access(DescriptorPath(fd).c_str(), F_OK) == 0) return fd;
  close(fd);
  return -1;
}

bool GiveName(int fd, const std::string& path) {
  return linkat(AT_FDCWD, DescriptorPath(fd).c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
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
  struct stat info;
  if (path == "-") {
    PREFIXD_ASSIGN_OR_RETURN(file->fd_, DupInherited(STDIN_FILENO, file->name_));
  } else {
    // A FIFO that nobody writes would hold up a blocking open. Reads wait: poll tells no end before a first writer's.
    const bool is_fifo = stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
    file->fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | (is_fifo ? O_NONBLOCK : 0));
  }
  if (file->fd_ < 0) return FileError("cannot open", file->name_);
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

absl::Status InputFile::TooLate() const {
  return absl::DeadlineExceededError(StrCat("the timeout passed before ", name_, " had been read to its end"));
}

absl::Status InputFile::WaitForInput() {
  for (;;) {
    pollfd fds[] = {{fd_, POLLIN, 0}, {interrupt_fd_, POLLIN, 0}};
    const int ready = poll(fds, 2, MillisecondsUntil(deadline_));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return FileError("cannot wait for", name_);
    // Who interrupts because of the deadline is told of it too.
    if (fds[1].revents != 0 && absl::Now() >= deadline_) return TooLate();
    if (fds[1].revents != 0) return absl::CancelledError(StrCat("stopped reading ", name_));
    if (fds[0].revents != 0) return absl::OkStatus();
    if (absl::Now() >= deadline_) return TooLate();
  }
}

absl::StatusOr<size_t> InputFile::Read(std::byte* out, size_t max_bytes) {
  size_t done = 0;
  while (done < max_bytes) {
    if (!size_bytes_) PREFIXD_RETURN_IF_ERROR(WaitForInput());
    if (size_bytes_ && absl::Now() >= deadline_) return TooLate();
    const ssize_t count = read(fd_, out + done, max_bytes - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN && !size_bytes_) continue;  // Another reader may have been faster.
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
absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Open(const std::string& path, absl::Time deadline) {
  std::unique_ptr<OutputFile> file(new OutputFile());
  file->name_ = path == "-" ? "standard output" : path;
  file->deadline_ = deadline;
  struct stat info;
  if (path == "-") {
    PREFIXD_ASSIGN_OR_RETURN(file->fd_, DupInherited(STDOUT_FILENO, file->name_));
    file->may_wait_ = fstat(file->fd_, &info) == 0 && !S_ISREG(info.st_mode);
    return file;
  }
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return absl::FailedPreconditionError(StrCat(path, " is a directory"));
  // Appending suits pipes and devices too.
  if ((exists && !S_ISREG(info.st_mode)) || IsOpenAlready(path)) {
    const bool is_fifo = exists && S_ISFIFO(info.st_mode);
    const int no_block = is_fifo && deadline != absl::InfiniteFuture() ? O_NONBLOCK : 0;
    while ((file->fd_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | no_block)) < 0) {
      if (!is_fifo || errno != ENXIO) return FileError("cannot open", path);
      if (absl::Now() >= deadline) return file->TooLate();
      absl::SleepFor(absl::Milliseconds(10));  // Nobody tells that a reader has come.
    }
    file->may_wait_ = !exists || !S_ISREG(info.st_mode);
    return file;
  }
  // What may not be written may not be replaced either, though the folder would allow it.
  if (exists && access(path.c_str(), W_OK) != 0) return FileError("cannot write", path);
  std::error_code error;
  std::filesystem::path target = FollowLinks(path, error);  // A link stays a link.
  if (error) return absl::ErrnoToStatus(error.value(), AbslView(StrCat("cannot open ", path)));
  file->path_ = target.string();
  std::random_device random;
  const uint64_t unique = uint64_t{random()} << 32 | random();
  file->temporary_ = target.replace_filename(absl::StrFormat(".prefixctl-%016x", unique)).string();
  file->signal_slot_ = TakeSlot(file->temporary_);
  file->fd_ = OpenNameless(target.parent_path().string());
  file->is_nameless_ = file->fd_ >= 0;
  if (!file->is_nameless_) file->fd_ = open(file->temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file->fd_ < 0) return FileError("cannot create", path);
  if (exists) fchmod(file->fd_, info.st_mode & 07777);  // As it was, if that is allowed.
  return file;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
  ReleaseSlot(signal_slot_);
}

absl::Status OutputFile::TooLate() const {
  return absl::DeadlineExceededError(StrCat("the timeout passed before all was written to ", name_));
}

absl::Status OutputFile::WaitForRoom() {
  for (;;) {
    pollfd fd = {fd_, POLLOUT, 0};
    const int ready = poll(&fd, 1, MillisecondsUntil(deadline_));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return FileError("cannot wait for", name_);
    if (absl::Now() >= deadline_) return TooLate();
  }
}

absl::Status OutputFile::Write(absl::Span<const std::string_view> pieces) {
  const bool bounded = may_wait_ && deadline_ != absl::InfiniteFuture();
  std::vector<iovec> vectors;
  for (const std::string_view piece : pieces) {
    if (!piece.empty()) vectors.push_back({const_cast<char*>(piece.data()), piece.size()});
  }
  absl::Span<iovec> rest = absl::MakeSpan(vectors);
  while (!rest.empty()) {
    // A pipe with room takes so much at once. More would wait for its reader, and the pipe may be shared: it is not
    // ours to set not to block.
    if (bounded) PREFIXD_RETURN_IF_ERROR(WaitForRoom());
    ssize_t count = bounded ? write(fd_, rest[0].iov_base, std::min<size_t>(rest[0].iov_len, PIPE_BUF))
                            : writev(fd_, rest.data(), static_cast<int>(std::min<size_t>(rest.size(), IOV_MAX)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {  // A pipe that does not block, because its owner or Open has set it so.
      PREFIXD_RETURN_IF_ERROR(WaitForRoom());
      continue;
    }
    if (count < 0 && errno == EPIPE && path_.empty()) {
      return Error(absl::StatusCode::kCancelled, kClosedPipe, "", StrCat(name_, " was closed"));
    }
    if (count < 0) return FileError("cannot write", name_);
    while (!rest.empty() && static_cast<size_t>(count) >= rest[0].iov_len) {
      count -= static_cast<ssize_t>(rest[0].iov_len);
      rest.remove_prefix(1);
    }
    if (count > 0) rest[0] = {static_cast<char*>(rest[0].iov_base) + count, rest[0].iov_len - count};
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Rewrite(std::string_view bytes) {
  if (lseek(fd_, 0, SEEK_SET) < 0) return FileError("cannot write", name_);
  return Write(bytes);
}

absl::Status OutputFile::Close() {
  if (is_nameless_ && !GiveName(fd_, temporary_)) return FileError("cannot write", name_);
  if (close(std::exchange(fd_, -1)) != 0) return FileError("cannot write", name_);
  return absl::OkStatus();
}

absl::Status OutputFile::Commit() {
  if (temporary_.empty()) return absl::OkStatus();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return FileError("cannot replace", name_);
  temporary_.clear();
  return absl::OkStatus();
}

bool SameFile(const std::string& a, const std::string& b) {
  if (a == "-" || b == "-") return a == b;
  struct stat info;
  if (stat(a.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return false;  // /dev/null takes everything.
  std::error_code error;
  const auto resolve = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(FollowLinks(path, error), error), error);
  };
  return resolve(a) == resolve(b);
}

bool IsClosedPipe(const absl::Status& status) { return ErrorReason(status) == kClosedPipe; }

void OpenStandardStreams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest number that is free is this one.
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR | O_CLOEXEC);
  }
}

void RemoveTemporaryFilesOnSignal() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGXFSZ}) {
    struct sigaction before;
    // A parent that ignores the signal (nohup) is obeyed.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

}  // namespace prefixd::cli
