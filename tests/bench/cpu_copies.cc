#include "tests/bench/cpu_copies.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace prefixd::bench {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kPieceBytes = size_t{128} << 10;

struct Share {
  size_t first;
  size_t size_bytes;
};

// Whole cache lines for each thread; the last one also takes the rest.
Share ShareOf(int thread, int num_threads, size_t size_bytes) {
  const size_t each = size_bytes / num_threads / kLineBytes * kLineBytes;
  const size_t first = each * thread;
  return {first, thread == num_threads - 1 ? size_bytes - first : each};
}

// ---- Reads ---------------------------------------------------------------------------------------------------------
// Four accumulators of 64 bytes, so that no addition waits for the one before. They are registers of any width.
using Words = uint64_t __attribute__((vector_size(kLineBytes)));
using SumFunction = uint64_t (*)(const std::byte*, size_t);

[[gnu::always_inline]] inline uint64_t SumWords(const std::byte* src, size_t size_bytes) {
  constexpr int kWide = 4;
  Words sums[kWide] = {};
  size_t i = 0;
  for (; i + kWide * sizeof(Words) <= size_bytes; i += kWide * sizeof(Words)) {
    for (int k = 0; k < kWide; ++k) {
      Words words;
      std::memcpy(&words, src + i + k * sizeof(Words), sizeof(Words));
      sums[k] += words;
    }
  }
  const Words all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  uint64_t sum = 0;
  for (size_t k = 0; k < sizeof(Words) / sizeof(uint64_t); ++k) sum += all[k];
  for (; i + sizeof(uint64_t) <= size_bytes; i += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, src + i, sizeof(word));
    sum += word;
  }
  return sum;
}

uint64_t SumPlain(const std::byte* src, size_t size_bytes) { return SumWords(src, size_bytes); }

// ---- Streaming copies ----------------------------------------------------------------------------------------------
using CopyFunction = void (*)(std::byte*, const std::byte*, size_t);

#ifdef __x86_64__
[[gnu::target("avx512f")]] uint64_t SumAvx512(const std::byte* src, size_t size_bytes) {
  return SumWords(src, size_bytes);
}
[[gnu::target("avx2")]] uint64_t SumAvx2(const std::byte* src, size_t size_bytes) { return SumWords(src, size_bytes); }

// Each copies whole lines only.
[[gnu::target("avx512f")]] void StreamAvx512(std::byte* dst, const std::byte* src, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; i += kLineBytes) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + i), _mm512_loadu_si512(src + i));
  }
  _mm_sfence();
}
[[gnu::target("avx2")]] void StreamAvx2(std::byte* dst, const std::byte* src, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; i += sizeof(__m256i)) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(dst + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + i)));
  }
  _mm_sfence();
}
void StreamSse2(std::byte* dst, const std::byte* src, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; i += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(dst + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i)));
  }
  _mm_sfence();
}

CopyFunction StreamFunction() {
  if (__builtin_cpu_supports("avx512f")) return StreamAvx512;
  if (__builtin_cpu_supports("avx2")) return StreamAvx2;
  return StreamSse2;
}
SumFunction WidestSum() {
  if (__builtin_cpu_supports("avx512f")) return SumAvx512;
  if (__builtin_cpu_supports("avx2")) return SumAvx2;
  return SumPlain;
}
#else
void StreamPlain(std::byte* dst, const std::byte* src, size_t size_bytes) { std::memcpy(dst, src, size_bytes); }
CopyFunction StreamFunction() { return StreamPlain; }
SumFunction WidestSum() { return SumPlain; }
#endif

}  // namespace

// ---- Team ----------------------------------------------------------------------------------------------------------
Team::Team(int num_threads) {
  for (int index = 1; index < num_threads; ++index) {
    helpers_.emplace_back([this, index] { Help(index); });
  }
}

Team::~Team() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  begin_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Team::Run(int num_threads, const std::function<void(int)>& body) {
  if (num_threads == 1) return body(0);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    body_ = &body;
    num_threads_ = num_threads;
    num_running_ = num_threads - 1;
    ++round_;
  }
  begin_.notify_all();
  body(0);
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, [this] { return num_running_ == 0; });
}

void Team::Help(int index) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (uint64_t seen = 0;; seen = round_) {
    begin_.wait(lock, [&] { return stopped_ || round_ != seen; });
    if (stopped_) return;
    if (index >= num_threads_) continue;
    const std::function<void(int)>* const body = body_;
    lock.unlock();
    (*body)(index);
    lock.lock();
    if (--num_running_ == 0) done_.notify_one();
  }
}

// ---- The copies ----------------------------------------------------------------------------------------------------
void CopyByMemcpy(Team& team, int num_threads, void* dst, const void* src, size_t size_bytes) {
  team.Run(num_threads, [&](int thread) {
    const Share share = ShareOf(thread, num_threads, size_bytes);
    std::memcpy(static_cast<std::byte*>(dst) + share.first, static_cast<const std::byte*>(src) + share.first,
                share.size_bytes);
  });
}

void CopyByPieces(Team& team, int num_threads, void* dst, const void* src, size_t size_bytes) {
  std::atomic<size_t> next = 0;
  team.Run(num_threads, [&](int) {
    for (size_t first = 0; (first = next.fetch_add(kPieceBytes)) < size_bytes;) {
      std::memcpy(static_cast<std::byte*>(dst) + first, static_cast<const std::byte*>(src) + first,
                  std::min(kPieceBytes, size_bytes - first));
    }
  });
}

void CopyByStreaming(Team& team, int num_threads, void* dst, const void* src, size_t size_bytes) {
  static const CopyFunction stream = StreamFunction();
  team.Run(num_threads, [&](int thread) {
    const Share share = ShareOf(thread, num_threads, size_bytes);
    const size_t lines_bytes = share.size_bytes / kLineBytes * kLineBytes;
    std::byte* const to = static_cast<std::byte*>(dst) + share.first;
    const std::byte* const from = static_cast<const std::byte*>(src) + share.first;
    stream(to, from, lines_bytes);
    std::memcpy(to + lines_bytes, from + lines_bytes, share.size_bytes - lines_bytes);
  });
}

uint64_t ReadAll(Team& team, int num_threads, const void* src, size_t size_bytes) {
  static const SumFunction sum = WidestSum();
  std::atomic<uint64_t> total = 0;
  team.Run(num_threads, [&](int thread) {
    const Share share = ShareOf(thread, num_threads, size_bytes);
    total += sum(static_cast<const std::byte*>(src) + share.first, share.size_bytes);
  });
  return total;
}

}  // namespace prefixd::bench
