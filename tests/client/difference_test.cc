// Whole differences: what goes over the wire, and what comes back.
#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <utility>
#include <vector>

#include "tests/client/fake_server.h"
#include "tests/client/sum_scan.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;

// The stream brings a difference to each chunk; the typed call is one message, with the options in its spec.
TEST(ClientDifference, UnaryAndStream) {
  FakeServer server;
  v1::DifferenceSpec seen;
  server.prefix.difference = [&](auto*, const v1::DifferenceRequest& request, v1::DifferenceResponse* response) {
    seen = request.spec();
    response->mutable_values()->mutable_inline_()->set_data(Data<int64_t>({3, 1, 2, 4}));
    return grpc::Status::OK;
  };
  server.prefix.stream_difference = [](auto*, DifferenceRpc* rpc) {
    int64_t last = 0;
    for (v1::DifferenceRequest request; rpc->Read(&request);) {
      std::vector<int64_t> values = Elements<int64_t>(request.values().inline_().data());
      for (int64_t& value : values) value -= std::exchange(last, value);
      v1::DifferenceResponse response;
      response.mutable_values()->mutable_inline_()->set_data(Data(values));
      rpc->Write(response);
    }
    return grpc::Status::OK;
  };
  Client client(server.address());
  const auto small = client.Difference<int64_t>({13, 14, 16, 20}, {.init = 10, .reverse = true});
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_THAT(small->values, ElementsAre(3, 1, 2, 4));
  EXPECT_EQ(seen.init().int64_value(), 10);
  EXPECT_TRUE(seen.reverse());
  EXPECT_EQ(seen.num_items(), 4u);

  std::vector<int64_t> values(2 * kUnaryItems + 5);
  std::iota(values.begin(), values.end(), 1);
  const auto large = client.Difference<int64_t>(values);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_TRUE(large->values == std::vector<int64_t>(values.size(), 1));
}

}  // namespace
}  // namespace prefixd::client
