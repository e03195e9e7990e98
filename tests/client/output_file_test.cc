// Files appear complete or not at all.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "client/prefixctl/file.h"
#include "tests/client/temporary_folder.h"

namespace prefixd::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(OutputFile, GetsItsNameWithCommit) {
  const TemporaryFolder folder;
  folder.Write("a.bin", "old");
  auto file = OutputFile::Open(folder.File("a.bin"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Write("new content").ok());
  ASSERT_TRUE((*file)->Rewrite("NEW").ok());
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_EQ(folder.Read("a.bin"), "old");
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(folder.Read("a.bin"), "NEW content");
  EXPECT_THAT(folder.Names(), ElementsAre("a.bin"));
}

TEST(OutputFile, LeavesNothingWithoutCommit) {
  const TemporaryFolder folder;
  {
    auto file = OutputFile::Open(folder.File("a.bin"));
    ASSERT_TRUE((*file)->Write("half").ok());
  }
  EXPECT_THAT(folder.Names(), IsEmpty());
  {
    auto file = OutputFile::Open(folder.File("a.bin"));
    ASSERT_TRUE((*file)->Write("whole").ok() && (*file)->Close().ok());
    EXPECT_EQ(folder.Names().size(), 1);
  }
  EXPECT_THAT(folder.Names(), IsEmpty());
}

TEST(OutputFile, LeavesNothingAfterAKill) {
  const TemporaryFolder folder;
  const int nameless = open(folder.File("").c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (nameless < 0) GTEST_SKIP() << "this file system has no files without a name";
  close(nameless);
  const auto write_and_die = [&] {
    auto file = OutputFile::Open(folder.File("a.bin"));
    if (!(*file)->Write("half").ok()) _exit(1);
    raise(SIGKILL);
  };
  EXPECT_EXIT(write_and_die(), testing::KilledBySignal(SIGKILL), "");
  EXPECT_THAT(folder.Names(), IsEmpty());
}

TEST(OutputFile, LeavesNothingAfterASignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGXFSZ}) {
    const TemporaryFolder folder;
    const auto write_and_die = [&] {
      RemoveTemporaryFilesOnSignal();
      auto first = OutputFile::Open(folder.File("a.bin"));
      auto second = OutputFile::Open(folder.File("b.bin"));
      if (!(*first)->Write("whole").ok() || !(*first)->Close().ok() || !(*second)->Write("half").ok()) _exit(1);
      if (folder.Names().empty()) _exit(1);
      raise(signal);
    };
    EXPECT_EXIT(write_and_die(), testing::KilledBySignal(signal), "");
    EXPECT_THAT(folder.Names(), IsEmpty());
  }
}

TEST(OutputFile, KeepsLinksAndPermissions) {
  const TemporaryFolder folder;
  const std::string target = folder.Write("target", "old");
  ASSERT_EQ(chmod(target.c_str(), 0640), 0);
  std::filesystem::create_symlink(target, folder.File("link"));
  auto file = OutputFile::Open(folder.File("link"));
  ASSERT_TRUE((*file)->Write("new").ok());
  ASSERT_TRUE((*file)->Close().ok());
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.File("link")));
  EXPECT_EQ(folder.Read("target"), "new");
  struct stat info;
  ASSERT_EQ(stat(target.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640);
}

TEST(OutputFile, KeepsALinkThatLeadsNowhereYet) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("second", folder.File("first"));
  std::filesystem::create_symlink(folder.File("target"), folder.File("second"));
  auto file = OutputFile::Open(folder.File("first"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Write("new").ok());
  ASSERT_TRUE((*file)->Close().ok());
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.File("first")));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.File("second")));
  EXPECT_EQ(folder.Read("target"), "new");
  std::filesystem::create_symlink("circle", folder.File("circle"));
  EXPECT_FALSE(OutputFile::Open(folder.File("circle")).ok());
}

// Shared memory is a folder as any other, though below /dev.
TEST(OutputFile, ReplacesFilesInSharedMemory) {
  const std::string path = "/dev/shm/prefixd_test_" + std::to_string(getpid());
  for (const std::string content : {"first", "2nd"}) {
    auto file = OutputFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Write(content).ok());
    ASSERT_TRUE((*file)->Close().ok());
    ASSERT_TRUE((*file)->Commit().ok());
    EXPECT_EQ(std::filesystem::file_size(path), content.size());
  }
  std::filesystem::remove(path);
}

