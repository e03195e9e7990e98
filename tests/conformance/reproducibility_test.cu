// One value: a hundred runs, with and without a kernel that takes most of the card, cut into chunks or not, replayed
// from a captured graph, on CUDA and on the CPU. And they end: nothing hangs when few blocks find room.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "kernels/association.h"
#include "kernels/cuda/launch.h"
#include "tests/conformance/harness.h"

namespace prefixd::conformance {
namespace {

void Check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

// In cycles: some 10 s, and 50 ms.
constexpr long long kLongDisturbance = 20'000'000'000;
constexpr long long kShortDisturbance = 100'000'000;

__global__ void OccupyKernel(const volatile int* stop, long long cycles) {
  const long long begin = clock64();
  while (*stop == 0 && clock64() - begin < cycles) {
  }
}

// Holds num_blocks multiprocessors, each with all of its shared memory, while it lives, but no longer than the cycles.
class Disturbance {
 public:
  explicit Disturbance(int num_blocks, long long cycles = kLongDisturbance) {
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    Check(cudaHostAlloc(&h_stop_, sizeof(int), cudaHostAllocMapped));
    *h_stop_ = 0;
    int shared_bytes = 0;
    Check(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    Check(cudaFuncSetAttribute(OccupyKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    OccupyKernel<<<num_blocks, 1024, shared_bytes, stream_>>>(h_stop_, cycles);
    Check(cudaGetLastError());
  }
  ~Disturbance() {
    *const_cast<volatile int*>(h_stop_) = 1;
    cudaStreamSynchronize(stream_);
    cudaFreeHost(h_stop_);
    cudaStreamDestroy(stream_);
  }

 private:
  cudaStream_t stream_ = nullptr;
  int* h_stop_ = nullptr;
};

int NumMultiprocessors() {
  int count = 0;
  Check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

uint64_t Hash(const void* data, size_t size_bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < size_bytes; ++i) {
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
  }
  return hash;
}
template <class T>
uint64_t Hash(const std::vector<T>& values) {
  return Hash(values.data(), values.size() * sizeof(T));
}

// A scan and a reduce of the same array; a chunk is a number of items.
template <class T>
class Work {
 public:
  Work(Lane& lane, std::vector<T> in, Op op)
      : lane_(lane),
        op_(op),
        d_in_(lane, in),
        d_out_(DeviceArray<T>::Poisoned(lane, in.size())),
        d_carry_(lane, std::vector<T>(1)),
        d_state_(lane, std::vector<ReduceState>(1)),
        size_(in.size()) {}

  template <class NextChunk>
  uint64_t Scan(ScanKind kind, NextChunk next_chunk) {
    for (size_t begin = 0; begin < size_;) {
      ScanArgs args;
      args.dtype = kDTypeOf<T>;
      args.op = op_;
      args.kind = kind;
      args.in = d_in_.data() + begin;
      args.out = d_out_.data() + begin;
      args.num_items = next_chunk(begin);
      args.init = ScanStart(op_, kDTypeOf<T>, kind);
      args.carry_in = begin == 0 ? nullptr : d_carry_.data();
      args.carry_out = d_carry_.data();
      Require(lane_.Scan(args));
      begin += args.num_items;
    }
    std::vector<T> out;
    EXPECT_TRUE(d_out_.Read(&out));
    return Hash(out);
  }
  uint64_t Scan(ScanKind kind) {
    return Scan(kind, [this](size_t) { return size_; });
  }

  template <class NextChunk>
  uint64_t Reduce(NextChunk next_chunk) {
    for (size_t begin = 0; begin < size_;) {
      ReduceArgs args;
      args.dtype = kDTypeOf<T>;
      args.op = op_;
      args.in = d_in_.data() + begin;
      args.num_items = next_chunk(begin);
      args.first_item = begin;
      args.init = {Neutral(op_, kDTypeOf<T>), ReduceState::kNothing};
      args.state_in = begin == 0 ? nullptr : d_state_.data();
      args.state_out = d_state_.data();
      Require(lane_.Reduce(args));
      begin += args.num_items;
    }
    std::vector<ReduceState> state;
    EXPECT_TRUE(d_state_.Read(&state));
    return Hash(&state[0].value, sizeof(T)) ^ state[0].position;
  }
  uint64_t Reduce() {
    return Reduce([this](size_t) { return size_; });
  }

 private:
  Lane& lane_;
  const Op op_;
  DeviceArray<T> d_in_;
  DeviceArray<T> d_out_;
  DeviceArray<T> d_carry_;
  DeviceArray<ReduceState> d_state_;
  const size_t size_;
};

// A launch context without a lane.
class OwnContext {
 public:
  OwnContext() {
    int shared_bytes = 0;
    int major = 0;
    Check(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    Check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    Check(cudaDeviceGetAttribute(&context_.num_multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    context_.bulk_shared_bytes = major >= 9 ? shared_bytes : 0;
    Check(cudaStreamCreateWithFlags(&context_.stream, cudaStreamNonBlocking));
    Check(cudaMalloc(&context_.d_control, sizeof(cuda::TileControl)));
    Check(cudaMemset(context_.d_control, 0, sizeof(cuda::TileControl)));
  }
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;
  ~OwnContext() {
    context_.states.Free(context_.stream);
    cudaStreamSynchronize(context_.stream);
    cudaFree(context_.d_control);
    cudaStreamDestroy(context_.stream);
  }

  cuda::LaunchContext* operator->() { return &context_; }
  cuda::LaunchContext* get() { return &context_; }

 private:
  cuda::LaunchContext context_;
};

class ReproducibilityTest : public DeviceTest<DeviceParam> {
 protected:
  // One size for each of the kernels: a block, a block a tile, the ring.
  std::vector<size_t> OneSizeEach() {
    if (SmallSizesOnly()) return {3001, 5000};
    return {3001, 50'021, 4 * static_cast<size_t>(kGroupItems) + 1 + random().Below(kGroupItems)};
  }
};

TEST_P(ReproducibilityTest, HundredRunsOneValue) {
  for (const size_t size : OneSizeEach()) {
    SCOPED_TRACE(testing::Message() << size << " items");
    const auto in = MakeInput<float>(Op::kSum, Data::kRandom, size, random());
    std::set<uint64_t> inclusive, exclusive, reduced;
    // The CPU's are among them.
    std::unique_ptr<Lane> cpu_lane = Require(Require(SharedDevice("cpu"))->CreateLane());
    Work<float> on_cpu(*cpu_lane, in, Op::kSum);
    inclusive.insert(on_cpu.Scan(ScanKind::kInclusive));
    exclusive.insert(on_cpu.Scan(ScanKind::kExclusive));
    reduced.insert(on_cpu.Reduce());
    Work<float> on_card(lane(), in, Op::kSum);
    for (int run = 0; run < 100; ++run) {
      std::unique_ptr<Disturbance> disturbance;
      if (run % 2 == 1) {
        disturbance = std::make_unique<Disturbance>(1 + static_cast<int>(random().Below(NumMultiprocessors() - 1)));
      }
      inclusive.insert(on_card.Scan(ScanKind::kInclusive));
      if (run % 10 == 0) exclusive.insert(on_card.Scan(ScanKind::kExclusive));
      reduced.insert(on_card.Reduce());
    }
    EXPECT_EQ(inclusive.size(), 1u);
    EXPECT_EQ(exclusive.size(), 1u);
    EXPECT_EQ(reduced.size(), 1u);
  }
}

TEST_P(ReproducibilityTest, CutsBetweenGroupsOneValue) {
  if (SmallSizesOnly()) GTEST_SKIP() << "a group is larger than the small sizes that were asked for";
  const size_t size = 9 * kGroupItems + 1 + random().Below(kGroupItems);
  SCOPED_TRACE(testing::Message() << size << " items");
  const auto in = MakeInput<double>(Op::kSum, Data::kRandom, size, random());
  const auto next_chunk = [&](size_t begin) {
    return std::min(size - begin, (1 + random().Below(4)) * static_cast<size_t>(kGroupItems));
  };
  std::unique_ptr<Lane> cpu_lane = Require(Require(SharedDevice("cpu"))->CreateLane());
  std::set<uint64_t> scanned, reduced;
  for (Lane* some_lane : {&lane(), cpu_lane.get()}) {
    Work<double> work(*some_lane, in, Op::kSum);
    scanned.insert(work.Scan(ScanKind::kExclusive));
    reduced.insert(work.Reduce());
    for (int run = 0; run < 5; ++run) {
      scanned.insert(work.Scan(ScanKind::kExclusive, next_chunk));
      reduced.insert(work.Reduce(next_chunk));
    }
  }
  EXPECT_EQ(scanned.size(), 1u);
  EXPECT_EQ(reduced.size(), 1u);
}

// Far more tiles than fit, and room for four blocks of the ring, or for one.
TEST_P(ReproducibilityTest, EndsWhereFewBlocksFindRoom) {
  if (SmallSizesOnly()) GTEST_SKIP() << "small sizes have few tiles";
  const size_t size = (size_t{1} << 24) + random().Below(1 << 20);
  const auto in = MakeInput<float>(Op::kSum, Data::kRandom, size, random());
  Work<float> work(lane(), in, Op::kSum);
  const uint64_t scanned = work.Scan(ScanKind::kInclusive);
  const uint64_t reduced = work.Reduce();
  for (const int num_left : {4, 1}) {
    SCOPED_TRACE(testing::Message() << num_left << " multiprocessors are left");
    const Disturbance disturbance(NumMultiprocessors() - num_left);
    EXPECT_EQ(work.Scan(ScanKind::kInclusive), scanned);
    EXPECT_EQ(work.Reduce(), reduced);
  }
}

// The textbooks that wait for other blocks, with far more tiles than fit, by some tile scan. The chained ones end while
// few blocks find room; grid_sync, all of whose blocks start together, when it is given room again.
TEST_P(ReproducibilityTest, TextbooksEndWhereFewBlocksFindRoom) {
  if (SmallSizesOnly()) GTEST_SKIP() << "small sizes have few tiles";
  if (!HasTextbooks(device())) GTEST_SKIP() << "this build has no textbooks: PREFIXD_YARDSTICKS is OFF";
  const size_t size = (size_t{1} << 20) + random().Below(1 << 20);
  std::vector<int32_t> in(size), want(size);
  for (int32_t& v : in) v = static_cast<int32_t>(random().Below(1000)) - 500;
  std::partial_sum(in.begin(), in.end(), want.begin());
  DeviceArray<int32_t> d_in(lane(), in);
  for (const Strategy strategy : {Strategy::kChainedSerial, Strategy::kChained, Strategy::kGridSync}) {
    ScanArgs args;
    args.algorithm = {strategy, static_cast<TileScan>(1 + random().Below(kNumTileScans - 1))};
    SCOPED_TRACE(Name(args.algorithm));
    auto d_out = DeviceArray<int32_t>::Poisoned(lane(), size);
    args.in = d_in.data();
    args.out = d_out.data();
    args.num_items = size;
    // Once without: a kernel's code is loaded at its first launch, and that waits for what runs.
    Require(lane().Scan(args));
    Require(lane().Synchronize());
    const long long cycles = strategy == Strategy::kGridSync ? kShortDisturbance : kLongDisturbance;
    const Disturbance disturbance(NumMultiprocessors() - (random().OneIn(2) ? 1 : 4), cycles);
    Require(lane().Scan(args));
    Require(lane().Synchronize());
    std::vector<int32_t> out;
    ASSERT_TRUE(d_out.Read(&out));
    ASSERT_EQ(out, want);
  }
}

// A captured launch can be replayed: nothing about it changes from run to run but what is in device memory.
TEST_P(ReproducibilityTest, CapturedInAGraph) {
  for (const size_t size : OneSizeEach()) {
    SCOPED_TRACE(testing::Message() << size << " items");
    const auto in = MakeInput<float>(Op::kSum, Data::kRandom, size, random());
    Work<float> work(lane(), in, Op::kSum);
    const uint64_t want = work.Scan(ScanKind::kInclusive);

    OwnContext context;
    DeviceArray<float> d_in(lane(), in);
    auto d_out = DeviceArray<float>::Poisoned(lane(), size);
    Require(lane().Synchronize());
    ScanArgs args;
    args.dtype = DType::kF32;
    args.in = d_in.data();
    args.out = d_out.data();
    args.num_items = size;
    args.init = ScanStart(Op::kSum, DType::kF32, ScanKind::kInclusive);
    Check(cuda::LaunchScan<float, float>(args, context.get()));  // Makes the memory that the captured one uses.
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    Check(cudaStreamBeginCapture(context->stream, cudaStreamCaptureModeThreadLocal));
    Check(cuda::LaunchScan<float, float>(args, context.get()));
    Check(cudaStreamEndCapture(context->stream, &graph));
    Check(cudaGraphInstantiate(&replay, graph, 0));
    for (int run = 0; run < 10; ++run) {
      Check(cudaMemsetAsync(d_out.data(), 0x5a, size * sizeof(float), context->stream));
      Check(cudaGraphLaunch(replay, context->stream));
      Check(cudaStreamSynchronize(context->stream));
      std::vector<float> out;
      ASSERT_TRUE(d_out.Read(&out));
      ASSERT_EQ(Hash(out), want) << "run " << run;
    }
    Check(cudaGraphExecDestroy(replay));
    Check(cudaGraphDestroy(graph));
  }
}

// Where a block looks for the others' values once or twice only, it mostly has to compute them by itself.
TEST_P(ReproducibilityTest, WithoutPatience) {
  OwnContext context;
  for (int round = 0; round < 20; ++round) {
    const size_t size = kTileItems + 1 + random().Below(SmallSizesOnly() ? 5000 : 8 * kGroupItems - kTileItems);
    SCOPED_TRACE(testing::Message() << size << " items");
    const auto in = MakeInput<float>(Op::kSum, Data::kRandom, size, random());
    Work<float> work(lane(), in, Op::kSum);
    DeviceArray<float> d_in(lane(), in);
    auto d_out = DeviceArray<float>::Poisoned(lane(), size);
    for (const ScanKind kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
      const uint64_t want = work.Scan(kind);
      ScanArgs args;
      args.dtype = DType::kF32;
      args.kind = kind;
      args.in = d_in.data();
      args.out = d_out.data();
      args.num_items = size;
      args.init = ScanStart(Op::kSum, DType::kF32, kind);
      context->patience = static_cast<uint32_t>(random().Below(2));
      Check(cuda::LaunchScan<float, float>(args, context.get()));
      Check(cudaStreamSynchronize(context->stream));
      std::vector<float> out;
      ASSERT_TRUE(d_out.Read(&out));
      ASSERT_EQ(Hash(out), want) << Name(kind);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(cuda, ReproducibilityTest, testing::ValuesIn(EveryDevice("cuda")),
                         [](const auto& info) { return ParamName(info.param); });

}  // namespace
}  // namespace prefixd::conformance
