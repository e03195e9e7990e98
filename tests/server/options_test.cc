#include "server/options.h"

#include <stdlib.h>

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace prefixd {
namespace {

std::variant<Options, int> Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "prefixd");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  auto parsed = ParseOptions(static_cast<int>(argv.size()), argv.data());
  testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
  return parsed;
}

int ExitCodeOf(std::vector<std::string> arguments) {
  const auto parsed = Parse(std::move(arguments));
  return std::holds_alternative<int>(parsed) ? std::get<int>(parsed) : -1;
}

TEST(OptionsTest, DefaultsAreLoopbackAndBounded) {
  const Options options = std::get<Options>(Parse({}));
  EXPECT_EQ(options.listen, std::vector<std::string>{"127.0.0.1:50051"});
  EXPECT_EQ(options.device, "auto");
  EXPECT_GT(options.max_requests, 0u);
}

TEST(OptionsTest, FlagsWinOverTheEnvironment) {
  setenv("PREFIXD_LANES", "7", 1);
  setenv("PREFIXD_LISTEN", "127.0.0.1:1,unix:/tmp/x", 1);
  EXPECT_EQ(std::get<Options>(Parse({})).lanes, 7);
  EXPECT_EQ(std::get<Options>(Parse({})).listen, (std::vector<std::string>{"127.0.0.1:1", "unix:/tmp/x"}));
  EXPECT_EQ(std::get<Options>(Parse({"--lanes", "3"})).lanes, 3);
  unsetenv("PREFIXD_LANES");
  unsetenv("PREFIXD_LISTEN");
}

// The exit code with one variable in the environment, and what is said.
std::pair<int, std::string> WithVariable(const char* name, const char* value) {
  setenv(name, value, 1);
  testing::internal::CaptureStderr();
  std::string program = "prefixd";
  char* argv[] = {program.data()};
  const auto parsed = ParseOptions(1, argv);
  unsetenv(name);
  return {std::holds_alternative<int>(parsed) ? std::get<int>(parsed) : -1, testing::internal::GetCapturedStderr()};
}

TEST(OptionsTest, AMisspeltVariableIsRefusedWithTheNearestName) {
  const auto [code, message] = WithVariable("PREFIXD_LANEZ", "8");
  EXPECT_EQ(code, kExitUsage);
  EXPECT_THAT(message, testing::HasSubstr("did you mean PREFIXD_LANES?"));
  EXPECT_THAT(WithVariable("PREFIXD_DRAIN_TIMEOUT", "8").second,
              testing::HasSubstr("did you mean PREFIXD_DRAIN_TIMEOUT_SECONDS?"));
}

TEST(OptionsTest, AVariableThatSaysNothingIsRefused) {
  const auto [code, message] = WithVariable("PREFIXD_LISTEN", ",");
  EXPECT_EQ(code, kExitUsage);
  EXPECT_THAT(message, testing::HasSubstr("PREFIXD_LISTEN is set to ','"));
  EXPECT_EQ(WithVariable("PREFIXD_LISTEN", "").first, -1);  // What compose makes of a variable that is not set.
}

TEST(OptionsTest, VariablesOfOthersAreLeftAlone) {
  for (const char* name :
       {"PREFIXD_SERVER", "PREFIXD_SERVICE_HOST", "PREFIXD_SERVICE_PORT", "PREFIXD_SERVICE_PORT_GRPC", "PREFIXD_PORT",
        "PREFIXD_PORT_50051_TCP", "PREFIXD_PORT_50051_TCP_ADDR", "PREFIXD_PUBLIC_SERVICE_HOST"}) {
    EXPECT_EQ(WithVariable(name, "tcp://10.0.0.1:50051").first, -1) << name;
  }
  EXPECT_EQ(WithVariable("PREFIXD_PORT", "50051").first, kExitUsage);  // Somebody who takes it for ours.
}

