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

// A barrier of all threads of some warps of the block. Each team has a number of its own, from 1 to 15.
template <int kTeam, int kThreads>
__device__ void SyncTeam() {
  asm volatile("barrier.sync %0, %1;" ::"n"(kTeam), "n"(kThreads) : "memory");
}

// One arrival for a whole warp, of what all its lanes have done.
inline __device__ void ArriveAsWarp(Barrier& barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) barrier.Arrive();
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

// What the copy thread and the other roles share.
template <int kStages>
struct RingState {
  static constexpr uint32_t kEnd = 0xffffffff;

  uint32_t tickets[kStages];  // What was loaded: a ticket, stage by stage; after the last, kEnd.
  Barrier loaded[kStages];    // One arrival.
  Barrier ready[kStages];     // To be stored.
};

// The copy thread: takes tickets, has their stages loaded, and has them stored when they are ready.
//   Shape             kStages, kTicketStages; kStoreLag: stores that may still read their stages while the next is
//   loaded;
//                     kPacedLoads: loads in flight at the start, when the others' would only queue up before the first
//   ticket            the first; take() takes the next ones; from num_tickets on there is nothing
//   load(stage, ticket, sub)   loads stage `sub` of the ticket, arriving at loaded[stage]
//   store(stage, ticket, sub)  enqueues bulk stores of it, or has nothing to store
template <class Shape, class Take, class Load, class Store>
__device__ void CopyThroughRing(RingState<Shape::kStages>& ring, uint32_t ticket, uint32_t num_tickets, Take&& take,
                                Load&& load, Store&& store) {
  constexpr int kStages = Shape::kStages;
  constexpr uint32_t kPacedUntil = 2 * kStages;
  RingPosition<kStages> next_load;
  RingPosition<kStages> next_store;
  RingPosition<kStages> oldest_load;  // That may be in flight, at the start.
  uint32_t num_loads = 0;
  uint32_t num_stores = 0;
  int load_sub = 0;
  int store_sub = 0;
  for (bool ended = false;;) {
    const bool paced = num_loads < kPacedUntil;
    // A ticket is taken when there is room for all of it: everybody waits for its tiles from then on.
    const uint32_t num_wanted = load_sub == 0 ? Shape::kTicketStages : 1;
    const bool has_room =
        num_loads + num_wanted <= kStages || num_stores + kStages >= num_loads + num_wanted + Shape::kStoreLag;
    if (!ended && has_room &&
        (!paced || num_loads < Shape::kPacedLoads || ring.loaded[oldest_load.stage].Test(oldest_load.parity))) {
      if (num_loads >= kStages) WaitForStoresToRead<Shape::kStoreLag>();
      if (load_sub == 0) {
        if (num_loads > 0) ticket = take();
        ended = ticket >= num_tickets;
      }
      ring.tickets[next_load.stage] = ended ? ring.kEnd : ticket;
      if (ended) {
        ring.loaded[next_load.stage].Arrive();
      } else {
        load(next_load.stage, ticket, load_sub);
      }
      if (num_loads >= Shape::kPacedLoads) oldest_load.Next();
      next_load.Next();
      ++num_loads;
      if (++load_sub == Shape::kTicketStages) load_sub = 0;
      continue;
    }
    if (ended && num_stores == num_loads - 1) break;
    if (num_stores == num_loads) continue;
    if (paced) {
      if (!ring.ready[next_store.stage].Test(next_store.parity)) continue;
    } else {
      ring.ready[next_store.stage].Wait(next_store.parity);
    }
    store(next_store.stage, ring.tickets[next_store.stage], store_sub);
    CommitStores();
    next_store.Next();
    ++num_stores;
    if (++store_sub == Shape::kTicketStages) store_sub = 0;
  }
  WaitForStoresToRead<0>();  // The shared memory is the block's no longer than it lives.
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_CUH_
