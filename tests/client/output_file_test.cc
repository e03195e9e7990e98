// Files appear complete or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>

#include "client/cli/file.h"
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
    EXPECT_EQ(folder.Names().size(), 1);
  }
  EXPECT_THAT(folder.Names(), IsEmpty());
}

TEST(OutputFile, LeavesNothingAfterASignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const TemporaryFolder folder;
    const auto write_and_die = [&] {
      RemoveTemporaryFilesOnSignal();
      auto first = OutputFile::Open(folder.File("a.bin"));
      auto second = OutputFile::Open(folder.File("b.bin"));
      if (!(*first)->Write("half").ok() || !(*second)->Write("half").ok() || folder.Names().size() != 2) _exit(1);
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

TEST(OutputFile, RefusesFoldersAndMissingOnes) {
  const TemporaryFolder folder;
  EXPECT_FALSE(OutputFile::Open(folder.File("")).ok());
  EXPECT_FALSE(OutputFile::Open(folder.File("none/a.bin")).ok());
  EXPECT_THAT(folder.Names(), IsEmpty());
}

}  // namespace
}  // namespace prefixd::cli
