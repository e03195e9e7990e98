// The rows of the textbooks' algorithms. In these rows b is the number of items of a tile: 512 items of 4 bytes or 256
// of 8, times the items of a thread.
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/yardsticks/cuda/scans.h"
#include "kernels/yardsticks/cuda/textbooks.h"
#include "kernels/yardsticks/serves.h"

namespace prefixd::cuda {
namespace {

struct TileScanRow {
  TileScan tile_scan;
  const char* work;  // Includes the strategy's addition for each item.
  const char* depth;
  const char* depth_of_all;  // The depth when tiles are scanned in as many levels as it takes.
  const char* source;
};

// The first row is the tile scan that runs if the caller names none.
constexpr TileScanRow kTileScanRows[] = {
    {TileScan::kWarpShuffle, "6n", "10", "log n", "Note and Save"},
    {TileScan::kHillisSteele, "n log b + n", "log b", "log n",
     "Hillis and Steele 1986; Hadwiger; Iriscores; Note and Save"},
    {TileScan::kKoggeStone, "n log b + n", "log b", "log n", "Kogge and Stone 1973; Funktor"},
    {TileScan::kBrentKung, "3n", "2 log b", "2 log n", "Brent and Kung 1982; Funktor; Hadwiger"},
    {TileScan::kBlelloch, "3n", "2 log b", "2 log n", "Blelloch 1990; Hadwiger; Note and Save"},
    {TileScan::kWarpShared, "6n", "10", "log n", "Ruan"},
    {TileScan::kWarpSharedRegister, "6n", "10", "log n", "Ruan"},
};

struct StrategyRow {
  Strategy strategy;
  const char* depth;  // Added to the tile's depth. Null: depth_of_all is the whole depth.
  const char* traffic;
  const char* launches;
  const char* source;
};

constexpr StrategyRow kStrategyRows[] = {
    {Strategy::kThreePhase, nullptr, "4n", "1, 3, 5 ..", "Funktor; Hadwiger; Note and Save"},
    {Strategy::kGridSync, "n / b / blocks", "4n", "1", "Funktor"},
    {Strategy::kChainedSerial, "n / b", "2n", "1", "Funktor"},
    {Strategy::kChained, "n / 32b", "2n", "1", "Merrill and Garland 2016; Funktor"},
};

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
           .depth = strategy.depth == nullptr ? tile.depth_of_all : StrCat(tile.depth, " + ", strategy.depth),
           .traffic = strategy.traffic,
           .launches = strategy.launches,
           .serves = kTextbooksServe,
           .source = StrCat("tiles: ", tile.source, "; joined: ", strategy.source)});
    }
  }
  const auto add = [&](Primitive primitive, Strategy strategy, AlgorithmInfo row) {
    row.primitive = primitive;
    row.algorithm.strategy = strategy;
    row.serves = strategy == Strategy::kKahan       ? kKahanServes
                 : primitive == Primitive::kCompact ? kTextbookCompactsServe
                                                    : kTextbooksServe;
    rows.push_back(row);
  };
  add(Primitive::kScan, Strategy::kNaive,
      {.work = "n^2 / 2",
       .depth = "n",
       .traffic = "n^2 / 2",
       .launches = "1 to 3",
       .max_items = kMaxNaiveItems,
       .source = "Funktor"});
  add(Primitive::kScan, Strategy::kHillisSteeleGlobal,
      {.work = "n log n",
       .depth = "log n",
       .traffic = "2n log n",
       .launches = "log n",
       .source = "Hillis and Steele 1986; Hadwiger; Iriscores"});
  add(Primitive::kScan, Strategy::kThrust,
      {.work = "2n",
       .depth = "log n",
       .traffic = "2n",
       .launches = "2 to 4",
       .deterministic = false,
       .source = "NVIDIA's library; Note and Save"});

  const AlgorithmInfo tree = {
      .work = "n", .depth = "log n", .traffic = "n", .launches = "log n / 9", .source = "Hadwiger; Note and Save"};
  add(Primitive::kReduce, Strategy::kTreeInterleaved, tree);
  add(Primitive::kReduce, Strategy::kTreeSequential, tree);
  add(Primitive::kReduce, Strategy::kWarpShuffle, tree);
  add(Primitive::kReduce, Strategy::kTwoPass,
      {.work = "n", .depth = "n / 2^18 + 18", .traffic = "n", .launches = "1 or 2", .source = "Note and Save"});
  add(Primitive::kReduce, Strategy::kAtomic,
      {.work = "n",
       .depth = "n / 512 + 9",
       .traffic = "n (min, max: 2n)",
       .launches = "3 (min, max: 4)",
       .deterministic = false,
       .source = "Funktor"});
  add(Primitive::kReduce, Strategy::kKahan,
      {.work = "8n",
       .depth = "n / 2^18 + 18",
       .traffic = "n",
       .launches = "1 or 2",
       .source = "Kahan 1965; Neumaier 1974; Note and Save"});
  add(Primitive::kReduce, Strategy::kThrust,
      {.work = "n",
       .depth = "log n",
       .traffic = "n",
       .launches = "1 to 3",
       .source = "NVIDIA's library; Note and Save"});

  add(Primitive::kCompact, Strategy::kThreeKernel,
      {.work = "3n",
       .depth = "2 log n",
       .traffic = "n + kept + 7n words",
       .launches = "3, 5, 7 ..",
       .source = "Hadwiger; Note and Save"});
  add(Primitive::kCompact, Strategy::kAtomicCounter,
      {.work = "n",
       .depth = "kept",
       .traffic = "n + kept",
       .launches = "1",
       .stable = false,
       .deterministic = false,
       .source = "Note and Save"});
  add(Primitive::kCompact, Strategy::kThrust,
      {.work = "2n",
       .depth = "log n",
       .traffic = "n + kept",
       .launches = "3 and more",
       .source = "NVIDIA's library; Note and Save"});
  return rows;
}

}  // namespace

std::vector<AlgorithmInfo> TextbookAlgorithms() {
  static const auto& rows = *new std::vector<AlgorithmInfo>(MakeRows());
  return rows;
}

}  // namespace prefixd::cuda
