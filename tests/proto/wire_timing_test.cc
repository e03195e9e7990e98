// Timing, algorithm rows and enums to the wire and back.
#include "proto/wire_timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "proto/wire_algorithm_info.h"
#include "proto/wire_values.h"

namespace prefixd {
namespace {

TEST(WireTiming, ComesBack) {
  const Timing timing = {.queue_ns = 1,
                         .host_copy_ns = 0,
                         .host_to_device_ns = 3,
                         .kernel_ns = 10,
                         .device_to_host_ns = 5,
                         .server_total_ns = 6,
                         .device = "a card",
                         .algorithm = {Strategy::kChained},
                         .launches = 7,
                         .num_items = 8,
                         .num_bytes = 40,
                         .kernel_gb_per_s = 4.0,
                         .batch_size = 9,
                         .numerics_version = kNumericsVersion};
  EXPECT_TRUE(FromWire(ToWire(timing)) == timing);
  EXPECT_TRUE(FromWire(ToWire(Timing{.algorithm = {Strategy::kCub}})) == (Timing{.algorithm = {Strategy::kCub}}));
}

TEST(WireTiming, LeavesOutWhatWasNotMeasured) {
  const v1::Timing wire = ToWire(Timing{.kernel_ns = 0, .num_bytes = 40});
  EXPECT_FALSE(wire.has_queue_ns() || wire.has_host_copy_ns() || wire.has_host_to_device_ns());
  EXPECT_FALSE(wire.has_device_to_host_ns() || wire.has_server_total_ns());
  EXPECT_TRUE(wire.has_kernel_ns());
  EXPECT_FALSE(wire.has_kernel_gb_per_s());  // A clock too coarse to tell.
}

TEST(WireTiming, AnAlgorithmThatOnlyTheServerKnowsIsNone) {
  v1::Timing wire = ToWire(Timing{.algorithm = {Strategy::kCub}, .launches = 2});
  wire.mutable_algorithm()->set_strategy(static_cast<v1::Strategy>(99));
  EXPECT_TRUE(FromWire(wire) == Timing{.launches = 2});
}

TEST(WireAlgorithmInfo, ComesBack) {
  const AlgorithmInfo row = {.primitive = Primitive::kCompact,
                             .algorithm = {Strategy::kThreePhase, TileScan::kBlelloch},
                             .has_items_per_thread = true,
                             .has_padding = true,
                             .work = "2n",
                             .depth = "2 log n",
                             .traffic = "4n",
                             .launches = "3",
                             .stable = false,
                             .deterministic = false,
                             .max_items = 99,
                             .source = "a book"};
  const std::optional<AlgorithmInfo> back = FromWire(ToWire(row));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(ToWire(*back).SerializeAsString(), ToWire(row).SerializeAsString());
  EXPECT_EQ(back->algorithm, row.algorithm);
  EXPECT_EQ(back->max_items, row.max_items);
  EXPECT_EQ(back->source, row.source);
  v1::AlgorithmInfo newer = ToWire(row);
  newer.set_primitive(static_cast<v1::Primitive>(99));
  EXPECT_FALSE(FromWire(newer).has_value());
}

TEST(KnownEnum, IsNeitherUnspecifiedNorNewer) {
  EXPECT_EQ(KnownEnum<DType>(v1::DTYPE_I8), DType::kI8);
  EXPECT_EQ(KnownEnum<DType>(v1::DTYPE_F64), DType::kF64);
  EXPECT_EQ(KnownEnum<Op>(v1::OP_LINEAR_RECURRENCE), Op::kLinearRecurrence);
  for (const int value : {0, -1, 99, 257, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
    EXPECT_EQ(KnownEnum<DType>(value), std::nullopt) << value;
    EXPECT_EQ(KnownEnum<Primitive>(value), std::nullopt) << value;
  }
}

}  // namespace
}  // namespace prefixd
