// Array messages compared with protobuf itself: we write the same bytes, and we read the same message.
#include "proto/array_message.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "prefixd/v1/primitives.pb.h"
#include "tests/proto/differential.h"

namespace prefixd {
namespace {

std::string RandomBytes(std::mt19937& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Around a slice's inlined size, around what is copied, and larger.
std::string RandomPayload(std::mt19937& random) {
  constexpr size_t kSizes[] = {0, 1, 4, 23, 24, 127, 128, 1000, 16384, 16385, 70000};
  return RandomBytes(random, kSizes[random() % std::size(kSizes)]);
}

std::vector<size_t> RandomSliceSizes(std::mt19937& random) {
  std::vector<size_t> sizes = {1 + random() % 70000};
  for (size_t i = random() % 4; i > 0; --i) sizes.push_back(random() % (random() % 2 == 0 ? 5 : 5000));
  return sizes;
}

template <class Spec>
void FillCommon(std::mt19937& random, Spec* spec) {
  spec->set_dtype(static_cast<v1::DType>(random() % 13));
  if (random() % 2 == 0) spec->mutable_algorithm()->set_strategy(v1::STRATEGY_CHAINED);
  if (random() % 2 == 0) spec->set_num_items(random());
}

v1::ScanRequest RandomScan(std::mt19937& random) {
  v1::ScanRequest request;
  if (random() % 2 == 0) {
    FillCommon(random, request.mutable_spec());
    request.mutable_spec()->mutable_init()->set_double_value(random());
  }
  if (random() % 2 == 0) request.set_request_id(absl::StrCat("id-", random()));
  if (random() % 4 == 0) request.mutable_sink()->mutable_inline_();
  return request;
}

v1::CompactRequest RandomCompact(std::mt19937& random) {
  v1::CompactRequest request;
  if (random() % 2 == 0) {
    FillCommon(random, request.mutable_spec());
    request.mutable_spec()->set_mask(v1::MASK_KIND_BYTES);
  }
  return request;
}

std::string Join(const grpc::ByteBuffer& bytes) {
  grpc::Slice whole;
  EXPECT_TRUE(bytes.DumpToSingleSlice(&whole).ok());
  return std::string(reinterpret_cast<const char*>(whole.begin()), whole.size());
}

TEST(ArrayMessage, OurBytesAreProtobufs) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 300; ++i) {
    v1::CompactRequest request = RandomCompact(random);
    const std::string values = RandomPayload(random);
    const std::string mask = RandomPayload(random);
    std::optional<uint64_t> first_item;
    if (random() % 2 == 0) first_item = random() % 3 == 0 ? 0 : uint64_t{random()} << (random() % 32);
    const grpc::ByteBuffer ours =
        SerializeArrayMessage(request, {{99, first_item, Payload(mask)}, {100, first_item, Payload(values)}});
    for (v1::Operand* operand : {request.mutable_mask(), request.mutable_values()}) {
      if (first_item) operand->mutable_inline_()->set_first_item(*first_item);
      operand->mutable_inline_()->set_data(operand == request.mutable_mask() ? mask : values);
    }
    EXPECT_TRUE(Join(ours) == request.SerializeAsString()) << values.size() << " " << mask.size();
  }
}

TEST(ArrayMessage, NothingButTheMessageWithoutArrays) {
  v1::ScanResponse response;
  EXPECT_EQ(SerializeArrayMessage(response, {}).Length(), 0u);
  response.mutable_timing()->set_device("cpu");
  EXPECT_EQ(Join(SerializeArrayMessage(response, {})), response.SerializeAsString());
}

// The slices of a large payload point to the payload, and keep its owner until they are gone.
TEST(ArrayMessage, LargePayloadsAreBorrowedAndGivenBack) {
  auto owner = std::make_shared<std::string>(100'000, 'x');
  const std::weak_ptr<std::string> alive = owner;
  {
    const Payload payload(*owner, owner);
    owner.reset();
    const char* const data = payload.parts()[0].data();
    grpc::ByteBuffer bytes = SerializeArrayMessage(v1::ScanResponse(), {{100, {}, payload}});
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(bytes.Dump(&slices).ok());
    ASSERT_EQ(slices.size(), 2u);
    EXPECT_EQ(reinterpret_cast<const char*>(slices[1].begin()), data);
  }
  EXPECT_TRUE(alive.expired());
}

TEST(ArrayMessage, PayloadsAreNotCopiedOnTheWayIn) {
  const std::string data(100'000, 'y');
  const grpc::ByteBuffer bytes = SerializeArrayMessage(v1::ScanRequest(), {{100, 7, Payload(data)}});
  v1::ScanRequest request;
  ArrayPayloads payloads;
  ASSERT_TRUE(ParseArrayMessage(bytes, &request, &payloads).ok());
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(bytes.Dump(&slices).ok());
  ASSERT_EQ(payloads[100].parts().size(), 1u);
  EXPECT_EQ(payloads[100].parts()[0].data(), reinterpret_cast<const char*>(slices.back().begin()));
  EXPECT_EQ(request.values().inline_().first_item(), 7u);
  EXPECT_TRUE(request.values().inline_().data().empty());
  EXPECT_EQ(payloads.num_copied_bytes, 0u);
}

// What protobuf had to parse is not kept for the sake of its payload: unknown fields may take many times their bytes.
TEST(ArrayMessage, PayloadsAreTakenOutOfUnusualMessages) {
  v1::CompactRequest request;
  request.mutable_values()->mutable_inline_()->set_data(std::string(1000, 'v'));
  request.mutable_mask()->mutable_inline_()->set_data("m");
  const std::string bytes = request.SerializeAsString();
  const grpc::ByteBuffer twice = InSlices(bytes + bytes, {1 << 20});
  ArrayPayloads payloads;
  ASSERT_TRUE(ParseArrayMessage(twice, &request, &payloads).ok());
  EXPECT_EQ(payloads[100].ToString(), std::string(1000, 'v'));
  EXPECT_EQ(payloads[99].ToString(), "m");
  EXPECT_EQ(payloads.num_copied_bytes, 1001u);
  EXPECT_TRUE(request.values().inline_().data().empty());
  EXPECT_TRUE(request.mask().inline_().data().empty());
}

// Fields beside the arrays are what parsing costs: there may be few, wherever they are, and many only in small
// messages.
TEST(ArrayMessage, BytesBesideTheArraysAreBounded) {
  const auto field = [](int number, const std::string& content) {
    v1::ScanRequest outer;  // Any message: the field is written as an unknown one.
    outer.GetReflection()->MutableUnknownFields(&outer)->AddLengthDelimited(number, content);
    return outer.SerializeAsString();
  };
  const auto parse = [](const std::string& bytes, ArrayPayloads* payloads) {
    v1::ScanRequest request;
    return ParseArrayMessage(InSlices(bytes, {100, 1000}), &request, payloads);
  };
  const auto tiny = [](uint64_t num_bytes) {
    std::string fields;
    while (fields.size() < num_bytes) fields += "\xa8\x06\x01";  // Field 101.
    return fields;
  };
  const std::string chunk = field(100, std::string(100'000, 'x'));
  constexpr uint64_t kFew = kMaxBytesBesideArrays - 100;  // With room for the tags around them.
  constexpr uint64_t kMany = kMaxBytesBesideArrays + 1;
  const std::string array = field(100, field(100, chunk));
  const std::vector<std::pair<std::string, std::string>> few_and_many = {
      {tiny(kFew) + array, tiny(kMany) + array},
      {array + tiny(kFew), array + tiny(kMany)},
      {field(100, tiny(kFew) + field(100, chunk)), field(100, tiny(kMany) + field(100, chunk))},
      {field(100, field(100, chunk + tiny(kFew))), field(100, field(100, chunk + tiny(kMany)))},
      {field(100, tiny(kFew / 2) + field(100, chunk + tiny(kFew / 2))),
       field(100, tiny(kMany / 2) + field(100, chunk + tiny(kMany / 2)))},
      {array + field(15, std::string(kFew, 'y')), array + field(15, std::string(kMany, 'y'))},
      {array + tiny(kFew / 2) + field(99, tiny(kFew / 2)), array + tiny(kMany / 2) + field(99, tiny(kMany / 2))},
  };
  for (size_t i = 0; i < few_and_many.size(); ++i) {
    SCOPED_TRACE(i);
    ArrayPayloads payloads;
    EXPECT_EQ(parse(few_and_many[i].first, &payloads), absl::OkStatus());
    EXPECT_EQ(payloads[100].size(), 100'000u);
    ArrayPayloads none;
    EXPECT_EQ(ErrorReason(parse(few_and_many[i].second, &none)), "MALFORMED");
  }
  const std::string small = field(100, field(100, field(100, "xxxx")));
  for (const std::string& unusual : {small + small, std::string("\x7b\x7c") + small}) {
    ArrayPayloads payloads;
    EXPECT_EQ(parse(unusual + tiny(kFew), &payloads), absl::OkStatus());
    EXPECT_EQ(parse(unusual + array, &payloads).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(ArrayMessage, RandomMessagesInRandomSlices) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 300; ++i) {
    v1::CompactRequest compact = RandomCompact(random);
    compact.mutable_values()->mutable_inline_()->set_data(RandomPayload(random));
    if (random() % 2 == 0) compact.mutable_mask()->mutable_inline_()->set_data(RandomPayload(random));
    v1::ScanRequest scan = RandomScan(random);
    scan.mutable_values()->mutable_inline_()->set_data(RandomPayload(random));
    for (google::protobuf::Message* const request :
         {static_cast<google::protobuf::Message*>(&compact), static_cast<google::protobuf::Message*>(&scan)}) {
      const std::string bytes = request->SerializeAsString();
      EXPECT_EQ(AnyMismatch(bytes, RandomSliceSizes(random)), "");
      ArrayPayloads payloads;
      EXPECT_EQ(ParseArrayMessage(InSlices(bytes, RandomSliceSizes(random)), request, &payloads), absl::OkStatus());
    }
  }
}

// Where the meaning depends on the order, or one occurrence wins over, or is merged with, another.
TEST(ArrayMessage, UnusualEncodingsMeanWhatTheyMeanToProtobuf) {
  const auto field = [](int number, const std::string& bytes) {
    std::string out;
    for (uint64_t value : {uint64_t(number) << 3 | 2, uint64_t{bytes.size()}}) {
      for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
      out.push_back(static_cast<char>(value));
    }
    return out + bytes;
  };
  const std::string first_item = {0x08, 0x07};
  const auto data = [&](const std::string& bytes) { return field(100, bytes); };
  const auto values = [&](const std::string& chunk) { return field(100, field(100, chunk)); };
  const std::string array = field(1, field(1, "arrays/1"));
  const std::string overlong_tag = std::string("\xa2\x86\x80\x80\x80\x80\x00", 7);
  const std::vector<std::string> cases = {
      values(data("aaaa") + first_item),             // Fields in another order.
      values(data("aaaa")) + field(1, ""),           // The spec behind the values.
      values(data("aaaa") + data("bb")),             // The last data wins.
      values(data("aaaa") + data("")),               // Also where it is empty.
      values(data("aaaa")) + values(first_item),     // Merged.
      values(data("aaaa")) + values(data("bb")),     // Merged, the last data wins.
      field(100, field(100, data("aaaa")) + array),  // The array wins.
      field(100, array + field(100, data("aaaa"))),  // The chunk wins.
      field(100, field(100, data("aaaa")) + array + field(100, first_item)),
      values(data("aaaa")) + field(100, array),
      field(77, "unknown") + values(data("aaaa") + field(78, "unknown")) + field(79, "unknown"),
      field(100, field(100, data("aaaa")) + field(3, "unknown")),
      std::string("\x9d\x05zzzz", 6) + values(data("aaaa")),       // An unknown fixed32.
      std::string("\x99\x05zzzzzzzz", 10) + values(data("aaaa")),  // An unknown fixed64.
      std::string("\xa0\x06\x01", 3) + values(data("aaaa")),       // Field 100, but a varint.
      std::string("\x9b\x05\x9c\x05", 4) + values(data("aaaa")),   // An unknown group.
      std::string("\x9b\x05", 2) + values(data("aaaa")),           // One without an end.
      overlong_tag + values(data("aaaa")),
      values(data("aaaa")).substr(0, 8),
      values(data("aaaa")) + "\xa2",
      std::string("\xa2\x06\xff\xff\xff\xff\x7f", 7),  // A length past the end.
      std::string("\x02\x00", 2),                      // Field 0.
      field(2, "\xff\xff") + values(data("aaaa")),     // A string that is not UTF-8.
      "",
  };
  for (const std::string& bytes : cases) {
    for (const std::vector<size_t>& sizes : {std::vector<size_t>{1}, {1, 0, 2}, {1000}}) {
      EXPECT_EQ(AnyMismatch(bytes, sizes), "") << absl::BytesToHexString(bytes);
    }
  }
}

// What the fuzzer found worth keeping, read as it reads it.
TEST(ArrayMessage, TheFuzzersCorpusMeansWhatItMeansToProtobuf) {
  size_t num_files = 0;
  for (const auto& file : std::filesystem::directory_iterator(PREFIXD_CORPUS_DIR)) {
    std::ifstream stream(file.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    EXPECT_EQ(FuzzedMismatch(bytes), "") << file.path();
    ++num_files;
  }
  EXPECT_GT(num_files, 50u);
}

TEST(ArrayMessage, MutatedMessagesMeanWhatTheyMeanToProtobuf) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    v1::CompactRequest compact = RandomCompact(random);
    compact.mutable_values()->mutable_inline_()->set_data(RandomBytes(random, random() % 20));
    compact.mutable_mask()->mutable_inline_()->set_data(RandomBytes(random, random() % 5));
    compact.mutable_values()->mutable_inline_()->set_first_item(random() % 300);
    std::string bytes = compact.SerializeAsString();
    for (size_t k = random() % 4; k > 0; --k) {
      const size_t at = random() % bytes.size();
      const size_t count = std::min<size_t>(random() % 12, bytes.size() - at);
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(bytes[at] ^ (1U << (random() % 8)));
          break;
        case 1:
          bytes.insert(random() % bytes.size(), bytes.substr(at, count));
          break;
        case 2:
          bytes += bytes.substr(at);
          break;
        default:
          if (bytes.size() > count) bytes.erase(at, count);
      }
    }
    const std::string mismatch = AnyMismatch(bytes, RandomSliceSizes(random));
    ASSERT_EQ(mismatch, "") << absl::BytesToHexString(bytes);
  }
}

}  // namespace
}  // namespace prefixd
