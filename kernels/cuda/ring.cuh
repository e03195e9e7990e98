// A ring of stages in shared memory that bulk asynchronous copies fill and empty. The fast kernels of sm_90 and later
// use it: it keeps more bytes in flight on each multiprocessor than registers can hold, so memory stays busy.
//
// Each multiprocessor runs one block. Its warps have one role each, and meet only at the stages' barriers. A stage goes
// round: loaded -> (roles of the kernel) -> freed, loaded again. Roles visit the stages in the order of the ring.
// Every function here is called by one thread, unless it says otherwise. Code for older cards must not contain calls of
// them: PREFIXD_HAS_BULK_COPY says whether the code that is being compiled may.
#ifndef PREFIXD_KERNELS_CUDA_RING_CUH_
#define PREFIXD_KERNELS_CUDA_RING_CUH_

#include <cstdint>
#include <cuda/ptx>

#include "kernels/association.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/types.h"

namespace prefixd::cuda {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define PREFIXD_HAS_BULK_COPY 1
#endif

// A barrier in shared memory that goes through phases. A phase ends when all arrivals and announced bytes have come.
struct Barrier {
  uint64_t word;

  __device__ void Init(uint32_t num_arrivals) { ::cuda::ptx::mbarrier_init(&word, num_arrivals); }
  __device__ void Arrive() { ::cuda::ptx::mbarrier_arrive(&word); }
  __device__ void ArriveExpecting(uint32_t num_bytes) {
    ::cuda::ptx::mbarrier_arrive_expect_tx(::cuda::ptx::sem_release, ::cuda::ptx::scope_cta, ::cuda::ptx::space_shared,
                                           &word, num_bytes);
  }
  // Waits until the phase of this parity has ended; what came before its arrivals is visible then. Any thread may wait.
  __device__ void Wait(uint32_t parity) {
    while (!::cuda::ptx::mbarrier_try_wait_parity(&word, parity)) {
    }
  }
};

// Called by the thread that initialised barriers; a __syncthreads() after it makes them known to all threads and
// copies.
inline __device__ void FenceBarrierInit() {
  ::cuda::ptx::fence_mbarrier_init(::cuda::ptx::sem_release, ::cuda::ptx::scope_cluster);
}

// Every thread that wrote to a stage calls it before the thread, or its warp, signals the thread that stores the stage.
inline __device__ void FenceBeforeBulkStore() { ::cuda::ptx::fence_proxy_async(::cuda::ptx::space_shared); }

// Addresses and sizes are multiples of kBulkAlignment. The barrier counts the bytes as they arrive.
inline __device__ void BulkLoad(void* s_dst, const void* src, uint32_t num_bytes, Barrier* barrier) {
  ::cuda::ptx::cp_async_bulk(::cuda::ptx::space_cluster, ::cuda::ptx::space_global, s_dst, src, num_bytes,
                             &barrier->word);
}

inline __device__ void BulkStore(void* dst, const void* s_src, uint32_t num_bytes) {
  ::cuda::ptx::cp_async_bulk(::cuda::ptx::space_global, ::cuda::ptx::space_shared, dst, s_src, num_bytes);
}
// Starts to bring bytes into the L2 cache.
inline __device__ void BulkPrefetch(const void* src, uint32_t num_bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(src), "r"(num_bytes) : "memory");
}
// Closes a group of this thread's stores, which may be empty.
inline __device__ void CommitStores() { ::cuda::ptx::cp_async_bulk_commit_group(); }
// Waits until this thread's groups of stores have read their source, but for the last kGroups.
template <int kGroups = 0>
__device__ void WaitForStoresToRead() {
  ::cuda::ptx::cp_async_bulk_wait_group_read(::cuda::ptx::n32_t<kGroups>{});
}

// A barrier of all threads of some warps of the block. Each team has a number of its own, from 1 to 15. Lanes come to
// it together: nvcc 13.0 with --Ofast-compile=max lets those that are ahead count for their whole warp.
template <int kTeam, int kThreads>
__device__ void SyncTeam() {
  __syncwarp();
  asm volatile("barrier.sync %0, %1;" ::"n"(kTeam), "n"(kThreads) : "memory");
}

// One lane arrives for its whole warp. compute-sanitizer's racecheck does not see that this also orders what the other
// lanes did before, and reports them. With PREFIXD_RACECHECK all lanes arrive, and it reports nothing.
#ifdef PREFIXD_RACECHECK
inline constexpr uint32_t kWarpArrivals = 32;
#else
inline constexpr uint32_t kWarpArrivals = 1;
#endif
inline __device__ void ArriveAsWarp(Barrier& barrier) {
  __syncwarp();
  if (threadIdx.x % 32 < kWarpArrivals) barrier.Arrive();
}

