// Arrays read from files and written to them: npy, text and raw.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "client/prefixctl/array_reader.h"
#include "client/prefixctl/array_writer.h"
#include "client/prefixctl/npy.h"
#include "tests/client/temporary_folder.h"

namespace prefixd::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <class T>
std::string Packed(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

absl::StatusOr<std::unique_ptr<ArrayReader>> Open(const std::string& path, std::optional<DType> dtype = {}) {
  auto file = InputFile::Open(path, absl::InfiniteFuture());
  if (!file.ok()) return file.status();
  return OpenArray(*std::move(file), FormatOf(path), dtype);
}

// Everything, `piece` elements at a time.
template <class T>
absl::StatusOr<std::vector<T>> ReadAll(ArrayReader& reader, size_t piece = 7) {
  EXPECT_EQ(SizeOf(reader.dtype()), sizeof(T));
  std::vector<T> all;
  std::vector<T> buffer(piece);
  for (;;) {
    const auto count = reader.Read(piece, reinterpret_cast<std::byte*>(buffer.data()));
    if (!count.ok()) return count.status();
    all.insert(all.end(), buffer.begin(), buffer.begin() + *count);
    if (*count < piece) return all;
  }
}

template <class T>
absl::StatusOr<std::vector<T>> ReadFile(const std::string& path, std::optional<DType> dtype = {}) {
  auto reader = Open(path, dtype);
  if (!reader.ok()) return reader.status();
  return ReadAll<T>(**reader);
}

// What is wrong with the file, found when it is opened or read.
std::string Problem(const std::string& path, std::optional<DType> dtype = {}) {
  auto reader = Open(path, dtype);
  absl::Status status = reader.status();
  std::byte buffer[7 * sizeof(double)];
  while (status.ok()) {
    const auto count = (*reader)->Read(7, buffer);
    status = count.status();
    if (count.ok() && *count < 7) break;
  }
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(path));  // Every error names its file.
  return std::string(status.message());
}

TEST(FormatOf, GoesBySuffix) {
  EXPECT_EQ(FormatOf("a.npy"), Format::kNpy);
  EXPECT_EQ(FormatOf("a.txt"), Format::kText);
  EXPECT_EQ(FormatOf("a.csv"), Format::kText);
  EXPECT_EQ(FormatOf("-"), Format::kText);
  EXPECT_EQ(FormatOf("a.bin"), Format::kRaw);
  EXPECT_EQ(FormatOf("npy"), Format::kRaw);
}

TEST(ArrayFiles, RoundTripInEveryFormatAndType) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const TemporaryFolder folder;
  for (const size_t num_items : {size_t{0}, size_t{1}, size_t{7}, size_t{14}, size_t{10000} + random() % 10000}) {
    for (const char* name : {"a.npy", "a.txt", "a.bin"}) {
      for (const bool length_known : {false, true}) {
        const auto round_trip = [&](auto tag) {
          using T = typename decltype(tag)::type;
          std::vector<T> values(num_items);
          for (T& value : values) value = static_cast<T>(static_cast<int64_t>(random()) >> random() % 64);
          const std::string path = folder.File(name);
          if (kDTypeOf<T> == DType::kBF16 && FormatOf(path) == Format::kNpy) return;
          auto writer = ArrayWriter::Open(path, FormatOf(path), kDTypeOf<T>,
                                          length_known ? std::optional<uint64_t>(num_items) : std::nullopt);
          ASSERT_TRUE(writer.ok()) << writer.status();
          std::string_view rest(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
          while (!rest.empty()) {  // Cut anywhere, also within elements.
            std::vector<std::string_view> pieces(random() % 4);
            for (std::string_view& piece : pieces) {
              piece = rest.substr(0, random() % (random() % 8 == 0 ? 5000 : 12));
              rest.remove_prefix(piece.size());
            }
            ASSERT_TRUE((*writer)->Write(pieces).ok());
          }
          EXPECT_EQ((*writer)->ItemsWritten(), num_items);
          ASSERT_TRUE((*writer)->Close().ok());
          ASSERT_TRUE((*writer)->Commit().ok());
          const auto dtype = FormatOf(path) == Format::kNpy ? std::nullopt : std::optional(kDTypeOf<T>);
          auto reader = Open(path, dtype);
          ASSERT_TRUE(reader.ok()) << reader.status();
          EXPECT_EQ((*reader)->dtype(), kDTypeOf<T>);
          for (int pass = 0; pass < 2; ++pass) {
            const auto back = ReadAll<T>(**reader);
            ASSERT_TRUE(back.ok()) << back.status();
            ASSERT_TRUE(*back == values) << name << " " << num_items << " pass " << pass;
            ASSERT_TRUE((*reader)->Rewind());
          }
        };
#define PREFIXD_ROUND_TRIP(dtype, type) round_trip(TypeTag<type>());
        PREFIXD_FOR_EACH_DTYPE(PREFIXD_ROUND_TRIP)
#undef PREFIXD_ROUND_TRIP
      }
    }
  }
}

