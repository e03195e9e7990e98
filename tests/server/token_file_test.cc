#include "server/rpc/token_file.h"

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace prefixd {
namespace {

// Digests of "alpha", "beta" and "".
constexpr char kAlpha[] = "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8";
constexpr char kBeta[] = "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753";
constexpr char kNothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string ParseError(const std::string& text) { return std::string(TokenTable::Parse(text).status().message()); }

TEST(TokenFileTest, ATokenHasTheNameOfItsLine) {
  const auto table =
      TokenTable::Parse(absl::StrCat("# comment\n\n  alice\t", kAlpha, "\r\nbob ", kBeta, "\nalice ", kNothing));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->NameOf("alpha"), "alice");
  EXPECT_EQ(table->NameOf("beta"), "bob");
  EXPECT_EQ(table->NameOf(""), "alice");
  for (const char* token : {"alph", "alpha ", "Alpha", kAlpha, "alice"}) EXPECT_EQ(table->NameOf(token), "") << token;
}

TEST(TokenFileTest, DigitsMayBeCapitals) {
  std::string digits = kAlpha;
  for (char& c : digits) c = static_cast<char>(toupper(c));
  EXPECT_EQ(TokenTable::Parse("alice " + digits)->NameOf("alpha"), "alice");
}

TEST(TokenFileTest, WhatIsWrongIsSaidWithItsLineAndWithoutItsText) {
  EXPECT_EQ(ParseError(absl::StrCat("alice ", kAlpha, "\nbob")), "line 2: expected a name and the SHA-256 of a token");
  EXPECT_NE(ParseError(absl::StrCat("alice ", kAlpha, " 5 6")).find("line 1"), std::string::npos);
  const std::string secret = ParseError("\nalice secret-token");
  EXPECT_NE(secret.find("line 2: expected a SHA-256"), std::string::npos) << secret;
  EXPECT_EQ(secret.find("secret-token"), std::string::npos) << secret;
  EXPECT_NE(ParseError(absl::StrCat("alice ", std::string(64, 'g'))).find("SHA-256"), std::string::npos);
  EXPECT_NE(ParseError(absl::StrCat("ali\x01"
                                    "ce ",
                                    kAlpha))
                .find("printable"),
            std::string::npos);
  EXPECT_NE(ParseError(absl::StrCat(std::string(257, 'a'), " ", kAlpha)).find("256"), std::string::npos);
  EXPECT_NE(ParseError("").find("no token"), std::string::npos);
  EXPECT_NE(ParseError("# alice\n").find("no token"), std::string::npos);
}

TEST(TokenFileTest, ANameMayHaveLimits) {
  const auto table = TokenTable::Parse(
      absl::StrCat("alice ", kAlpha, " share_percent=80 requests=5\nalice ", kNothing, "\nbob ", kBeta, " bytes=1000"),
      1000);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->NameOf("alpha"), "alice");
  EXPECT_EQ(table->limits().size(), 2u);
  EXPECT_EQ(table->limits().at("alice"), (CallerLimits{.requests = 5, .share_percent = 80}));
  EXPECT_EQ(table->limits().at("bob"), CallerLimits{.bytes = 1000});
  EXPECT_FALSE(TokenTable::Parse(absl::StrCat("bob ", kBeta, " bytes=1000"), 1001).ok());
  EXPECT_EQ(ParseError(absl::StrCat("alice ", kAlpha, " requests=5\n#\nalice ", kBeta, " requests=5")), "");
  EXPECT_EQ(ParseError(absl::StrCat("alice ", kAlpha, " requests=5\n#\nalice ", kBeta, " requests=6")),
            "line 3: the name has other limits in an earlier line");
}

TEST(TokenFileTest, NoBytesAreTooStrange) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    std::string text = absl::StrCat("alice ", kAlpha, "\nbob ", kBeta, "\n");
    for (int changes = 0; changes < 4; ++changes) text[random() % text.size()] = static_cast<char>(random());
    const auto table = TokenTable::Parse(text);
    EXPECT_EQ(table.ok() ? table->NameOf("gamma") : "", "");
  }
}

TEST(TokenFileTest, NamesArePrintableAndBounded) {
  EXPECT_TRUE(IsCallerName("CN=alice,O=tests"));
  EXPECT_TRUE(IsCallerName("a b"));
  EXPECT_TRUE(IsCallerName(std::string(256, 'a')));
  for (const std::string& name :
       {std::string(), std::string(257, 'a'), std::string(" a"), std::string("a "), std::string("a\nb"),
        std::string("\xc3\xa4"), std::string("a\0b", 3), std::string("\x7f")}) {
    EXPECT_FALSE(IsCallerName(name)) << name;
  }
}

}  // namespace
}  // namespace prefixd
