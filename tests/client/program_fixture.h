// Programs that C++ writes, against a real server in this process, on random values.
#ifndef PREFIXD_TESTS_CLIENT_PROGRAM_FIXTURE_H_
#define PREFIXD_TESTS_CLIENT_PROGRAM_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

#include "client/client.h"
#include "client/program.h"
#include "tests/client/resident_fixture.h"

namespace prefixd::client {

class ProgramTest : public ResidentTest {
 protected:
  void SetUp() override {
    const char* const text = std::getenv("PREFIXD_TEST_SEED");
    const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device()();
    std::printf("PREFIXD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    random_.seed(seed);
  }

  // Whole numbers, so that floats have no roundings in which a loop and a tree differ.
  template <class T>
  std::vector<T> Values(size_t count, int low = -50, int high = 50) {
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(std::uniform_int_distribution<int>(low, high)(random_));
    return values;
  }

  // An odd number of elements.
  size_t Count() { return 1 + 2 * std::uniform_int_distribution<size_t>(0, 700)(random_); }

  ProgramResult Run(const Program& program) {
    absl::StatusOr<ProgramResult> result = client_.Run(program);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {{}, {}, 0, {}};
    return *std::move(result);
  }

  // What is not there is an error of the test, and no crash.
  template <class T>
  static std::vector<T> ValuesOf(const ProgramResult& result, Term<T> term) {
    absl::StatusOr<std::vector<T>> values = result.Values(term);
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? *std::move(values) : std::vector<T>();
  }

  template <class T>
  Array Uploaded(const std::vector<T>& values) {
    absl::StatusOr<Array> array = client_.CreateArray<T>(values);
    EXPECT_TRUE(array.ok()) << array.status();
    return array.ok() ? *std::move(array) : Array();
  }

  absl::Status RunStatus(const Program& program) { return client_.Run(program).status(); }

  std::mt19937_64 random_;
};

// Each element from those of one or two arrays.
template <class Out, class T, class F>
std::vector<Out> Map(const std::vector<T>& values, F f) {
  std::vector<Out> out;
  for (const T& value : values) out.push_back(static_cast<Out>(f(value)));
  return out;
}
template <class Out, class T, class F>
std::vector<Out> Map(const std::vector<T>& left, const std::vector<T>& right, F f) {
  std::vector<Out> out;
  for (size_t i = 0; i < left.size(); ++i) out.push_back(static_cast<Out>(f(left[i], right[i])));
  return out;
}

}  // namespace prefixd::client

#endif  // PREFIXD_TESTS_CLIENT_PROGRAM_FIXTURE_H_