// ---- Text ----------------------------------------------------------------------------------------------------------
TEST(TextFiles, LinesAsPeopleWriteThem) {
  const TemporaryFolder folder;
  EXPECT_THAT(*ReadFile<double>(folder.Write("a.txt", "1\r\n\r\n  -2.5\t\n\n3")), ElementsAre(1, -2.5, 3));
  EXPECT_THAT(*ReadFile<double>(folder.Write("b.txt", "")), IsEmpty());
  EXPECT_THAT(*ReadFile<double>(folder.Write("c.txt", "\n\n")), IsEmpty());
  EXPECT_THAT(*ReadFile<int32_t>(folder.Write("d.csv", "1\n2\n"), DType::kI32), ElementsAre(1, 2));
}

TEST(TextFiles, MayBeginWithAByteOrderMark) {
  const TemporaryFolder folder;
  EXPECT_THAT(*ReadFile<int32_t>(folder.Write("a.txt",
                                              "\xef\xbb\xbf"
                                              "1\n2\n"),
                                 DType::kI32),
              ElementsAre(1, 2));
  EXPECT_FALSE(ReadFile<int32_t>(folder.Write("a.txt",
                                              "1\n\xef\xbb\xbf"
                                              "2\n"),
                                 DType::kI32)
                   .ok());
}

TEST(TextFiles, ErrorNamesFileAndLine) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a.txt", "1\n\n2\n3;4\n5\n");
  EXPECT_THAT(Problem(path), AllOf(HasSubstr(path + ":4: "), HasSubstr("'3;4' is no number of type f64")));
  EXPECT_THAT(Problem(folder.Write("b.txt", "1,2\n")), HasSubstr(":1: "));
  EXPECT_THAT(Problem(folder.Write("c.txt", "1\n300000000000\n"), DType::kI32), HasSubstr(":2: "));
  EXPECT_THAT(Problem(folder.Write("d.txt", std::string("1\n\0\n", 4))), HasSubstr(":2: "));
}

TEST(TextFiles, LinesAcrossBuffersAndTooLongOnes) {
  const TemporaryFolder folder;
  std::string text;
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < 50000; ++i) {  // Some 600 KB: several buffers, cut anywhere.
    expected.push_back(i * 1000003);
    text += std::to_string(expected.back()) + '\n';
  }
  const auto values = ReadFile<int64_t>(folder.Write("a.txt", text), DType::kI64);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_TRUE(*values == expected);
  EXPECT_THAT(Problem(folder.Write("b.txt", "1\n" + std::string(5000, '1') + "\n")), HasSubstr("longer than"));
  EXPECT_THAT(Problem(folder.Write("c.txt", std::string(1 << 20, ' '))), HasSubstr("longer than"));
}

// ---- npy -----------------------------------------------------------------------------------------------------------
std::string Npy(const std::string& dictionary, const std::string& data, char version = 1) {
  const size_t length = dictionary.size();
  std::string file = std::string("\x93NUMPY") + version + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(length >> 8 * i & 0xff);
  return file + dictionary + data;
}

TEST(NpyFiles, EveryVersion) {
  const TemporaryFolder folder;
  const std::string dictionary = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n";
  for (const char version : {'\x01', '\x02', '\x03'}) {
    const auto path = folder.Write("a.npy", Npy(dictionary, Packed<double>({1.5, 2.5}), version));
    const auto values = ReadFile<double>(path);
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_THAT(*values, ElementsAre(1.5, 2.5));
  }
}

