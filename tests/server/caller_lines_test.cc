#include "server/rpc/caller_lines.h"

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace prefixd {
namespace {

constexpr uint64_t kMinBytes = 1000;

absl::StatusOr<CallerLimitsTable> Read(const std::string& text) { return ReadLimitsFile(text, kMinBytes); }
std::string ErrorOf(const std::string& text) { return std::string(Read(text).status().message()); }

TEST(CallerLinesTest, ALineIsANameAndItsLimits) {
  const auto table = Read(
      "# comment\n\n"
      "alice requests=1 bytes=1000 connections=2 requests_per_second=3 share_percent=100\r\n"
      "\t \"CN=Bob \\\"B\\\" Smith,O=Tests\"\tbytes=2000\n"
      "2001:db8::/64 connections=9\n"
      "\"a\\\\xc3\" requests=5\n"
      "eve\n"
      "* requests=1048576");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(
      table->Of("alice"),
      (CallerLimits{.requests = 1, .bytes = 1000, .connections = 2, .requests_per_second = 3, .share_percent = 100}));
  EXPECT_EQ(table->Of("CN=Bob \"B\" Smith,O=Tests"), CallerLimits{.bytes = 2000});
  EXPECT_EQ(table->Of("2001:db8::/64"), CallerLimits{.connections = 9});
  EXPECT_EQ(table->Of("a\\xc3"), CallerLimits{.requests = 5});  // As names of certificates are written.
  EXPECT_EQ(table->Of("eve"), CallerLimits{});
  EXPECT_EQ(table->Of("mallory"), CallerLimits{.requests = 1048576});
  EXPECT_EQ(Read("alice requests=1")->Of("mallory"), CallerLimits{});
  EXPECT_TRUE(Read("").ok());
}

TEST(CallerLinesTest, WhatIsWrongIsSaidWithItsLine) {
  for (const char* wrong :
       {"rqeuests=1", "requests", "requests=", "=1", "requests=0", "requests=-1", "requests=1x", "requests=1.5",
        "requests= 1", "requests=99999999999999999999", "requests=1048577", "bytes=999", "bytes=1G", "connections=0",
        "requests_per_second=0", "requests_per_second=1000001", "share_percent=0", "share_percent=101", "secret"}) {
    const std::string error = ErrorOf(absl::StrCat("bob requests=1\n\nalice ", wrong));
    EXPECT_TRUE(error.starts_with("line 3: expected ")) << wrong << ": " << error;
    EXPECT_EQ(error.find("secret"), std::string::npos);
  }
  EXPECT_EQ(ErrorOf("alice requests=1 bytes=1000 requests=2"), "line 1: has requests= twice");
  EXPECT_EQ(ErrorOf("alice requests=1\n\"alice\" bytes=1000"), "line 2: the name has a line already");
  EXPECT_EQ(ErrorOf("*\n*"), "line 2: the name has a line already");
  for (const std::string wrong :
       {"\"alice requests=1", "\"alice\"requests=1", "\"", "\"\"", "\"alice\\", "a\x01z", "\xc3\xa4"}) {
    EXPECT_TRUE(ErrorOf(wrong).starts_with("line 1: expected ")) << wrong;
  }
  EXPECT_FALSE(Read(std::string(257, 'a')).ok());
  EXPECT_TRUE(Read(std::string(256, 'a')).ok());
}

TEST(CallerLinesTest, LinesAreBounded) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) absl::StrAppend(&text, "caller", i, "\n");
  EXPECT_TRUE(Read(text).ok());
  EXPECT_TRUE(ErrorOf(text + "one more").starts_with("line 10001: "));
}

TEST(CallerLinesTest, NoBytesAreTooStrange) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 5000; ++i) {
    std::string text = "alice requests=1 bytes=1000\n\"b \\\\\" share_percent=9\n* requests_per_second=3\n";
    for (int changes = 0; changes < 4; ++changes) text[random() % text.size()] = static_cast<char>(random());
    const auto table = Read(text);
    if (!table.ok()) {
      EXPECT_TRUE(table.status().message().find("line ") == 0) << table.status();
    }
  }
}

TEST(CallerLimitsTableTest, WhatOverridesGoesFirst) {
  CallerLimitsTable table;
  table.Add("*", {.requests = 1, .share_percent = 10});
  table.Add("alice", {.requests = 2});
  table.Override("alice", {.share_percent = 80});
  table.Override("bob", {.share_percent = 90});
  EXPECT_EQ(table.Of("alice"), (CallerLimits{.requests = 2, .share_percent = 80}));
  EXPECT_EQ(table.Of("bob"), (CallerLimits{.requests = 1, .share_percent = 90}));
  EXPECT_EQ(table.Of("carol"), (CallerLimits{.requests = 1, .share_percent = 10}));
}

}  // namespace
}  // namespace prefixd
