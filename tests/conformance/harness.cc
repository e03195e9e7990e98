#include "tests/conformance/harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/status.h"
#include "kernels/cuda/cuda_device.h"

namespace prefixd::conformance {
namespace {

class PrintSeed : public testing::Environment {
 public:
  void SetUp() override { std::printf("PREFIXD_TEST_SEED=%llu\n", static_cast<unsigned long long>(BaseSeed())); }
};
[[maybe_unused]] const testing::Environment* const kPrintSeed = testing::AddGlobalTestEnvironment(new PrintSeed);

constexpr char kCpuIsa[] = "PREFIXD_TEST_CPU_ISA";

absl::StatusOr<std::unique_ptr<Device>> Open(const std::string& name) {
  if (name == "cpu") {
    const char* const isa = std::getenv(kCpuIsa);
    if (isa == nullptr) return OpenDevice(name);
    auto device = OpenDevice(name, isa);
    if (absl::IsInvalidArgument(device.status())) return absl::NotFoundError(device.status().message());
    return device;
  }
  if (CudaDeviceCount() == 0 && std::getenv("PREFIXD_REQUIRE_CUDA") == nullptr) {
    return absl::NotFoundError("no CUDA device here; set PREFIXD_REQUIRE_CUDA to make that a failure");
  }
  return OpenDevice("cuda:0");
}

}  // namespace

absl::StatusOr<Device*> SharedDevice(const std::string& name) {
  // Never destroyed: a driver may be gone before a static's destructor runs.
  static auto& devices = *new std::map<std::string, absl::StatusOr<std::unique_ptr<Device>>>;
  auto found = devices.find(name);
  if (found == devices.end()) found = devices.emplace(name, Open(name)).first;
  if (!found->second.ok()) return found->second.status();
  return found->second->get();
}

void Require(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

std::vector<Algorithm> FormsOf(const Device& device, Primitive primitive) {
  std::vector<Algorithm> forms;
  for (const AlgorithmInfo& row : device.Algorithms()) {
    if (row.primitive != primitive) continue;
    for (int items = row.has_items_per_thread ? 1 : 0; items <= (row.has_items_per_thread ? kMaxItemsPerThread : 0);
         items *= 2) {
      for (int padding = 0; padding <= (row.has_padding ? 1 : 0); ++padding) {
        Algorithm form = row.algorithm;
        form.items_per_thread = static_cast<uint8_t>(items);
        form.padding = padding != 0;
        forms.push_back(form);
      }
      if (items == 0) break;
    }
  }
  return forms;
}

std::string ParamName(const OpParam& param) {
  const bool converts = param.out_dtype != param.dtype;
  return StrCat(Name(param.dtype), converts ? StrCat("_", Name(param.out_dtype)) : "", "_", Name(param.op));
}
std::string ParamName(const DTypeParam& param) { return std::string(Name(param.dtype)); }
std::string ParamName(const DeviceParam& param) { return param.device; }

namespace {

bool RunsOnceMore() {
#ifdef __SANITIZE_ADDRESS__
  return true;
#else
  return std::getenv(kCpuIsa) != nullptr;
#endif
}

}  // namespace

bool TakesAShare(const OpParam& param) {
  return param.out_dtype != param.dtype || SizeOf(param.dtype) < 4 || param.op == Op::kLogAddExp || RunsOnceMore();
}
bool TakesAShare(const DTypeParam& param) { return SizeOf(param.dtype) < 4 || RunsOnceMore(); }

std::vector<OpParam> EveryOp(const std::string& device) {
  std::vector<OpParam> params;
  const auto add = [&](DType dtype, DType out_dtype) {
    for (int i = 0; i < kNumOps; ++i) {
      const auto op = static_cast<Op>(i);
      if (IsSupported(Primitive::kScan, dtype, out_dtype, op)) params.push_back({device, dtype, out_dtype, op});
    }
  };
#define PREFIXD_ADD(name, type, out_name, out_type) add(DType::name, DType::out_name);
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_ADD)
#undef PREFIXD_ADD
  return params;
}

std::vector<DTypeParam> EveryDType(const std::string& device) {
  std::vector<DTypeParam> params;
#define PREFIXD_ADD(name, type) params.push_back({device, DType::name});
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_ADD)
#undef PREFIXD_ADD
  return params;
}

std::vector<DTypeParam> EveryFloatingDType(const std::string& device) {
  std::vector<DTypeParam> params = EveryDType(device);
  std::erase_if(params, [](const DTypeParam& param) { return !IsFloating(param.dtype); });
  return params;
}

std::vector<DeviceParam> EveryDevice(const std::string& device) { return {{device}}; }

std::vector<Algorithm> AlgorithmsOf(const Device& device, Primitive primitive) {
  // The instruction set matters to the defaults alone.
  const bool defaults_only = std::getenv(kCpuIsa) != nullptr && device.info().direct_bytes == DeviceInfo::kHostMemory;
  std::vector<Algorithm> algorithms;
  for (const AlgorithmInfo& row : device.Algorithms()) {
    if (row.primitive != primitive || !row.stable || (defaults_only && !FollowsNumerics(row.algorithm))) continue;
    algorithms.push_back(row.algorithm);
  }
  return algorithms;
}

bool HasTextbooks(const Device& device) {
  const auto naive = [](const AlgorithmInfo& row) { return row.algorithm == Algorithm{Strategy::kNaive}; };
  return std::ranges::any_of(device.Algorithms(), naive);
}

std::vector<Algorithm> AlgorithmsOf(const Device& device, Primitive primitive, const OpParam& param) {
  std::vector<Algorithm> algorithms = AlgorithmsOf(device, primitive);
  std::erase_if(algorithms, [&](const Algorithm& algorithm) {
    return !device.RowOf(primitive, algorithm).serves(param.dtype, param.out_dtype, param.op);
  });
  return algorithms;
}

uint64_t TestSeed() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a.
  for (const char c : StrCat(test->test_suite_name(), ".", test->name())) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return BaseSeed() ^ hash;
}

}  // namespace prefixd::conformance
