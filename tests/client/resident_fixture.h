// A client of a real server in this process, for tests of calls on resident arrays: on a card where there is one, else
// on the CPU.
#ifndef PREFIXD_TESTS_CLIENT_RESIDENT_FIXTURE_H_
#define PREFIXD_TESTS_CLIENT_RESIDENT_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "kernels/device.h"
#include "kernels/types.h"
#include "server/options.h"
#include "server/server.h"

namespace prefixd::client {

// A message's worth of f32 and more, not a multiple of anything.
inline constexpr size_t kLong = 300'007;

class ResidentTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Options options;
    options.listen = {"127.0.0.1:0"};
    options.max_connections = 64;
    absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice("auto", "auto");
    ASSERT_TRUE(device.ok()) << device.status();
    auto server = prefixd::Server::Start(options, *std::move(device), [](auto) {});
    ASSERT_TRUE(server.ok()) << server.status();
    g_server = std::move(*server).release();
  }
  static void TearDownTestSuite() {
    delete g_server;
    g_server = nullptr;
  }

  static std::string Address() { return absl::StrCat("127.0.0.1:", g_server->ports()[0]); }

  template <class T>
  static std::vector<T> Values(size_t count) {
    std::mt19937_64 random(count);
    std::vector<T> values(count);
    for (T& value : values) {
      if constexpr (kIsFloating<T>) {
        value = static_cast<T>(std::normal_distribution<double>()(random));
      } else {
        value = static_cast<T>(random());
      }
    }
    return values;
  }

  static inline prefixd::Server* g_server = nullptr;
  Client client_{Address()};
};

template <class T>
std::string Bits(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace prefixd::client

#endif  // PREFIXD_TESTS_CLIENT_RESIDENT_FIXTURE_H_