// A pair of pipe ends, of which the first stands in for standard output until the test ends.
class StandardOutputPipe {
 public:
  StandardOutputPipe() : saved_(dup(STDOUT_FILENO)) {
    EXPECT_EQ(pipe(ends_.data()), 0);
    dup2(ends_[1], STDOUT_FILENO);
    close(ends_[1]);
  }
  ~StandardOutputPipe() {
    dup2(saved_, STDOUT_FILENO);
    close(saved_);
  }
  int read_end() const { return ends_[0]; }

 private:
  std::array<int, 2> ends_;
  const int saved_;
};

TEST(OutputFile, WaitsForAPipeThatDoesNotBlock) {
  const StandardOutputPipe pipe;
  ASSERT_EQ(fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK), 0);
  auto file = OutputFile::Open("-");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string content(1 << 20, 'x');  // More than a pipe holds.
  size_t received = 0;
  std::thread reader([&] {
    std::string buffer(4096, 0);
    while (received < content.size()) {
      const ssize_t count = read(pipe.read_end(), buffer.data(), buffer.size());
      if (count <= 0) break;
      received += count;
    }
    close(pipe.read_end());
  });
  const absl::Status status = (*file)->Write(content);
  if (!status.ok()) dup2(STDERR_FILENO, STDOUT_FILENO);  // No writer is left: the reader ends.
  file->reset();
  reader.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(received, content.size());
}

TEST(OutputFile, WaitsForAPipeUntilTheDeadline) {
  const StandardOutputPipe pipe;
  std::string content(1 << 20, 0);  // More than a pipe holds.
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i % 251);
  auto file = OutputFile::Open("-", absl::Now() + absl::Hours(1));
  ASSERT_TRUE(file.ok()) << file.status();
  std::string received(content.size(), 0);
  std::thread reader([&] {
    for (size_t done = 0; done < received.size();) {
      const ssize_t count =
          read(pipe.read_end(), received.data() + done, std::min<size_t>(5000, content.size() - done));
      if (count <= 0) break;
      done += count;
    }
  });
  EXPECT_TRUE((*file)->Write(content).ok());
  reader.join();
  EXPECT_TRUE(received == content);
  file = OutputFile::Open("-", absl::Now() + absl::Milliseconds(100));
  EXPECT_TRUE(absl::IsDeadlineExceeded((*file)->Write(content)));
  close(pipe.read_end());
}

TEST(OutputFile, KnowsAPipeThatNobodyReads) {
  signal(SIGPIPE, SIG_IGN);
  const StandardOutputPipe pipe;
  auto file = OutputFile::Open("-");
  close(pipe.read_end());
  EXPECT_TRUE(IsClosedPipe((*file)->Write("x")));
}

TEST(SameFile, WhateverTheNames) {
  const TemporaryFolder folder;
  folder.Write("there", "");
  std::filesystem::create_symlink("there", folder.File("link"));
  std::filesystem::create_symlink("missing", folder.File("nowhere"));
  const auto same = [&](const char* a, const char* b) { return SameFile(folder.File(a), folder.File(b)); };
  EXPECT_TRUE(same("there", "./there"));
  EXPECT_TRUE(same("there", "link"));
  EXPECT_TRUE(same("missing", "./missing"));
  EXPECT_TRUE(same("missing", "nowhere"));
  EXPECT_FALSE(same("there", "missing"));
  EXPECT_TRUE(SameFile("missing", std::filesystem::absolute("missing").string()));
  EXPECT_TRUE(SameFile("-", "-"));
  EXPECT_FALSE(SameFile("-", "./-"));
  EXPECT_FALSE(SameFile("/dev/null", "/dev/null"));
}

TEST(OutputFile, RefusesFoldersAndMissingOnes) {
  const TemporaryFolder folder;
  EXPECT_FALSE(OutputFile::Open(folder.File("")).ok());
  EXPECT_FALSE(OutputFile::Open(folder.File("none/a.bin")).ok());
  EXPECT_THAT(folder.Names(), IsEmpty());
}

}  // namespace
}  // namespace prefixd::cli
