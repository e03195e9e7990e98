#include "client/prefixctl/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace prefixd::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kGood[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }           \n";

TEST(NpyPreamble, Versions) {
  const auto one = ParseNpyPreamble(std::string("\x93NUMPY\x01\x00\x76\x00{'", 12));
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->preamble_bytes, 10);
  EXPECT_EQ(one->dictionary_bytes, 0x76);
  for (const char version : {'\x02', '\x03'}) {
    const auto later = ParseNpyPreamble(std::string("\x93NUMPY") + version + std::string("\x00\x34\x12\x00\x00", 5));
    ASSERT_TRUE(later.ok()) << later.status();
    EXPECT_EQ(later->preamble_bytes, 12);
    EXPECT_EQ(later->dictionary_bytes, 0x1234);
  }
}

TEST(NpyPreamble, Refused) {
  for (const std::string& bytes : {
           std::string(),
           std::string("NUMPY\x01\x00\x76\x00\x00\x00\x00", 12),
           std::string("\x93NUMPZ\x01\x00\x76\x00\x00\x00", 12),
           std::string("\x93NUMPY\x00\x00\x76\x00\x00\x00", 12),
           std::string("\x93NUMPY\x04\x00\x76\x00\x00\x00", 12),
           std::string("\x93NUMPY\x01\x00\x76", 9),
           std::string("\x93NUMPY\x02\x00\x76\x00\x00", 11),
           std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12),
       }) {
    EXPECT_FALSE(ParseNpyPreamble(bytes).ok()) << testing::PrintToString(bytes);
  }
}

TEST(NpyDictionary, AsNumPyWritesIt) {
  const auto header = ParseNpyDictionary(kGood);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->descr, "<f4");
  EXPECT_FALSE(header->fortran_order);
  EXPECT_THAT(header->shape, ElementsAre(3));
}

TEST(NpyDictionary, AnyOrderAnyShape) {
  const auto header = ParseNpyDictionary("{ \"shape\":( 2,3 , 4), 'fortran_order' :True,'descr':'>i8'}");
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->descr, ">i8");
  EXPECT_TRUE(header->fortran_order);
  EXPECT_THAT(header->shape, ElementsAre(2, 3, 4));
  EXPECT_THAT(ParseNpyDictionary("{'descr':'<f4','fortran_order':False,'shape':()}")->shape, IsEmpty());
}

TEST(NpyDictionary, Refused) {
  for (const char* text : {
           "",
           "{",
           "{}",
           "{'descr': '<f4'}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), ",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
           "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
           "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
           "{'descr': <f4, 'fortran_order': False, 'shape': (3,)}",
           "{'descr': '<f4, 'fortran_order': False, 'shape': (3,)}",
           "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
           "{'descr': '<f4', 'other': 1, 'fortran_order': False, 'shape': (3,)}",
           "{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}",
       }) {
    EXPECT_FALSE(ParseNpyDictionary(text).ok()) << text;
  }
}

TEST(NpyDictionary, SurvivesGarbage) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const std::string alphabet = "{}()[]',:\" <f4TrueFalse0123456789descrshape\n\xff";
  for (int i = 0; i < 20000; ++i) {
    std::string text = kGood;
    for (int edits = random() % 6; edits > 0; --edits)
      text[random() % text.size()] = alphabet[random() % alphabet.size()];
    if (random() % 3 == 0) text.resize(random() % text.size());
    const auto header = ParseNpyDictionary(text);
    if (header.ok()) {
      EXPECT_LE(header->shape.size(), text.size());
    }
  }
}

TEST(NpyDType, KnownAndUnknown) {
  EXPECT_EQ(*NpyDType("<f2"), DType::kF16);
  EXPECT_EQ(*NpyDType("<f4"), DType::kF32);
  EXPECT_EQ(*NpyDType("<f8"), DType::kF64);
  EXPECT_EQ(*NpyDType("<i4"), DType::kI32);
  EXPECT_EQ(*NpyDType("<u8"), DType::kU64);
  EXPECT_EQ(*NpyDType("|i1"), DType::kI8);
  EXPECT_THAT(NpyDType(">f4").status().message(), HasSubstr("big-endian"));
  for (const char* descr : {"", "f4", "<f16", "<c8", "|S5", "|O", "<M8[ns]", "|b1", "<i3"}) {
    EXPECT_FALSE(NpyDType(descr).ok()) << descr;
  }
}

TEST(NpyHeader, OfAMatrix) {
  constexpr uint64_t kMost = ~uint64_t{0};
  for (const auto& [rows, row_items] : {std::pair<uint64_t, uint64_t>{0, 5}, {3, 4}, {0, 0}, {kMost, 1}, {1, kMost}}) {
    const std::string text = FormatNpyHeader(DType::kU8, rows * row_items, row_items);
    EXPECT_EQ(text.size(), FormatNpyHeader(DType::kU8, 0).size());
    const auto header = ParseNpyDictionary(text.substr(ParseNpyPreamble(text)->preamble_bytes));
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->shape, (std::vector<uint64_t>{rows, row_items}));
  }
}

TEST(NpyHeader, WrittenReadsBackAndKeepsItsLength) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::kBF16) continue;
    for (const uint64_t num_items : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
      const std::string text = FormatNpyHeader(dtype, num_items);
      EXPECT_EQ(text.size() % 64, 0u);  // As the format wants it.
      EXPECT_EQ(text.size(), FormatNpyHeader(dtype, 0).size());
      const auto preamble = ParseNpyPreamble(text);
      ASSERT_TRUE(preamble.ok()) << preamble.status();
      ASSERT_EQ(preamble->preamble_bytes + preamble->dictionary_bytes, text.size());
      const auto header = ParseNpyDictionary(text.substr(preamble->preamble_bytes));
      ASSERT_TRUE(header.ok()) << header.status();
      EXPECT_EQ(*NpyDType(header->descr), dtype);
      EXPECT_THAT(header->shape, ElementsAre(num_items));
    }
  }
}

}  // namespace
}  // namespace prefixd::cli
