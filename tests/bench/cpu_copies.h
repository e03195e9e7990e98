// What memory can do: copies and a read with a number of threads. cpu_bench measures everything else against them.
#ifndef PREFIXD_TESTS_BENCH_CPU_COPIES_H_
#define PREFIXD_TESTS_BENCH_CPU_COPIES_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace prefixd::bench {

// Threads that sleep until there is work: no library's, so that the copies depend on no scheduler.
class Team {
 public:
  // The caller is one of them.
  explicit Team(int num_threads);
  ~Team();

  // Calls body(i) for every i below num_threads, each on a thread of its own, the first on this one.
  // Needs: num_threads is not above the team's; body throws nothing.
  void Run(int num_threads, const std::function<void(int)>& body);

 private:
  void Help(int index);

  std::mutex mutex_;
  std::condition_variable begin_;
  std::condition_variable done_;
  const std::function<void(int)>* body_ = nullptr;
  int num_threads_ = 0;
  int num_running_ = 0;
  uint64_t round_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> helpers_;
};

// Each thread copies its share by one call of memcpy.
void CopyByMemcpy(Team& team, int num_threads, void* dst, const void* src, size_t size_bytes);

// Threads take the next piece of 128 KiB when they are done with one.
void CopyByPieces(Team& team, int num_threads, void* dst, const void* src, size_t size_bytes);

// Each thread copies its share by stores that go past the caches, of the widest vectors that the processor has. On
// other architectures than x86-64 the same as CopyByMemcpy. Needs: dst aligned to 64 bytes.
void CopyByStreaming(Team& team, int num_threads, void* dst, const void* src, size_t size_bytes);

// Each thread reads its share and adds it up. Returns the sum, modulo 2^64, of the whole words of 8 bytes.
uint64_t ReadAll(Team& team, int num_threads, const void* src, size_t size_bytes);

}  // namespace prefixd::bench

#endif  // PREFIXD_TESTS_BENCH_CPU_COPIES_H_
