// The glue's loops of each instruction set by themselves: that streaming and alignment change no bit, that nothing else
// is written, and that every instruction set gives the same. What they compute is compared with an oracle in
// conformance/.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/isa.h"
#include "tests/kernels/guard.h"

namespace prefixd::cpu {
namespace {

class SimdGlueTest : public testing::TestWithParam<Isa> {
 protected:
  SimdGlueTest() { RecordProperty("seed", std::to_string(seed_)); }

  size_t Below(size_t bound) { return random_() % bound; }

  std::vector<unsigned char> Bytes(size_t num_bytes) {
    std::vector<unsigned char> bytes(num_bytes);
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random_());
    return bytes;
  }

  // What work(kernels, out, stream) writes, between guards, `shift_bytes` behind a boundary of 64 bytes.
  template <class Work>
  static std::vector<unsigned char> Written(const Kernels& kernels, size_t num_bytes, size_t shift_bytes, bool stream,
                                            const Work& work) {
    std::vector<unsigned char> bytes(num_bytes + shift_bytes + 2 * kGuardBytes + 64, kGuard);
    const auto address = reinterpret_cast<uintptr_t>(bytes.data()) + kGuardBytes;
    unsigned char* const out = bytes.data() + kGuardBytes + (64 - address % 64) % 64 + shift_bytes;
    work(kernels, out, stream);
    std::vector<unsigned char> results(out, out + num_bytes);
    std::memset(out, kGuard, num_bytes);
    EXPECT_EQ(bytes, std::vector<unsigned char>(bytes.size(), kGuard)) << "something beside the results was written";
    return results;
  }

  // Expects the same of every form, and of the machine's narrowest instruction set.
  template <class Work>
  void ExpectSame(size_t num_items, size_t item_bytes, const std::string& what, const Work& work) {
    const auto want = Written(*IsasHere().front().kernels, num_items * item_bytes, 0, false, work);
    for (const bool stream : {false, true}) {
      for (const size_t shift : {size_t{0}, 1 + Below(63 / item_bytes)}) {
        ASSERT_EQ(Written(*GetParam().kernels, num_items * item_bytes, shift * item_bytes, stream, work), want)
            << what << ", " << num_items << " items, stream " << stream << ", shift " << shift << ", seed " << seed_;
      }
    }
  }

  const unsigned seed_ = std::random_device()();
  std::mt19937_64 random_{seed_};
};

std::vector<DType> EveryDType() {
  std::vector<DType> dtypes;
#define PREFIXD_ADD(name, type) dtypes.push_back(DType::name);
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_ADD)
#undef PREFIXD_ADD
  return dtypes;
}

TEST_P(SimdGlueTest, Fills) {
  for (const DType dtype : EveryDType()) {
    for (int round = 0; round < 6 * kNumFillKinds; ++round) {
      FillPart part = {.num_items = Below(round < 9 ? 300 : 9000),
                       .first_item = Below(1000),
                       .value = {Below(1u << 30)},
                       .step = {Below(1u << 30)},
                       .seed = random_()};
      const int kind = round % kNumFillKinds;
      ExpectSame(part.num_items, SizeOf(dtype), std::string(Name(static_cast<FillKind>(kind))),
                 [&](const Kernels& kernels, void* out, bool stream) {
                   part.out = out;
                   part.stream = stream;
                   kernels.fills->of[kind][static_cast<int>(dtype)](part);
                 });
    }
  }
}

TEST_P(SimdGlueTest, Maps) {
  const auto check = [&](auto loop_of, DType from, DType to, const std::string& what) {
    const size_t num_items = Below(4) == 0 ? Below(9000) : Below(300);
    const auto in = Bytes(num_items * SizeOf(from)), other = Bytes(num_items * SizeOf(from));
    MapPart part = {.in = in.data(),
                    .other = other.data(),
                    .num_items = num_items,
                    .a = {random_()},
                    .b = {random_()},
                    .outside = Below(2) != 0};
    ExpectSame(num_items, SizeOf(to), what, [&](const Kernels& kernels, void* out, bool stream) {
      part.out = out;
      const MapLoop loop = loop_of(*kernels.maps);
      stream ? kernels.maps->stream(loop, part, SizeOf(from), SizeOf(to)) : loop(part);
    });
  };
  for (const DType from : EveryDType()) {
    const int type = static_cast<int>(from);
    for (const DType to : EveryDType()) {
      check([&](const MapTable& maps) { return maps.cast[type][static_cast<int>(to)]; }, from, to, "cast");
    }
    for (int op = 0; op < kNumMapOps; ++op) {
      const auto loop_of = [&](const MapTable& maps) { return maps.of[op][type]; };
      const auto map_op = static_cast<MapOp>(op);
      if (map_op == MapOp::kCast || map_op == MapOp::kCompareArrays) {
        EXPECT_EQ(loop_of(*GetParam().kernels->maps), nullptr);
      } else {
        check(loop_of, from, map_op == MapOp::kCompare ? DType::kU8 : from, std::string(Name(map_op)));
      }
    }
    for (int comparison = 0; comparison < kNumComparisons; ++comparison) {
      const auto loop_of = [&](const MapTable& maps) { return maps.compare_arrays[comparison][type]; };
      if (loop_of(*GetParam().kernels->maps) != nullptr) check(loop_of, from, DType::kU8, "compare_arrays");
    }
  }
}

TEST_P(SimdGlueTest, Gathers) {
  for (const DType dtype : EveryDType()) {
    for (int round = 0; round < 8; ++round) {
      const size_t num_items = Below(round < 4 ? 300 : 9000), bound = Below(2000);
      const auto in = Bytes(bound * SizeOf(dtype));
      std::vector<uint64_t> indices(num_items);
      for (uint64_t& index : indices) index = Below(bound + 10);
      GatherPart part = {.in = in.data(), .indices = indices.data(), .num_items = num_items, .bound = bound};
      ExpectSame(num_items, SizeOf(dtype), "gather", [&](const Kernels& kernels, void* out, bool stream) {
        part.out = out;
        part.stream = stream;
        kernels.gathers->gather[static_cast<int>(dtype)][1](part);
      });
    }
  }
}

TEST_P(SimdGlueTest, Transposes) {
  for (const DType dtype : EveryDType()) {
    const size_t side = TransposeSide(SizeOf(dtype));
    for (int round = 0; round < 8; ++round) {
      // Whole squares in all rounds but the last two.
      const size_t num_rows = round < 6 ? side : 1 + Below(side), num_columns = round < 6 ? side : 1 + Below(side);
      const size_t in_pitch = num_columns + Below(9);
      const auto in = Bytes(num_rows * in_pitch * SizeOf(dtype));
      TransposePart part = {.in = in.data(),
                            .num_rows = num_rows,
                            .num_columns = num_columns,
                            .in_pitch = in_pitch,
                            .out_pitch = num_rows};
      ExpectSame(num_rows * num_columns, SizeOf(dtype), "transpose",
                 [&](const Kernels& kernels, void* out, bool stream) {
                   part.out = out;
                   part.stream = stream;
                   kernels.transposes->of[static_cast<int>(dtype)](part);
                 });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, SimdGlueTest, testing::ValuesIn(IsasHere()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace prefixd::cpu