// The sizes of a ring's stages for an array of T, in shared memory, and of the tickets that the stages belong to.
template <class T, int kNumStages, int kBytes = 16 * 1024, int kNumTicketStages = 2>
struct RingShape {
  static constexpr int kStages = kNumStages;
  static constexpr int kStageBytes = kBytes;
  static constexpr int kStageItems = kStageBytes / sizeof(T);
  static constexpr int kTicketStages = kNumTicketStages;
  static constexpr int kTicketItems = kTicketStages * kStageItems;
  static constexpr int kTeams = 1;  // More: a role's warps are in teams, which take the stages in turn.

  // The index in the array of the stage's first item. sub: the stage's number in its ticket.
  static __device__ uint64_t StageBegin(uint32_t ticket, int sub) {
    return uint64_t{ticket} * kTicketItems + sub * kStageItems;
  }
  // Whether all items of a stage exist.
  static __device__ bool IsWhole(uint64_t begin, uint64_t num_items) { return begin + kStageItems <= num_items; }
};

// The items of a run in the ring: four, as in kernels/NUMERICS.md, or where the order is free 16 bytes of narrow
// elements.
template <class T, bool kAnyOrder>
constexpr int RingRunItems() {
  return kAnyOrder && sizeof(T) < 4 ? 16 / static_cast<int>(sizeof(T)) : kRunItems;
}

// A RingShape, measured in the parts of kernels/NUMERICS.md. kRun: the number of items of a run, which may differ from
// kRunItems where the order is free.
template <class Shape, int kRun = kRunItems>
struct RingTileShape : Shape {
  static constexpr int kRunItems = kRun;
  static constexpr int kLeafItems = kRun * kJoinSlots;
  static constexpr int kStageLeaves = Shape::kStageItems / kLeafItems;
  // Either a stage holds one or more whole tiles, or a tile takes several stages.
  static constexpr int kStageTiles = kStageLeaves < kJoinSlots ? 1 : kStageLeaves / kJoinSlots;
  static constexpr int kTileStages = kStageLeaves < kJoinSlots ? kJoinSlots / kStageLeaves : 1;
  static constexpr int kTicketTiles = Shape::kTicketStages * kStageLeaves / kJoinSlots;
  static_assert(kTicketTiles * kJoinSlots == Shape::kTicketStages * kStageLeaves);
  static_assert(kJoinSlots % kTicketTiles == 0);
};

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

// Loads the lane's four items of a row; the lanes of a warp hold the row one after the other. Items of up to 4 bytes
// take one access. 8-byte items take two, and lanes 4 to 7 of each 8 begin with the second, so that eight lanes
// together touch every bank once. Called by all lanes.
template <class T>
__device__ void LoadRun(const T* s_run, T (&items)[4]) {
  if constexpr (sizeof(T) <= 4) {
    const auto read = *reinterpret_cast<const Vector<T, 4>*>(s_run);
#pragma unroll
    for (int i = 0; i < 4; ++i) items[i] = read.items[i];
  } else {
    const auto* halves = reinterpret_cast<const Vector<T, 2>*>(s_run);
    const int first = LaneOfWarp() / 4 % 2;
    const Vector<T, 2> read[2] = {halves[first], halves[first ^ 1]};
#pragma unroll
    for (int i = 0; i < 4; ++i) items[i] = first == 0 ? read[i / 2].items[i % 2] : read[1 - i / 2].items[i % 2];
  }
}

// The shared memory that a block of sm_90 can have.
inline constexpr size_t kMaxRingBytes = size_t{227} << 10;

// The state that the roles of every kernel share. Each stage is loaded, used, and freed.
template <int kNumStages>
struct RingState {
  static constexpr int kStages = kNumStages;
  static constexpr uint32_t kEnd = 0xffffffff;

  uint32_t tickets[kStages];  // The ticket of each stage; kEnd in the stages after the last.
  Barrier loaded[kStages];    // One arrival: the load thread's.
  Barrier freed[kStages];     // The stage may be loaded again. Arrivals of warps.

  // Called by one thread, before FenceBarrierInit(). Initialising in parallel takes longer.
  __device__ void Init(uint32_t num_freeing_warps) {
    for (int i = 0; i < kStages; ++i) {
      loaded[i].Init(1);
      freed[i].Init(num_freeing_warps * kWarpArrivals);
    }
  }
};

// Calls visit(position, ticket, sub) for every stage, in the order of the ring, when it is loaded; for one of kTeams
// only for each kTeams-th, from number `team` on, which then must not be freed without it. sub: the stage's number in
// the ticket. Any thread may call it, for itself.
template <class Shape, int kTeams = 1, class Visit>
__device__ void ForEachStage(RingState<Shape::kStages>& ring, Visit&& visit, int team = 0) {
  static_assert(kTeams == 1 || kTeams == Shape::kTeams);
  RingPosition<Shape::kStages> at = {.stage = static_cast<uint32_t>(team)};
  for (int sub = team % Shape::kTicketStages;; sub = (sub + kTeams) % Shape::kTicketStages) {
    ring.loaded[at.stage].Wait(at.parity);
    const uint32_t ticket = ring.tickets[at.stage];
    if (ticket == ring.kEnd) return;
    visit(at, ticket, sub);
#pragma unroll
    for (int i = 0; i < kTeams; ++i) at.Next();
  }
}

