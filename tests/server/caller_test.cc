#include "server/rpc/caller.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace prefixd {
namespace {

std::string AddressNameOf(const std::string& address) {
  sockaddr_storage storage = {};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    storage.ss_family = AF_INET;
  } else if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    storage.ss_family = AF_INET6;
  }
  return AddressName(storage);
}

TEST(CallerTest, AnAddressIsAHostsOrAnIpv6Network) {
  EXPECT_EQ(AddressNameOf("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(AddressNameOf("::ffff:10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(AddressNameOf("2001:db8::1:2:3:4"), "2001:db8::/64");
  EXPECT_EQ(AddressNameOf(""), "");
}

TEST(CallerTest, AUserIsNoAddressAndNotAnybody) {
  EXPECT_EQ(UserName(0), "uid:0");
  EXPECT_EQ(UserName(std::numeric_limits<uid_t>::max()), "uid:4294967295");
  EXPECT_TRUE(IsUserName(UserName(1000)));
  for (const std::string& other : {std::string(kUnixCaller), AddressNameOf("10.0.0.1"), AddressNameOf("::1")}) {
    EXPECT_FALSE(IsUserName(other)) << other;
  }
}

}  // namespace
}  // namespace prefixd
