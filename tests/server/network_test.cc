#include "server/rpc/network.h"

#include <string>

#include "gtest/gtest.h"

namespace prefixd {
namespace {

bool Has(const std::string& network, const std::string& peer) { return Network::Parse(network).value().Has(peer); }

TEST(NetworkTest, ANetworkHasTheAddressesWithItsFirstBits) {
  EXPECT_TRUE(Has("10.0.0.7", "ipv4:10.0.0.7:4242"));
  EXPECT_FALSE(Has("10.0.0.7", "ipv4:10.0.0.6:4242"));
  EXPECT_TRUE(Has("10.0.0.4/30", "ipv4:10.0.0.7:1"));
  EXPECT_FALSE(Has("10.0.0.4/30", "ipv4:10.0.0.8:1"));
  EXPECT_TRUE(Has("0.0.0.0/0", "ipv4:1.2.3.4:1"));
  EXPECT_FALSE(Has("0.0.0.0/0", "ipv6:%5B2001:db8::1%5D:1"));
  EXPECT_TRUE(Has("2001:db8::/33", "ipv6:%5B2001:db8:7fff::1%5D:4242"));
  EXPECT_FALSE(Has("2001:db8::/33", "ipv6:%5B2001:db8:8000::1%5D:4242"));
  EXPECT_TRUE(Has("fe80::/10", "ipv6:%5Bfe80::1%25eth0%5D:4242"));
  EXPECT_TRUE(Has("::1", "ipv6:[::1]:4242"));
}

TEST(NetworkTest, AnIpv4AddressIsTheSameOnASocketForBoth) {
  EXPECT_TRUE(Has("10.0.0.0/8", "ipv6:%5B::ffff:10.1.2.3%5D:4242"));
  EXPECT_FALSE(Has("10.0.0.0/8", "ipv6:%5B::ffff:11.1.2.3%5D:4242"));
}

TEST(NetworkTest, UnixSocketsAreInUnixAlone) {
  EXPECT_TRUE(Has("unix", "unix:"));
  EXPECT_TRUE(Has("unix", "unix:/run/prefixd.sock"));
  EXPECT_FALSE(Has("unix", "ipv4:127.0.0.1:1"));
  EXPECT_FALSE(Has("::/0", "unix:"));
}

TEST(NetworkTest, WhatIsNoPeerIsInNoNetwork) {
  for (const char* peer : {"", "ipv4:", "ipv6:", "ipv4:host:1", "dns:10.0.0.1:1"}) {
    EXPECT_FALSE(Has("::/0", peer)) << peer;
  }
}

TEST(NetworkTest, WhatIsNoNetworkIsNoNetwork) {
  for (const char* text : {"", "/8", "10.0.0.1/", "10.0.0.1/33", "10.0.0.1/-1", "10.0.0.1/8x", "::1/129", "10.0.0",
                           "host", "unix/0", "10.0.0.1/8/8", "10.0.0.1:80"}) {
    EXPECT_FALSE(Network::Parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace prefixd
