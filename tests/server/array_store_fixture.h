// A store of resident arrays in tests: callers, a clock that the test moves, and a lane for the arrays' memory.
#ifndef PREFIXD_TESTS_SERVER_ARRAY_STORE_FIXTURE_H_
#define PREFIXD_TESTS_SERVER_ARRAY_STORE_FIXTURE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/device.h"
#include "server/arrays/array_store.h"
#include "tests/server/callers.h"

namespace prefixd {

inline constexpr uint64_t kPlenty = uint64_t{1} << 30;
inline constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

// Waits until the store has so many arrays: its thread may still hold one that it has taken away. Whether it had them
// within a limit, for hangs.
inline bool WaitForArrays(const ArrayStore& store, uint64_t num_arrays) {
  for (int i = 0; i < 20'000; ++i) {
    if (store.in_use().requests == num_arrays) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// A store whose clock the test moves, and a lane for its arrays' memory.
class ArrayStoreTest : public ::testing::Test {
 protected:
  // One caller may have all.
  static ArrayStore::Limits Whole(uint64_t arrays = 100, uint64_t bytes = kPlenty) {
    return {.arrays = arrays, .bytes = bytes, .share_percent = 100};
  }

  void Open(const ArrayStore::Limits& limits) {
    store_.emplace(limits, [this] { return absl::FromUnixSeconds(seconds_); });
  }

  // Elements are i32.
  absl::StatusOr<std::shared_ptr<ResidentArray>> Reserve(const Caller& caller, std::vector<uint64_t> shape,
                                                         const Lifetime& lifetime = {}) {
    return store_->Reserve(caller, {.dtype = DType::kI32, .shape = std::move(shape), .lifetime = lifetime});
  }
  absl::StatusOr<ArrayInfo> TryMake(const Caller& caller, uint64_t num_items, const Lifetime& lifetime = {}) {
    PREFIXD_ASSIGN_OR_RETURN(std::shared_ptr<ResidentArray> array, Reserve(caller, {num_items}, lifetime));
    PREFIXD_ASSIGN_OR_RETURN(Buffer memory, lane_->Allocate(array->size_bytes()));
    array->TakeMemory(std::move(memory));
    return store_->Publish(std::move(array));
  }
  // The name of a new array; empty if there is none.
  std::string Make(const Caller& caller, uint64_t num_items = 10, const Lifetime& lifetime = {}) {
    const auto info = TryMake(caller, num_items, lifetime);
    EXPECT_TRUE(info.ok()) << info.status();
    return info.ok() ? info->name : "";
  }
  absl::StatusOr<ArrayUse> Use(const Caller& caller, const std::string& name, Access access = Access::kRead,
                               uint64_t first_item = 0, std::optional<uint64_t> num_items = {}) {
    return store_->Use(caller, {.name = name, .first_item = first_item, .num_items = num_items}, access, "values");
  }
  std::string ReasonOfGet(const Caller& caller, const std::string& name) {
    return ErrorReason(store_->Get(caller, name).status());
  }

  const std::unique_ptr<Device> device_ = OpenCpuDevice();
  const std::unique_ptr<Lane> lane_ = *device_->CreateLane();
  std::atomic<int64_t> seconds_{1'000'000};
  std::optional<ArrayStore> store_;
};

}  // namespace prefixd

#endif  // PREFIXD_TESTS_SERVER_ARRAY_STORE_FIXTURE_H_