TEST(OptionsTest, BenchmarksCanBeSwitchedOff) {
  EXPECT_FALSE(std::get<Options>(Parse({})).no_benchmark);
  EXPECT_TRUE(std::get<Options>(Parse({"--no-benchmark"})).no_benchmark);
  setenv("PREFIXD_NO_BENCHMARK", "1", 1);
  EXPECT_TRUE(std::get<Options>(Parse({})).no_benchmark);
  unsetenv("PREFIXD_NO_BENCHMARK");
  EXPECT_TRUE(std::get<Options>(Parse({"--benchmark"})).benchmark);
  EXPECT_EQ(ExitCodeOf({"--benchmark", "--no-benchmark"}), kExitUsage);
  EXPECT_EQ(std::get<Options>(Parse({"--max-benchmark-bytes", "4096"})).max_benchmark_bytes, 4096u);
}

TEST(OptionsTest, ListenIsRepeatable) {
  EXPECT_EQ(std::get<Options>(Parse({"--listen", "127.0.0.1:0", "--listen", "unix:/tmp/x"})).listen.size(), 2u);
}

// An address without a port would mean port 443.
TEST(OptionsTest, ListenNeedsAPort) {
  for (const char* address :
       {"127.0.0.1:0", "localhost:65535", "[::1]:50051", "example.org:1", "unix:x", "unix:///x"}) {
    EXPECT_EQ(ExitCodeOf({"--listen", address}), -1) << address;
  }
  for (const char* address : {"localhost", "", ":1", "localhost:", "localhost:65536", "localhost:-1", "localhost:1x",
                              "::1", "::1:5", "unix:"}) {
    EXPECT_EQ(ExitCodeOf({"--listen", address}), kExitUsage) << address;
  }
}

TEST(OptionsTest, MetricsAreOffAndAPortAloneIsOneOfLoopback) {
  EXPECT_EQ(std::get<Options>(Parse({})).metrics_listen, "");
  for (const auto& [said, meant] : {std::pair("9464", "127.0.0.1:9464"), std::pair("0", "127.0.0.1:0"),
                                    std::pair("[::1]:9464", "[::1]:9464"), std::pair("0.0.0.0:1", "0.0.0.0:1")}) {
    EXPECT_EQ(std::get<Options>(Parse({"--metrics-listen", said})).metrics_listen, meant);
  }
  EXPECT_EQ(std::get<Options>(Parse({"--metrics-listen", "0", "--metrics-callers", "5"})).metrics_callers, 5u);
  EXPECT_EQ(ExitCodeOf({"--metrics-callers", "5"}), kExitUsage);  // There are no metrics.
  for (const char* address : {"", "65536", "-1", "::1", "localhost", ":9464", "9464x", "unix:/tmp/x"}) {
    EXPECT_EQ(ExitCodeOf({"--metrics-listen", address}), kExitUsage) << address;
  }
}

TEST(OptionsTest, WrongUsageExitsWithTwo) {
  EXPECT_EQ(ExitCodeOf({"--no-such-flag"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({"--device", "tpu"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({"--device", "cuda:"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({"--device", "cuda:-1"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({"--algorithms", "naive"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({"--lanes", "0"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({"--lanes", "many"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({"--max-message-bytes", "1"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({"--max-request-bytes", "1048576"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({"--max-request-bytes", "16777215"}), kExitUsage);  // One byte less than a stream may hold.
  EXPECT_EQ(ExitCodeOf({"--max-request-bytes", "16777216"}), -1);
  EXPECT_EQ(ExitCodeOf({"--listen", "unix:/tmp/x", "--port-file", "/tmp/y"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({"--log-level", "loud"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({"--log-format", "xml"}), kExitUsage);
  EXPECT_EQ(ExitCodeOf({"stray"}), kExitUsage);
}

TEST(OptionsTest, HelpAndVersionExitWithZero) {
  EXPECT_EQ(ExitCodeOf({"--help"}), kExitOk);
  EXPECT_EQ(ExitCodeOf({"--version"}), kExitOk);
}

}  // namespace
}  // namespace prefixd