TEST(NpyFiles, HostileOnes) {
  const TemporaryFolder folder;
  const auto problem = [&](const std::string& content) { return Problem(folder.Write("a.npy", content)); };
  const auto of_shape = [&](const std::string& shape, const std::string& descr = "<f8", const char* order = "False") {
    return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  };
  const std::string data = Packed<double>({1, 2});
  EXPECT_THAT(problem(""), HasSubstr("not a .npy file"));
  EXPECT_THAT(problem("1\n2\n3\n4\n5\n6\n7\n"), HasSubstr("not a .npy file"));
  EXPECT_THAT(problem(Npy(of_shape("(2,)"), data).substr(0, 9)), HasSubstr("ends early"));
  EXPECT_THAT(problem(Npy(of_shape("(2,)"), data).substr(0, 11)), HasSubstr("truncated"));
  EXPECT_THAT(problem(Npy(of_shape("(2,)"), data).substr(0, 40)), HasSubstr("truncated"));
  EXPECT_THAT(problem(Npy("", "")), HasSubstr("truncated"));
  EXPECT_THAT(problem(Npy("", data)), HasSubstr("too short"));
  EXPECT_THAT(problem(Npy(of_shape("(3,)"), data)), HasSubstr("3 elements of 8 bytes, but 16 bytes follow"));
  EXPECT_THAT(problem(Npy(of_shape("(1,)"), data)), HasSubstr("1 elements of 8 bytes, but 16 bytes follow"));
  EXPECT_THAT(problem(Npy(of_shape("(2,)"), data + "x")), HasSubstr("17 bytes follow"));
  EXPECT_THAT(problem(Npy(of_shape("(2,)"), data.substr(1))), HasSubstr("15 bytes follow"));
  EXPECT_THAT(problem(Npy(of_shape("(18446744073709551615,)"), data)), HasSubstr("out of reason"));
  EXPECT_THAT(problem(Npy(of_shape("(2305843009213693953,)"), data)), HasSubstr("out of reason"));  // * 8 wraps to 8.
  EXPECT_THAT(problem(Npy(of_shape("(1, 2)"), data)), HasSubstr("2 dimensions"));
  EXPECT_THAT(problem(Npy(of_shape("()"), data)), HasSubstr("0 dimensions"));
  const auto matrix_problem = [&](const char* shape) {
    auto file = InputFile::Open(folder.Write("m.npy", Npy(of_shape(shape), data)), absl::InfiniteFuture());
    return std::string(OpenArray(*std::move(file), Format::kNpy, std::nullopt, Shapes::kMatrixToo).status().message());
  };
  EXPECT_EQ(matrix_problem("(1, 2)"), "");
  EXPECT_THAT(matrix_problem("(4294967296, 4294967296)"), HasSubstr("more than 2^64 elements"));  // Wraps to 0.
  EXPECT_THAT(matrix_problem("(1, 1, 2)"), HasSubstr("3 dimensions, expected one or two"));
  EXPECT_THAT(problem(Npy(of_shape("(2,)", "<f8", "True"), data)), HasSubstr("Fortran order"));
  EXPECT_THAT(problem(Npy(of_shape("(2,)", ">f8"), data)), HasSubstr("big-endian"));
  EXPECT_THAT(problem(Npy(of_shape("(2,)", "<c8"), data)), HasSubstr("'<c8' is not supported"));
  EXPECT_THAT(problem(Npy(of_shape("(8,)", "<f16"), data)), HasSubstr("'<f16' is not supported"));
  EXPECT_THAT(problem(Npy(of_shape("(16,)", "|b1"), data)), HasSubstr("not supported"));
  EXPECT_THAT(problem(Npy(of_shape("(2,)"), data, 9)), HasSubstr("version 9.0"));
}

TEST(NpyFiles, NoneOfBF16) {
  const TemporaryFolder folder;
  const auto writer = ArrayWriter::Open(folder.File("a.npy"), Format::kNpy, DType::kBF16, 5);
  EXPECT_TRUE(absl::IsInvalidArgument(writer.status()));
  EXPECT_THAT(writer.status().message(), HasSubstr("a.npy: NumPy has no bf16"));
}

TEST(NpyFiles, TypeOnTheCommandLineMustAgree) {
  const TemporaryFolder folder;
  const auto path = folder.Write("a.npy", FormatNpyHeader(DType::kF32, 0));
  EXPECT_TRUE(Open(path, DType::kF32).ok());
  EXPECT_THAT(Problem(path, DType::kF64), HasSubstr("it holds f32, not f64"));
}

// A pipe does not tell its size: what is wrong shows on the way.
TEST(NpyFiles, ThroughAPipe) {
  const TemporaryFolder folder;
  const std::string path = folder.File("pipe.npy");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::string dictionary = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n";
  const auto read = [&](const std::string& content) {
    std::thread writer([&] { folder.Write("pipe.npy", content); });
    const auto values = ReadFile<double>(path);
    writer.join();
    return values;
  };
  EXPECT_THAT(*read(Npy(dictionary, Packed<double>({1, 2}))), ElementsAre(1, 2));
  EXPECT_THAT(read(Npy(dictionary, Packed<double>({1}))).status().message(), HasSubstr("ends after 1 of 2"));
  EXPECT_THAT(read(Npy(dictionary, Packed<double>({1, 2, 3}))).status().message(), HasSubstr("more behind its 2"));
}

// ---- Raw -----------------------------------------------------------------------------------------------------------
TEST(NpyFiles, EmptyOneWithMoreBehindThroughAPipe) {
  const TemporaryFolder folder;
  const std::string path = folder.File("pipe.npy");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { folder.Write("pipe.npy", FormatNpyHeader(DType::kF32, 0) + "more"); });
  EXPECT_THAT(Problem(path), HasSubstr("more behind"));
  writer.join();
}