// Calls visit(position, ticket) for every ticket, when its first stage is loaded; its other stages may still be in use
// by the ticket before. position: that of the first stage; visit moves it on to the first stage of the next ticket.
template <class Shape, class Visit>
__device__ void ForEachTicket(RingState<Shape::kStages>& ring, Visit&& visit) {
  RingPosition<Shape::kStages> at;
  for (;;) {
    ring.loaded[at.stage].Wait(at.parity);
    const uint32_t ticket = ring.tickets[at.stage];
    if (ticket == ring.kEnd) return;
    visit(at, ticket);
  }
}

// Those of a stage's items that a bulk load brings. The warps that read the stage load the others, if it is not whole.
struct BulkItems {
  uint32_t first;
  uint32_t end;
};

// How many of a stage's items exist, if those of the array end at num_items.
template <class Shape>
__device__ uint32_t NumStageItems(uint64_t begin, uint64_t num_items) {
  if (Shape::IsWhole(begin, num_items)) return Shape::kStageItems;
  return begin < num_items ? static_cast<uint32_t>(num_items - begin) : 0;
}

// Loads items of a stage by a bulk load. s_first, first: where the first of them goes, and stands.
template <int kNumStages, class T>
__device__ void LoadItems(RingState<kNumStages>& ring, uint32_t stage, T* s_first, const T* first, BulkItems items) {
  const uint32_t num_bytes = (items.end - items.first) * sizeof(T);
  if (num_bytes == 0) return ring.loaded[stage].Arrive();
  ring.loaded[stage].ArriveExpecting(num_bytes);
  BulkLoad(s_first, first, num_bytes, &ring.loaded[stage]);
}

// The load thread. It takes tickets, and starts the loads of their stages.
//   Shape     kStages, kTicketStages; kPacedLoads: loads in flight at the start, when more would only queue up in
//             front of the first loads of other blocks
//   ticket    the first ticket; tickets from num_tickets on are empty
//   wait_to_take(position)   called before a ticket is taken, for each stage that it will replace: returns when it is
//             time to take it. From then on all blocks wait for the ticket's tiles.
//   take()    takes the next ticket and returns it
//   load(stage, ticket, sub)  loads stage `sub` of the ticket, arriving at loaded[stage]
template <class Shape, class WaitToTake, class Take, class Load>
__device__ void LoadThroughRing(RingState<Shape::kStages>& ring, uint32_t ticket, uint32_t num_tickets,
                                WaitToTake&& wait_to_take, Take&& take, Load&& load) {
  constexpr int kStages = Shape::kStages;
  RingPosition<kStages> at;
  RingPosition<kStages> replaced;
  RingPosition<kStages> freed;
  RingPosition<kStages> oldest;  // The oldest load that may be in flight, at the start.
  uint32_t num_loads = 0;
  for (;;) {
    for (int sub = 0; sub < Shape::kTicketStages; ++sub) {
      if (num_loads + sub < kStages) continue;
      wait_to_take(replaced);
      replaced.Next();
    }
    if (num_loads > 0) ticket = take();
    if (ticket >= num_tickets) break;
    for (int sub = 0; sub < Shape::kTicketStages; ++sub, ++num_loads, at.Next()) {
      if (num_loads >= kStages) {
        ring.freed[freed.stage].Wait(freed.parity);
        freed.Next();
      }
      if (num_loads >= Shape::kPacedLoads && num_loads < 2 * kStages) {
        ring.loaded[oldest.stage].Wait(oldest.parity);
        oldest.Next();
      }
      ring.tickets[at.stage] = ticket;
      load(at.stage, ticket, sub);
    }
  }
  for (int team = 0; team < Shape::kTeams; ++team, ++num_loads, at.Next(), freed.Next()) {  // Each team finds an end.
    if (num_loads >= kStages) ring.freed[freed.stage].Wait(freed.parity);
    ring.tickets[at.stage] = ring.kEnd;
    ring.loaded[at.stage].Arrive();
  }
}

// The load thread calls this before it has its first ticket. It has the elements of a ticket brought into the cache.
// Some block takes that ticket, not always this one.
template <class Shape, class T>
__device__ void PrefetchTicket(uint32_t ticket, const T* in, uint64_t num_items) {
  for (int sub = 0; sub < Shape::kTicketStages; ++sub) {
    const uint64_t begin = Shape::StageBegin(ticket, sub);
    if (Shape::IsWhole(begin, num_items)) BulkPrefetch(in + begin, Shape::kStageItems * sizeof(T));
  }
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_CUH_
