#include "client/prefixctl/resident_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "client/prefixctl/report.h"

namespace prefixd::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseShape, TakesDimensions) {
  EXPECT_THAT(*ParseShape("0"), ElementsAre(0));
  EXPECT_THAT(*ParseShape("1000"), ElementsAre(1000));
  EXPECT_THAT(*ParseShape("30x20"), ElementsAre(30, 20));
  EXPECT_THAT(*ParseShape("18446744073709551615"), ElementsAre(UINT64_MAX));
  for (const char* bad : {"", "x", "3x", "x3", "3,4", "-3", "3.5", "1 2", "18446744073709551616", "3xx4"}) {
    EXPECT_THAT(std::string(ParseShape(bad).status().message()), HasSubstr("is no shape")) << bad;
  }
}

TEST(ParseFill, TakesEveryKind) {
  EXPECT_EQ(*ParseFill(DType::kI32, "zero"), std::nullopt);
  EXPECT_EQ(*ParseFill(DType::kI32, "-5"), client::Constant<int32_t>(-5));
  EXPECT_EQ(*ParseFill(DType::kF64, "1.5"), client::Constant(1.5));
  EXPECT_EQ(*ParseFill(DType::kU64, "18446744073709551615"), client::Constant(~uint64_t{0}));
  EXPECT_EQ(*ParseFill(DType::kF32, "iota"), client::Iota<float>());
  EXPECT_EQ(*ParseFill(DType::kI8, "random:42"), client::Random<int8_t>(42));
  EXPECT_EQ(*ParseFill(DType::kI8, "random:18446744073709551615"), client::Random<int8_t>(~uint64_t{0}));
  for (const char* bad : {"", "ones", "300", "1.5", "random", "random:", "random:x", "random:-1", "iota:2"}) {
    EXPECT_FALSE(ParseFill(DType::kI8, bad).ok()) << bad;
  }
  EXPECT_THAT(std::string(ParseFill(DType::kI8, "ones").status().message()), HasSubstr("random:SEED"));
}

client::ArrayInfo Info() {
  return {.name = "arrays/1",
          .dtype = DType::kF32,
          .shape = {30, 20},
          .num_items = 600,
          .num_bytes = 2560,
          .create_time = absl::UnixEpoch(),
          .expire_time = absl::UnixEpoch() + absl::Seconds(90),
          .ttl = absl::Seconds(90),
          .renew_on_use = true};
}

TEST(ArrayReport, Json) {
  EXPECT_EQ(ToJson(Info()).dump(),
            "{\"name\":\"arrays/1\",\"type\":\"f32\",\"shape\":[30,20],\"num_items\":600,\"num_bytes\":2560,"
            "\"create_time\":\"1970-01-01T00:00:00+00:00\",\"expire_time\":\"1970-01-01T00:01:30+00:00\","
            "\"ttl_seconds\":90.0,\"renew_on_use\":true}");
}

TEST(ArrayReport, Tables) {
  const absl::Time now = absl::UnixEpoch() + absl::Milliseconds(500);
  EXPECT_EQ(Table(Info(), now),
            "name       arrays/1\n"
            "type       f32\n"
            "shape      30x20\n"
            "size       2560 bytes\n"
            "expires    in 1m30s\n"
            "lives for  1m30s from its last use on\n");
  client::ArrayInfo other = Info();
  other.name = "arrays/20";
  other.shape = {1000000};
  other.num_bytes = uint64_t{3} << 30;
  EXPECT_EQ(ArrayTable({Info(), other}, now + absl::Seconds(200)),
            "name       type  shape    size        expires\n"
            "arrays/1   f32   30x20    2560 bytes  now\n"
            "arrays/20  f32   1000000  3.0 GiB     now\n");
  EXPECT_EQ(ArrayTable({}, now), "name  type  shape  size  expires\n");
}

}  // namespace
}  // namespace prefixd::cli
