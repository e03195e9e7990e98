// A client of a fake server, for tests of resident arrays.
#ifndef PREFIXD_TESTS_CLIENT_ARRAY_FIXTURE_H_
#define PREFIXD_TESTS_CLIENT_ARRAY_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "client/array.h"
#include "client/client.h"
#include "tests/client/fake_server.h"

namespace prefixd::client {

inline std::vector<int32_t> Numbers(size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<int32_t> numbers(count);
  for (int32_t& number : numbers) number = static_cast<int32_t>(random());
  return numbers;
}

inline grpc::Status Unavailable() { return {grpc::StatusCode::UNAVAILABLE, "gone"}; }

class ArrayTest : public ::testing::Test {
 protected:
  Array Made(uint64_t num_items) {
    absl::StatusOr<Array> array = client_.CreateArray({.dtype = DType::kI32, .shape = {num_items}});
    EXPECT_TRUE(array.ok()) << array.status();
    return *std::move(array);
  }

  FakeServer server_;
  Client client_{server_.address()};
};

}  // namespace prefixd::client

#endif  // PREFIXD_TESTS_CLIENT_ARRAY_FIXTURE_H_