TEST(RawFiles, NeedATypeAndWholeElements) {
  const TemporaryFolder folder;
  EXPECT_THAT(Problem(folder.Write("a.bin", "12345678")), HasSubstr("--type"));
  EXPECT_THAT(Problem(folder.Write("a.bin", "1234567"), DType::kF64), HasSubstr("no multiple of the 8"));
  EXPECT_THAT(Problem(folder.Write("a.bin", "123"), DType::kBF16), HasSubstr("no multiple of the 2"));
  const std::string pipe = folder.File("pipe.bin");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { folder.Write("pipe.bin", "123456789"); });
  EXPECT_THAT(Problem(pipe, DType::kF64), HasSubstr("middle of an element"));
  writer.join();
}

TEST(InputFile, NamesWhatItCannotOpen) {
  const TemporaryFolder folder;
  EXPECT_THAT(Problem(folder.File("none.npy")), HasSubstr("cannot open"));
  const auto directory = InputFile::Open(folder.File(""), absl::InfiniteFuture());
  EXPECT_THAT(directory.status().message(), HasSubstr("is a directory"));
}

TEST(InputFile, WaitsNoLongerThanItsDeadlineOrAnInterruption) {
  const TemporaryFolder folder;
  const std::string path = folder.File("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int keeps_it_open = open(path.c_str(), O_RDWR);
  std::byte buffer[8];
  auto late = InputFile::Open(path, absl::Now() + absl::Milliseconds(50));
  EXPECT_EQ((*late)->Read(buffer, 8).status().code(), absl::StatusCode::kDeadlineExceeded);
  auto interrupted = InputFile::Open(path, absl::InfiniteFuture());
  std::thread interrupter([&] {
    absl::SleepFor(absl::Milliseconds(50));  // For the read to wait.
    (*interrupted)->Interrupt();
  });
  EXPECT_EQ((*interrupted)->Read(buffer, 8).status().code(), absl::StatusCode::kCancelled);
  interrupter.join();
  close(keeps_it_open);
}

// ---- Masks ---------------------------------------------------------------------------------------------------------
absl::StatusOr<std::vector<uint8_t>> ReadMask(const std::string& path) {
  auto reader = OpenMask(*InputFile::Open(path, absl::InfiniteFuture()), FormatOf(path));
  if (!reader.ok()) return reader.status();
  return ReadAll<uint8_t>(**reader);
}

TEST(InputFile, DeadlineHoldsForRegularFilesToo) {
  const TemporaryFolder folder;
  auto file = InputFile::Open(folder.Write("a.bin", "12345678"), absl::Now() - absl::Seconds(1));
  std::byte buffer[8];
  EXPECT_EQ((*file)->Read(buffer, 8).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Masks, InEveryFormat) {
  const TemporaryFolder folder;
  const std::string bytes("\1\0\1", 3);
  EXPECT_THAT(*ReadMask(folder.Write("m.txt", "1\n0\n1\n")), ElementsAre(1, 0, 1));
  EXPECT_THAT(*ReadMask(folder.Write("m.bin", bytes)), ElementsAre(1, 0, 1));
  for (const char* descr : {"|b1", "|u1"}) {
    const std::string dictionary = std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (3,), }\n";
    EXPECT_THAT(*ReadMask(folder.Write("m.npy", Npy(dictionary, bytes))), ElementsAre(1, 0, 1));
  }
}

TEST(Masks, Refused) {
  const TemporaryFolder folder;
  EXPECT_THAT(ReadMask(folder.Write("m.txt", "1\n2\n")).status().message(), HasSubstr(":2: '2' is neither 0 nor 1"));
  EXPECT_THAT(ReadMask(folder.Write("m.npy", FormatNpyHeader(DType::kF32, 0))).status().message(), HasSubstr("'<f4'"));
}

// ---- Writing -------------------------------------------------------------------------------------------------------
TEST(ArrayWriter, NpyIntoAPipeNeedsTheLength) {
  const auto unknown = ArrayWriter::Open("/dev/null", Format::kNpy, DType::kF32, std::nullopt);
  EXPECT_THAT(unknown.status().message(), HasSubstr("not known yet"));
  EXPECT_TRUE(ArrayWriter::Open("/dev/null", Format::kNpy, DType::kF32, 3).ok());
}

TEST(ArrayWriter, FullDiskIsAnError) {
  auto writer = ArrayWriter::Open("/dev/full", Format::kRaw, DType::kF32, std::nullopt);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::string values(400'000, '\0');
  const std::vector<std::string_view> pieces = {values};
  absl::Status status = (*writer)->Write(pieces);
  if (status.ok()) status = (*writer)->Close();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("/dev/full"), HasSubstr("No space")));
}

}  // namespace
}  // namespace prefixd::cli
