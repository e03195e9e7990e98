// A ring of stages in shared memory that bulk asynchronous copies fill and empty: what the fast kernels of sm_90 and
// later are built on. Memory is kept busy by 200 KiB in flight on each multiprocessor, which registers cannot hold.
//
// One block a multiprocessor; its warps have one role each and meet at the stages' barriers only. A stage goes round:
// loaded -> (roles of the kernel) -> ready -> stored, loaded again. Roles visit the stages in the order of the ring.
// Every function here is called by one thread, unless it says otherwise. Kernels for older cards must not contain
// calls: PREFIXD_HAS_BULK_COPY says what is being compiled.
#ifndef PREFIXD_KERNELS_CUDA_RING_CUH_
#define PREFIXD_KERNELS_CUDA_RING_CUH_

#include <cstdint>
#include <cuda/ptx>

namespace prefixd::cuda {

inline constexpr int kBulkAlignment = 16;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define PREFIXD_HAS_BULK_COPY 1
#endif

// A barrier in shared memory that goes through phases; a phase ends when all have arrived and all announced bytes came.
struct Barrier {
  uint64_t word;

  __device__ void Init(uint32_t num_arrivals) { ::cuda::ptx::mbarrier_init(&word, num_arrivals); }
  __device__ void Arrive() { ::cuda::ptx::mbarrier_arrive(&word); }
  __device__ void ArriveExpecting(uint32_t num_bytes) {
    ::cuda::ptx::mbarrier_arrive_expect_tx(::cuda::ptx::sem_release, ::cuda::ptx::scope_cta, ::cuda::ptx::space_shared,
                                           &word, num_bytes);
  }
  // Whether the phase of this parity has ended; if so, what was done before the arrivals has happened. Any threads.
  __device__ bool Test(uint32_t parity) { return ::cuda::ptx::mbarrier_test_wait_parity(&word, parity); }
  __device__ void Wait(uint32_t parity) {
    while (!::cuda::ptx::mbarrier_try_wait_parity(&word, parity)) {
    }
  }
};

// All threads, after which a __syncthreads() makes initialised barriers known to all, also to the copies.
inline __device__ void FenceBarrierInit() {
  ::cuda::ptx::fence_mbarrier_init(::cuda::ptx::sem_release, ::cuda::ptx::scope_cluster);
}

// Every thread that wrote to a stage calls it before it, or its warp, tells the thread that stores the stage.
inline __device__ void FenceBeforeBulkStore() { ::cuda::ptx::fence_proxy_async(::cuda::ptx::space_shared); }

// Addresses and sizes are multiples of kBulkAlignment. The bytes arrive at the barrier.
inline __device__ void BulkLoad(void* s_dst, const void* src, uint32_t num_bytes, Barrier* barrier) {
  ::cuda::ptx::cp_async_bulk(::cuda::ptx::space_cluster, ::cuda::ptx::space_global, s_dst, src, num_bytes,
                             &barrier->word);
}

inline __device__ void BulkStore(void* dst, const void* s_src, uint32_t num_bytes) {
  ::cuda::ptx::cp_async_bulk(::cuda::ptx::space_global, ::cuda::ptx::space_shared, dst, s_src, num_bytes);
}
// Closes a group of this thread's stores, which may be empty.
inline __device__ void CommitStores() { ::cuda::ptx::cp_async_bulk_commit_group(); }
// Waits until the stages of all but the last kGroups groups may be written again.
template <int kGroups>
__device__ void WaitForStoresToRead() {
  ::cuda::ptx::cp_async_bulk_wait_group_read(::cuda::ptx::n32_t<kGroups>{});
}

// A barrier of all threads of some warps of the block. One team a block.
template <int kThreads>
__device__ void SyncTeam() {
  asm volatile("barrier.sync 1, %0;" ::"n"(kThreads) : "memory");
}

// Where a role stands in the ring.
template <int kStages>
struct RingPosition {
  uint32_t stage = 0;
  uint32_t parity = 0;

  __device__ void Next() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_CUH_
