// Each device once in a test program, a fresh lane for each test, and device arrays that notice stray writes.
//
//   using ScanTest = DeviceTest<OpParam>;
//   TEST_P(ScanTest, Example) {
//     DeviceArray<float> d_x(lane(), {1, 2, 3});
//     ...
//     ASSERT_TRUE(d_x.Read(&h_x));
//   }
//   PREFIXD_ON_EVERY_DEVICE(ScanTest, EveryOp);
#ifndef PREFIXD_TESTS_CONFORMANCE_HARNESS_H_
#define PREFIXD_TESTS_CONFORMANCE_HARNESS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/device.h"
#include "tests/conformance/data.h"
#include "tests/conformance/oracle.h"

namespace prefixd::conformance {

// The process's one device of this name: "cpu", with the instruction set that PREFIXD_TEST_CPU_ISA names (default: the
// widest), or "cuda" for the first card.
// Errors: NOT_FOUND if the name is "cuda", there is no card, and PREFIXD_REQUIRE_CUDA is not set, or if this CPU lacks
// the instruction set; else OpenDevice's.
absl::StatusOr<Device*> SharedDevice(const std::string& name);

// Checks a call of the suite that must not fail. Throws if it failed; the exception fails the test with the status.
void Require(const absl::Status& status);

// The algorithms that a device lists for a primitive, each with every value of its knobs.
std::vector<Algorithm> FormsOf(const Device& device, Primitive primitive);
template <class T>
T Require(absl::StatusOr<T> value) {
  Require(value.status());
  return *std::move(value);
}

// The byte in guard elements and in unwritten outputs. In each type, a value made of it is far outside every tolerance.
inline constexpr unsigned char kPoison = 0xfe;

template <class T>
T Poison() {
  T poison;
  std::memset(static_cast<void*>(&poison), kPoison, sizeof(T));
  return poison;
}

// A device array between guard elements. It owns the host's copy, which the lane may still read: keep it until the
// lane is synchronized.
template <class T>
class DeviceArray {
 public:
  // The array begins `offset` elements past a 256-byte boundary.
  DeviceArray(Lane& lane, const std::vector<T>& contents, size_t offset = 0)
      : lane_(lane), front_(kGuardBytes / sizeof(T) + offset), num_items_(contents.size()) {
    uploaded_.assign(front_ + num_items_ + kGuardBytes / sizeof(T), Poison<T>());
    std::copy(contents.begin(), contents.end(), uploaded_.begin() + front_);
    buffer_ = Require(lane_.Allocate(uploaded_.size() * sizeof(T)));
    Require(lane_.CopyToDevice(buffer_.data(), uploaded_.data(), uploaded_.size() * sizeof(T)));
  }
  static DeviceArray Poisoned(Lane& lane, size_t num_items, size_t offset = 0) {
    return DeviceArray(lane, std::vector<T>(num_items, Poison<T>()), offset);
  }

  T* data() const { return reinterpret_cast<T*>(buffer_.data()) + front_; }

  // Synchronizes and copies the array back. Fails if a guard element changed.
  testing::AssertionResult Read(std::vector<T>* out) {
    std::vector<T> all(uploaded_.size());
    Require(lane_.CopyToHost(all.data(), buffer_.data(), all.size() * sizeof(T)));
    Require(lane_.Synchronize());
    for (size_t i = 0; i < all.size(); ++i) {
      if (i == front_) i += num_items_;
      if (std::memcmp(&all[i], &uploaded_[i], sizeof(T)) != 0) {
        return testing::AssertionFailure() << "element " << static_cast<int64_t>(i - front_) << " of an array of "
                                           << num_items_ << " was written to";
      }
    }
    out->assign(all.begin() + front_, all.begin() + front_ + num_items_);
    return testing::AssertionSuccess();
  }

  // Fails if anything at all changed.
  testing::AssertionResult IsUntouched() {
    std::vector<T> now;
    if (auto guards = Read(&now); !guards) return guards;
    for (size_t i = 0; i < num_items_; ++i) {
      if (std::memcmp(&now[i], &uploaded_[front_ + i], sizeof(T)) != 0) {
        return testing::AssertionFailure() << "input element " << i << " was changed";
      }
    }
    return testing::AssertionSuccess();
  }

 private:
  static constexpr size_t kGuardBytes = 256;

  Lane& lane_;
  size_t front_;
  size_t num_items_;
  std::vector<T> uploaded_;
  Buffer buffer_;
};

// A value as a failure shows it: with its bits, because two NaNs, or +0 and -0, may look the same without them.
template <class T>
std::string Show(T value) {
  std::ostringstream text;
  text.precision(std::numeric_limits<T>::max_digits10);
  text << +value << " (0x" << std::hex << +std::bit_cast<BitsOf<T>>(value) << ")";  // +: a char prints as a number.
  return text.str();
}

template <class T>
testing::AssertionResult Mismatch(std::string_view what, size_t i, T got, const Expected<T>& want) {
  return testing::AssertionFailure() << what << "[" << i << "] is " << Show(got) << ", expected " << Show(want.value)
                                     << (want.error > 0 ? StrCat(" within ", static_cast<double>(want.error)) : "");
}

template <class T>
testing::AssertionResult AllAdmitted(std::string_view what, const std::vector<T>& got,
                                     const std::vector<Expected<T>>& want) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (!want[i].Admits(got[i])) return Mismatch(what, i, got[i], want[i]);
  }
  return testing::AssertionSuccess();
}

