#include "client/prefixctl/file_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/status.h"
#include "tests/client/temporary_folder.h"

namespace prefixd::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FileSourceTest : public testing::Test {
 protected:
  std::unique_ptr<ArrayReader> Values(const std::string& text) {
    return *OpenArray(*InputFile::Open(folder_.Write("v.txt", text), absl::InfiniteFuture()), Format::kText,
                      DType::kI32);
  }
  std::unique_ptr<ArrayReader> Mask(const std::string& text) {
    return *OpenMask(*InputFile::Open(folder_.Write("m.txt", text), absl::InfiniteFuture()), Format::kText);
  }

  const TemporaryFolder folder_;
  Progress progress_{ResultTo::kFile};
};

TEST_F(FileSourceTest, ChunksWithTheirMaskTwice) {
  const auto values = Values("1\n2\n3\n");
  const auto mask = Mask("1\n0\n1\n");
  FileSource source(*values, FileSource::Beside::kMask, *mask, progress_);
  for (int pass = 0; pass < 2; ++pass) {
    auto chunk = source.Next(2);
    ASSERT_TRUE(chunk.ok()) << chunk.status();
    EXPECT_EQ(chunk->values.size(), 8);
    EXPECT_EQ(chunk->mask.size(), 2);
    EXPECT_FALSE(chunk->last);
    chunk = source.Next(2);
    ASSERT_TRUE(chunk.ok()) << chunk.status();
    EXPECT_EQ(chunk->values.size(), 4);
    EXPECT_EQ(chunk->mask[0], std::byte{1});
    EXPECT_TRUE(chunk->last);
    EXPECT_EQ(source.items_read(), 3);
    ASSERT_TRUE(source.Rewind());
  }
}

TEST_F(FileSourceTest, MaskOfAnotherLength) {
  for (const size_t chunk_items : {1, 2, 3, 4, 100}) {
    for (const char* mask_text : {"", "1\n", "1\n0\n", "1\n0\n1\n0\n", "1\n0\n1\n0\n1\n"}) {
      const auto values = Values("1\n2\n3\n");
      const auto mask = Mask(mask_text);
      FileSource source(*values, FileSource::Beside::kMask, *mask, progress_);
      absl::StatusOr<client::Chunk> chunk;
      do {
        chunk = source.Next(chunk_items);
      } while (chunk.ok() && !chunk->last);
      ASSERT_FALSE(chunk.ok()) << mask_text << " in chunks of " << chunk_items;
      EXPECT_EQ(ErrorReason(chunk.status()), "MASK_LENGTH");
      EXPECT_THAT(chunk.status().message(), AllOf(HasSubstr("m.txt"), HasSubstr("v.txt")));
    }
  }
}

TEST_F(FileSourceTest, KnownLengthTellsTheLastChunk) {
  const auto path = folder_.Write("v.bin", std::string(16, 'x'));
  const auto values = *OpenArray(*InputFile::Open(path, absl::InfiniteFuture()), Format::kRaw, DType::kI64);
  FileSource source(*values, progress_);
  EXPECT_TRUE(source.Next(2)->last);  // Full, and yet the last: so that 1 MiB is a unary call.
}

// Text does not tell how long it is; a chunk that ends where it ends is the last nonetheless.
TEST_F(FileSourceTest, UnknownLengthTellsTheLastChunk) {
  for (const size_t chunk_items : {1, 2, 3, 4, 6, 7}) {
    const auto values = Values("1\n2\n3\n4\n5\n6\n");
    const auto mask = Mask("1\n0\n1\n0\n1\n0\n");
    FileSource source(*values, FileSource::Beside::kMask, *mask, progress_);
    for (int pass = 0; pass < 2; ++pass) {
      size_t items = 0;
      for (bool last = false; !last;) {
        const auto chunk = source.Next(chunk_items);
        ASSERT_TRUE(chunk.ok()) << chunk.status();
        const size_t count = chunk->values.size() / sizeof(int32_t);
        EXPECT_EQ(count, std::min(chunk_items, 6 - items));
        ASSERT_EQ(chunk->mask.size(), count);
        for (size_t i = 0; i < count; ++i, ++items) {
          int32_t value;
          std::memcpy(&value, chunk->values.data() + i * sizeof(value), sizeof(value));
          EXPECT_EQ(value, items + 1);
          EXPECT_EQ(chunk->mask[i], std::byte(value % 2));
        }
        last = chunk->last;
        EXPECT_EQ(last, items == 6) << items << " items in chunks of " << chunk_items;
        EXPECT_EQ(source.items_read(), items);
      }
      ASSERT_TRUE(source.Rewind());
    }
  }
}

// gRPC may send a chunk while the next ones are read, and after the source has gone.
TEST_F(FileSourceTest, ChunksKeepWhatTheyHold) {
  for (const bool has_mask : {false, true}) {
    const auto values = Values("1\n2\n3\n4\n5\n");
    const auto mask = Mask("1\n0\n1\n0\n1\n");
    std::vector<client::Chunk> chunks;
    {
      FileSource source =
          has_mask ? FileSource(*values, FileSource::Beside::kMask, *mask, progress_) : FileSource(*values, progress_);
      do {
        chunks.push_back(*source.Next(2));
      } while (!chunks.back().last);
    }
    ASSERT_EQ(chunks.size(), 3u);
    int32_t expected = 0;
    for (const client::Chunk& chunk : chunks) {
      ASSERT_NE(chunk.owner, nullptr);
      for (size_t i = 0; i < chunk.values.size() / sizeof(int32_t); ++i) {
        int32_t value;
        std::memcpy(&value, chunk.values.data() + i * sizeof(value), sizeof(value));
        EXPECT_EQ(value, ++expected);
        if (has_mask) {
          EXPECT_EQ(chunk.mask[i], std::byte(value % 2));
        }
      }
    }
    EXPECT_EQ(expected, 5);
  }
}

TEST_F(FileSourceTest, NoElementsAreOneChunk) {
  const auto values = Values("");
  FileSource source(*values, progress_);
  const auto chunk = source.Next(2);
  ASSERT_TRUE(chunk.ok()) << chunk.status();
  EXPECT_TRUE(chunk->values.empty());
  EXPECT_TRUE(chunk->last);
}

TEST(ProgressLine, WithAndWithoutATotal) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(ProgressLine(50 * kMiB, 100 * kMiB, absl::Seconds(2)), "50.0 of 100.0 MiB (50%), 25.0 MiB/s, 2s left");
  EXPECT_EQ(ProgressLine(50 * kMiB, std::nullopt, absl::Seconds(2)), "50.0 MiB, 25.0 MiB/s");
  EXPECT_EQ(ProgressLine(0, 100 * kMiB, absl::Seconds(2)), "0.0 of 100.0 MiB (0%), 0.0 MiB/s");
}

}  // namespace
}  // namespace prefixd::cli
