#include "server/rpc/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "gtest/gtest.h"
#include "server/rpc/caller.h"

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

std::string NameOf(int family, const char* text) {
  sockaddr_storage address = {};
  address.ss_family = static_cast<sa_family_t>(family);
  void* const to = family == AF_INET ? static_cast<void*>(&reinterpret_cast<sockaddr_in&>(address).sin_addr)
                                     : &reinterpret_cast<sockaddr_in6&>(address).sin6_addr;
  EXPECT_EQ(inet_pton(family, text, to), 1);
  return AddressName(address);
}

TEST(AddressNameTest, IsThatOfAHost) {
  EXPECT_EQ(NameOf(AF_INET, "10.1.2.3"), "10.1.2.3");
  EXPECT_EQ(NameOf(AF_INET6, "::ffff:10.1.2.3"), "10.1.2.3");  // On a socket for both.
  EXPECT_EQ(NameOf(AF_INET6, "2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(NameOf(AF_INET6, "::1"), "::/64");
  EXPECT_EQ(AddressName({.ss_family = AF_UNIX}), "");
}

}  // namespace
}  // namespace prefixd