// Bit for bit.
template <class T>
testing::AssertionResult AreSame(const std::vector<T>& got, const std::vector<T>& want) {
  if (got.size() != want.size()) return testing::AssertionFailure() << got.size() << " items, not " << want.size();
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0) return Mismatch("out", i, got[i], Expected<T>{want[i]});
  }
  return testing::AssertionSuccess();
}

// Parameters of tests. `device` names the test's device. The other members become the test's name: see ParamName.
struct OpParam {
  std::string device;
  DType dtype = DType::kI32;
  DType out_dtype = DType::kI32;
  Op op = Op::kSum;
};
// A card casts elements to a wider type of the results by a launch of its own, but for sums.
inline uint64_t CastLaunches(const OpParam& param) {
  return param.device != "cpu" && param.dtype != param.out_dtype && param.op != Op::kSum ? 1 : 0;
}
struct DTypeParam {
  std::string device;
  DType dtype = DType::kI32;
};
// Whether tests of this parameter run only a random share of their cases, so that the suite stays quick. So do narrow
// types and wider outputs: they are two thirds of the list, and they use the same templates as the rest. So does
// log_add_exp, of which what is expected takes long to compute. So does all that runs once more: with an instruction
// set that is not the machine's widest, or under the address sanitizer, which takes four times as long.
bool TakesAShare(const OpParam& param);
bool TakesAShare(const DTypeParam& param);
struct DeviceParam {
  std::string device;
};
std::string ParamName(const OpParam& param);
std::string ParamName(const DTypeParam& param);
std::string ParamName(const DeviceParam& param);

// Shows a parameter by its name, not by its bytes.
template <class Param>
requires requires(const Param& param) { ParamName(param); }
void PrintTo(const Param& param, std::ostream* os) { *os << ParamName(param); }

// This device's parameters, one for each entry of the lists in kernels/types.h.
std::vector<OpParam> EveryOp(const std::string& device);
std::vector<DTypeParam> EveryDType(const std::string& device);
std::vector<DTypeParam> EveryFloatingDType(const std::string& device);
std::vector<DeviceParam> EveryDevice(const std::string& device);

// The device's algorithms for a primitive: those that serve the parameter's combination; without a parameter, all.
// Unstable algorithms are left out: they keep no order, so their answers can't be checked item by item.
std::vector<Algorithm> AlgorithmsOf(const Device& device, Primitive primitive, const OpParam& param);
std::vector<Algorithm> AlgorithmsOf(const Device& device, Primitive primitive);
// Whether it has those of the textbooks: a card has none in a build without yardsticks.
bool HasTextbooks(const Device& device);

// The running test's seed, from BaseSeed and the test's name. So a test does the same alone as it did among others.
uint64_t TestSeed();

template <class Param>
class DeviceTest : public testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    const auto device = SharedDevice(this->GetParam().device);
    // The message says what this machine lacks. PREFIXD_REQUIRE_CUDA makes a missing card a failure.
    if (absl::IsNotFound(device.status())) GTEST_SKIP() << device.status().message();
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *device;
    lane_ = Require(device_->CreateLane());
    this->RecordProperty("seed", std::to_string(BaseSeed()));
    trace_.emplace(__FILE__, __LINE__, "repeat with PREFIXD_TEST_SEED=" + std::to_string(BaseSeed()));
  }

  Device& device() { return *device_; }
  Lane& lane() { return *lane_; }
  Random& random() { return random_; }

  // Whether to run this case, one of many similar cases of this size.
  bool Takes(size_t size) {
    constexpr size_t kSmall = 5000;
    return !TakesAShare(this->GetParam()) || random_.OneIn(size > kSmall ? 16 : 4);
  }
  // The same for an algorithm. None runs above its limit. Those with a limit are quadratic, so few large cases run. The
  // textbooks' algorithms are many, and textbooks_test.cc covers them; here they run a share of the cases.
  bool Takes(Primitive primitive, const Algorithm& algorithm, size_t size) {
    constexpr size_t kQuick = 1500;
    if (!device_->CheckLength(primitive, algorithm, size).ok()) return false;
    const bool has_limit = !device_->CheckLength(primitive, algorithm, ~uint64_t{0}).ok();
    const bool is_default_or_cub = FollowsNumerics(algorithm) || algorithm.strategy == Strategy::kCub;
    return Takes(size) && (!has_limit || size < kQuick || random_.OneIn(32)) &&
           (is_default_or_cub || algorithm.strategy == Strategy::kSequential || random_.OneIn(8));
  }
  // A size of many tiles and several groups.
  size_t ManyTilesSize() {
    constexpr size_t kThreeGroupsAndABit = 3 * 131072 + 17;
    return TakesAShare(this->GetParam()) ? std::min(LargeSize(), kThreeGroupsAndABit) : LargeSize();
  }

 private:
  Device* device_ = nullptr;
  std::unique_ptr<Lane> lane_;
  Random random_{TestSeed()};
  std::optional<testing::ScopedTrace> trace_;
};

}  // namespace prefixd::conformance

// Instantiates a parameterized test as cpu/... and cuda/...; `params` is one of the functions above.
#define PREFIXD_ON_EVERY_DEVICE(test, params)                                       \
  INSTANTIATE_TEST_SUITE_P(cpu, test, ::testing::ValuesIn(params("cpu")),           \
                           [](const auto& info) { return ParamName(info.param); }); \
  INSTANTIATE_TEST_SUITE_P(cuda, test, ::testing::ValuesIn(params("cuda")),         \
                           [](const auto& info) { return ParamName(info.param); })

#endif  // PREFIXD_TESTS_CONFORMANCE_HARNESS_H_
