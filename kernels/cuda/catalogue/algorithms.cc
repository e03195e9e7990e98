// The rows of the catalogue. b is the items of a tile, 512 of 4 bytes or 256 of 8, times the items of a thread.
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/catalogue/catalogue.h"
#include "kernels/cuda/catalogue/scans.h"
#include "kernels/status.h"

namespace prefixd::cuda {
namespace {

struct TileScanRow {
  TileScan tile_scan;
  std::string_view work;  // One addition an item is the strategy's.
  std::string_view depth;
  std::string_view depth_of_all;  // Of as many levels of tiles as it takes.
  std::string_view source;
};

// The first is what runs where no tile scan is named.
constexpr TileScanRow kTileScanRows[] = {
    {TileScan::kWarpShuffle, "6n", "10", "log n", "text 004"},
    {TileScan::kHillisSteele, "n log b + n", "log b", "log n", "Hillis and Steele 1986; texts 002, 003, 004"},
    {TileScan::kKoggeStone, "n log b + n", "log b", "log n", "Kogge and Stone 1973; text 000"},
    {TileScan::kBrentKung, "3n", "2 log b", "2 log n", "Brent and Kung 1982; texts 000, 002"},
    {TileScan::kBlelloch, "3n", "2 log b", "2 log n", "Blelloch 1990; texts 002, 004"},
    {TileScan::kWarpShared, "6n", "10", "log n", "text 001"},
    {TileScan::kWarpSharedRegister, "6n", "10", "log n", "text 001"},
};

struct StrategyRow {
  Strategy strategy;
  std::string_view depth;  // Behind the tile's. Empty: depth_of_all is the whole depth.
  std::string_view traffic;
  std::string_view launches;
  std::string_view source;
};

constexpr StrategyRow kStrategyRows[] = {
    {Strategy::kThreePhase, "", "4n", "1, 3, 5 ..", "texts 000, 002, 004"},
    {Strategy::kGridSync, "n / b / blocks", "4n", "1", "text 000"},
    {Strategy::kChainedSerial, "n / b", "2n", "1", "text 000"},
    {Strategy::kChained, "n / 32b", "2n", "1", "Merrill and Garland, NVR-2016-002; text 000"},
};

// What lives as long as the process.
std::string_view Keep(std::string text) { return *new std::string(std::move(text)); }

std::vector<AlgorithmInfo> MakeRows() {
  std::vector<AlgorithmInfo> rows;
  for (const StrategyRow& strategy : kStrategyRows) {
    for (const TileScanRow& tile : kTileScanRows) {
      rows.push_back(
          {.primitive = Primitive::kScan,
           .algorithm = {strategy.strategy, tile.tile_scan},
           .has_items_per_thread = TakesItemsPerThread(tile.tile_scan),
           .has_padding = TakesPadding(tile.tile_scan),
           .work = tile.work,
           .depth = strategy.depth.empty() ? tile.depth_of_all : Keep(StrCat(tile.depth, " + ", strategy.depth)),
           .traffic = strategy.traffic,
           .launches = strategy.launches,
           .source = Keep(StrCat("tiles: ", tile.source, "; joined: ", strategy.source))});
    }
  }
  const auto add = [&](Primitive primitive, Strategy strategy, AlgorithmInfo row) {
    row.primitive = primitive;
    row.algorithm.strategy = strategy;
    rows.push_back(row);
  };
  add(Primitive::kScan, Strategy::kNaive,
      {.work = "n^2 / 2",
       .depth = "n",
       .traffic = "n^2 / 2",
       .launches = "1 to 3",
       .max_items = kMaxNaiveItems,
       .source = "text 000"});
  add(Primitive::kScan, Strategy::kHillisSteeleGlobal,
      {.work = "n log n",
       .depth = "log n",
       .traffic = "2n log n",
       .launches = "log n",
       .source = "Hillis and Steele 1986; texts 002, 003"});
  add(Primitive::kScan, Strategy::kThrust,
      {.work = "2n",
       .depth = "log n",
       .traffic = "2n",
       .launches = "2 to 4",
       .deterministic = false,
       .source = "NVIDIA's library; text 004"});

  const AlgorithmInfo tree = {
      .work = "n", .depth = "log n", .traffic = "n", .launches = "log n / 9", .source = "texts 002, 004"};
  add(Primitive::kReduce, Strategy::kTreeInterleaved, tree);
  add(Primitive::kReduce, Strategy::kTreeSequential, tree);
  add(Primitive::kReduce, Strategy::kWarpShuffle, tree);
  add(Primitive::kReduce, Strategy::kTwoPass,
      {.work = "n", .depth = "n / 2^18 + 18", .traffic = "n", .launches = "1 or 2", .source = "text 004"});
  add(Primitive::kReduce, Strategy::kAtomic,
      {.work = "n",
       .depth = "n / 512 + 9",
       .traffic = "n (min, max: 2n)",
       .launches = "3 (min, max: 4)",
       .deterministic = false,
       .source = "text 000"});
  add(Primitive::kReduce, Strategy::kKahan,
      {.work = "8n",
       .depth = "n / 2^18 + 18",
       .traffic = "n",
       .launches = "1 or 2",
       .source = "Kahan 1965, Neumaier 1974; text 004"});
  add(Primitive::kReduce, Strategy::kThrust,
      {.work = "n", .depth = "log n", .traffic = "n", .launches = "1 to 3", .source = "NVIDIA's library; text 004"});

  add(Primitive::kCompact, Strategy::kThreeKernel,
      {.work = "3n",
       .depth = "2 log n",
       .traffic = "n + kept + 7n words",
       .launches = "3, 5, 7 ..",
       .source = "texts 002, 004"});
  add(Primitive::kCompact, Strategy::kAtomicCounter,
      {.work = "n",
       .depth = "kept",
       .traffic = "n + kept",
       .launches = "1",
       .stable = false,
       .deterministic = false,
       .source = "text 004"});
  add(Primitive::kCompact, Strategy::kThrust,
      {.work = "2n",
       .depth = "log n",
       .traffic = "n + kept",
       .launches = "3 and more",
       .source = "NVIDIA's library; text 004"});
  return rows;
}

}  // namespace

std::vector<AlgorithmInfo> CatalogueAlgorithms() {
  static const auto& rows = *new std::vector<AlgorithmInfo>(MakeRows());
  return rows;
}

}  // namespace prefixd::cuda
