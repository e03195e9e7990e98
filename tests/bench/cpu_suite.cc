#include "tests/bench/cpu_suite.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <set>
#include <utility>

#include "base/status.h"

namespace prefixd::bench {
namespace {

constexpr int kPoison = 0xa5;
constexpr uint64_t kTimedItems = uint64_t{1} << 18;  // A sample of --every-case, in one call or several.

std::unique_ptr<Device> OpenCpu(const std::string& isa) {
  auto device = OpenDevice("cpu", isa);
  Check(device.status());
  return *std::move(device);
}

std::unique_ptr<Lane> LaneOf(Device& device) {
  auto lane = device.CreateLane();
  Check(lane.status());
  return *std::move(lane);
}

std::string LengthName(uint64_t num_bytes) {
  const bool is_small = num_bytes < uint64_t{1} << 20;
  return StrCat(num_bytes >> (is_small ? 10 : 20), is_small ? " KiB" : " MiB");
}

std::string Label(const Contender& contender, int threads) {
  return contender.who + " with " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

}  // namespace

void Fail(const std::string& message) {
  std::cerr << "cpu_bench: " << message << '\n';
  std::exit(1);
}

void Check(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

Suite::Suite(const Options& options, uint64_t num_items)
    : options_(options),
      filter_(options.filter),
      num_calls_(options.every_case ? std::max<uint64_t>(1, kTimedItems / num_items) : 1),
      data_(num_items, options.seed),
      device_(OpenCpu(options.isa)),
      lane_(LaneOf(*device_)),
      flush_(device_->info().cache_flush_bytes),
      expected_values_(num_items * sizeof(uint64_t)),
      expected_numbers_(num_items * sizeof(uint64_t)),
      team_(options.threads),
      one_(1),
      all_(options.threads) {
  thread_counts_.push_back(1);
  if (options.threads > 1) thread_counts_.push_back(options.threads);
}

void Suite::Add(const Case& made) {
  if (!Wanted(made.name)) return;
  const void* const values = data_.values.data();
  const void* const numbers = data_.numbers.data();
  bool is_first = true;
  uint64_t expected = 0;
  for (const Contender& contender : made.contenders) {
    for (const int threads : thread_counts_) {
      if (contender.threads == Threads::kOne && threads > 1) continue;
      std::memset(data_.values.data(), kPoison, made.value_bytes);
      std::memset(data_.numbers.data(), kPoison, made.number_bytes);
      if (made.source != nullptr) std::memcpy(data_.values.data(), made.source, made.value_bytes);
      const uint64_t number = Arena(threads).execute([&] { return contender.work(); });
      if (std::exchange(is_first, false)) {
        expected = number;
        std::memcpy(expected_values_.data(), values, made.value_bytes);
        std::memcpy(expected_numbers_.data(), numbers, made.number_bytes);
      } else if (number != expected || std::memcmp(values, expected_values_.data(), made.value_bytes) != 0 ||
                 std::memcmp(numbers, expected_numbers_.data(), made.number_bytes) != 0) {
        Fail(made.name + ": " + Label(contender, threads) + " has another result than " + made.contenders[0].who);
      }
      rows_.push_back({.what = made.name,
                       .who = contender.who,
                       .threads = threads,
                       .bytes = made.bytes,
                       .copy_bytes = made.copy_bytes,
                       .source = made.source,
                       .work = contender.work});
    }
  }
}

void Suite::AddCopy(const char* who, int threads, uint64_t copy_bytes, const std::function<void()>& copy) {
  std::memset(data_.values.data(), kPoison, copy_bytes);
  Arena(threads).execute(copy);
  if (std::memcmp(data_.values.data(), data_.bits.data(), copy_bytes) != 0) Fail(std::string(who) + " does not copy");
  rows_.push_back({.what = "copy of " + LengthName(copy_bytes),
                   .who = who,
                   .threads = threads,
                   .bytes = 2.0 * static_cast<double>(copy_bytes),
                   .copy_bytes = copy_bytes,
                   .work = copy});
}

void Suite::AddCopies() {
  std::set<uint64_t> lengths;
  for (const Row& row : rows_) lengths.insert(row.copy_bytes);
  void* const dst = data_.values.data();
  const void* const src = data_.bits.data();
  for (const uint64_t length : lengths) {
    for (const int threads : thread_counts_) {
      AddCopy("memcpy", threads, length, [=, this] { CopyByMemcpy(team_, threads, dst, src, length); });
      AddCopy("memcpy 128 KiB", threads, length, [=, this] { CopyByPieces(team_, threads, dst, src, length); });
      AddCopy("streaming", threads, length, [=, this] { CopyByStreaming(team_, threads, dst, src, length); });
      AddCopy(kPrefixd, threads, length,
              [=, this] { Check(lane_->CopyOnDevice(dst, src, length, CopyTiming::kUntimed)); });
      rows_.push_back({.what = "read of " + LengthName(length),
                       .who = "vector sum",
                       .threads = threads,
                       .bytes = static_cast<double>(length),
                       .copy_bytes = length,
                       .work = [=, this] { ReadAll(team_, threads, src, length); }});
    }
  }
}

double Suite::TimeOnce(const Row& row) {
  if (row.source != nullptr) std::memcpy(data_.values.data(), row.source, row.copy_bytes);
  if (num_calls_ == 1) {
    // A read leaves no lines behind that would have to be written back while the row is timed.
    ReadAll(team_, options_.threads, flush_.data(), flush_.size_bytes());
  }
  return Arena(row.threads).execute([&] {
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t call = 0; call < num_calls_; ++call) row.work();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    return time.count() / static_cast<double>(num_calls_);
  });
}

void Suite::Measure() {
  for (int round = 0; round <= options_.rounds; ++round) {
    for (Row& row : rows_) {
      const double ms = TimeOnce(row);
      if (round > 0) row.ms.push_back(ms);
    }
  }
  for (Row& row : rows_) std::sort(row.ms.begin(), row.ms.end());
}

}  // namespace prefixd::bench
