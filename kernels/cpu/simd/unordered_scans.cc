// Scan and reduce where every order gives the same bits: integers by every operator, and the smallest or largest float.
#include "kernels/cpu/simd/tables.h"

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lane_operators.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// ---- Scan ----------------------------------------------------------------------------------------------------------

// Sets the lanes that a shift left zero to the operator's identity: the first kCount of every kPeriod.
template <class O, int kCount, int kPeriod, class V>
PREFIXD_INLINE V WithIdentity(V v) {
  using T = Lane<V>;
  if constexpr (O::template kIdentity<T> == 0) {
    return v;
  } else {
    constexpr auto kFrom = [](int i) { return i % kPeriod < kCount ? i : kLanes<T> + i; };
    return v | Shuffle<kFrom>(Splat(O::template kIdentity<T>), V{});
  }
}

template <class O, int kCount, class V>
PREFIXD_INLINE V StepInBlocks(V v) {
  constexpr int kSize = sizeof(Lane<V>);
  if constexpr (kCount * kSize < kBlockBytes) {
    const V before = WithIdentity<O, kCount, kBlockBytes / kSize>(ShiftInBlocks<kCount * kSize>(v));
    return StepInBlocks<O, 2 * kCount>(O::Of(before, v));
  } else {
    return v;
  }
}

template <class O, int kCount, class V>
PREFIXD_INLINE V ShiftBlocksUp(V v) {
  return WithIdentity<O, kCount * kBlockBytes / static_cast<int>(sizeof(Lane<V>)), kLanes<Lane<V>>>(
      ShiftBlocks<kCount>(v));
}

// The inclusive scan of the lanes of one vector.
template <class O, class V>
PREFIXD_INLINE V ScanLanes(V v) {
  v = StepInBlocks<O, 1>(v);
  if constexpr (kBlocks > 1) {
    constexpr int kPerBlock = kBlockBytes / static_cast<int>(sizeof(Lane<V>));
    constexpr auto kLastOfBlock = [](int i) { return i | (kPerBlock - 1); };
    V before = ShiftBlocksUp<O, 1>(Shuffle<kLastOfBlock>(v, v));
    if constexpr (kBlocks > 2) {
      before = O::Of(before, ShiftBlocksUp<O, 1>(before));
      before = O::Of(before, ShiftBlocksUp<O, 2>(before));
    }
    v = O::Of(before, v);
  }
  return v;
}

// Makes what was scanned lane by lane, four vectors that follow one another, the scan behind *carry, which is in all
// lanes, and *carry what is behind it.
template <class O, class V>
PREFIXD_INLINE void JoinVectors(V (&v)[4], bool exclusive, V* carry) {
  const V t0 = SplatLast(v[0]);
  const V t01 = O::Of(t0, SplatLast(v[1]));
  const V t2 = SplatLast(v[2]);
  const V t0123 = O::Of(t01, O::Of(t2, SplatLast(v[3])));
  v[0] = O::Of(*carry, v[0]);
  v[1] = O::Of(*carry, O::Of(t0, v[1]));
  v[2] = O::Of(*carry, O::Of(t01, v[2]));
  v[3] = O::Of(*carry, O::Of(O::Of(t01, t2), v[3]));
  if (exclusive) {
    v[3] = ShiftIn(v[2], v[3]);
    v[2] = ShiftIn(v[1], v[2]);
    v[1] = ShiftIn(v[0], v[1]);
    v[0] = ShiftIn(*carry, v[0]);
  }
  *carry = O::Of(*carry, t0123);  // The only step that waits for the one before.
}

// Scans items behind `before`, a key, and returns the key of what follows. With kReverse the last item comes first. in
// may be out. `next` is fetched meanwhile.
template <class O, class Keys, bool kReverse, bool kStream>
__attribute__((noinline)) typename Keys::Key ScanItems(const typename Keys::Key* in, typename Keys::Key* out,
                                                       uint64_t num_items, bool exclusive, typename Keys::Key before,
                                                       Keys keys, const void* next) {
  using T = typename Keys::Key;
  using V = Vector<T>;
  constexpr uint64_t kL = kLanes<T>;
  // Where the kL items from i on lie, in the order of the scan.
  const auto place = [=](uint64_t i) { return kReverse ? num_items - kL - i : i; };
  const auto load = [=](uint64_t i) __attribute__((always_inline)) {
    const V v = Load(in + place(i));
    return kReverse ? Reversed(v) : v;
  };
  const auto write = [=](uint64_t i, V v) __attribute__((always_inline)) {
    StoreOrStream<kStream>(out + place(i), kReverse ? Reversed(v) : v);
  };
  V carry = Splat(before);
  [[maybe_unused]] V item = keys.ElementOf(carry);  // In its place where Keys::kTriesItems.
  uint64_t i = 0;
  for (; i + 4 * kL <= num_items; i += 4 * kL) {
    Fetch<4 * kVectorBytes>(static_cast<const T*>(next) + (kReverse ? num_items - 4 * kL - i : i));
    V v[4];
    for (int k = 0; k < 4; ++k) v[k] = load(i + k * kL);
    if constexpr (Keys::kTriesItems) {
      if (!Keys::NeedKeys(v[0], v[1], v[2], v[3], item)) {
        V largest = keys.Flipped(item);
        for (int k = 0; k < 4; ++k) v[k] = ScanLanes<LargestFloat>(keys.Flipped(v[k]));
        JoinVectors<LargestFloat>(v, exclusive, &largest);
        for (int k = 0; k < 4; ++k) write(i + k * kL, keys.Flipped(v[k]));
        item = keys.Flipped(largest);
        continue;
      }
      carry = keys.KeyOf(item);
    }
    for (int k = 0; k < 4; ++k) v[k] = ScanLanes<O>(keys.KeyOf(v[k]));
    JoinVectors<O>(v, exclusive, &carry);
    for (int k = 0; k < 4; ++k) write(i + k * kL, keys.ElementOf(v[k]));
    if constexpr (Keys::kTriesItems) item = keys.ElementOf(carry);
  }
  if constexpr (Keys::kTriesItems) carry = keys.KeyOf(item);
  for (; i + kL <= num_items; i += kL) {
    const V v = O::Of(carry, ScanLanes<O>(keys.KeyOf(load(i))));
    write(i, keys.ElementOf(exclusive ? ShiftIn(carry, v) : v));
    carry = SplatLast(v);
  }
  T last = carry[0];
  for (; i < num_items; ++i) {
    const uint64_t at = kReverse ? num_items - 1 - i : i;
    const T value = O::Of(last, keys.KeyOf(in[at]));
    out[at] = keys.ElementOf(exclusive ? last : value);
    last = value;
  }
  return last;
}

template <class T>
T BitsOf(const void* from) {
  T bits;
  __builtin_memcpy(&bits, from, sizeof(bits));
  return bits;
}

// Scans a part without vectors, in runs of four items that do not wait for the run before: for lanes of 64 bits where a
// vector has so few of them that its steps cost more.
template <class In, class Out, bool kReverse, class O, class Keys>
__attribute__((noinline)) typename Keys::Key ScanRuns(const ScanPart& part, typename Keys::Key before, Keys keys) {
  using T = typename Keys::Key;
  const auto* const in = static_cast<const In*>(part.in) + (kReverse ? part.num_items - 1 : 0);
  auto* const out = static_cast<T*>(part.out) + (kReverse ? part.num_items - 1 : 0);
  const auto key_at = [=](uint64_t i) __attribute__((always_inline)) {
    const auto item = static_cast<Out>(kReverse ? *(in - i) : in[i]);
    return keys.KeyOf(BitsOf<T>(&item));
  };
  const auto write = [=](uint64_t i, T key) __attribute__((always_inline)) {
    *(kReverse ? out - i : out + i) = keys.ElementOf(key);
  };
  uint64_t i = 0;
  for (; i + 4 <= part.num_items; i += 4) {
    const T k0 = key_at(i);
    const T k1 = O::Of(k0, key_at(i + 1));
    const T k2 = O::Of(k1, key_at(i + 2));
    const T k3 = O::Of(k2, key_at(i + 3));
    const T all = O::Of(before, k3);
    if (part.exclusive) {
      write(i, before);
      write(i + 1, O::Of(before, k0));
      write(i + 2, O::Of(before, k1));
      write(i + 3, O::Of(before, k2));
    } else {
      write(i, O::Of(before, k0));
      write(i + 1, O::Of(before, k1));
      write(i + 2, O::Of(before, k2));
      write(i + 3, all);
    }
    before = all;
  }
  for (; i < part.num_items; ++i) {
    const T value = O::Of(before, key_at(i));
    write(i, part.exclusive ? before : value);
    before = value;
  }
  return before;
}

// Copies count items, converted.
template <class In, class Out>
__attribute__((noinline)) void Convert(const In* in, int count, Out* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<Out>(in[i]);
}

// Scans a part that is converted on the way, through a buffer that stays in the first-level cache.
template <class In, class Out, bool kReverse, bool kStream, class O, class Keys>
typename Keys::Key ScanConverted(const ScanPart& part, typename Keys::Key before, Keys keys) {
  using T = typename Keys::Key;
  constexpr int kItems = 2048 / sizeof(T);  // Short: while one is scanned, loads of the next can begin.
  alignas(kVectorBytes) Out buffer[kItems];
  const auto* const in = static_cast<const In*>(part.in);
  const auto* next = static_cast<const In*>(part.next);
  // Where there is no other part to fetch, this one's items a little ahead: that stages follow each other backwards, in
  // which items stand forwards, is not what the hardware foresees.
  constexpr int kAhead = 8192 / sizeof(In);
  if (kReverse && next == in) next -= kAhead;
  for (uint64_t done = 0; done < part.num_items; done += kItems) {
    const uint64_t left = part.num_items - done;
    const int count = left < kItems ? static_cast<int>(left) : kItems;
    const uint64_t first = kReverse ? left - count : done;
    Convert(in + first, count, buffer);
    Fetch<kItems * sizeof(In)>(next + first);
    before =
        ScanItems<O, Keys, kReverse, kStream>(reinterpret_cast<const T*>(buffer), static_cast<T*>(part.out) + first,
                                              count, part.exclusive, before, keys, /*next=*/buffer);
  }
  return before;
}

// The same. Operators on bits need no keys here.
template <class In, class Out, bool kReverse, class O, class Keys>
typename Keys::Key ScanRunsByBits(const ScanPart& part, typename Keys::Key before, Keys keys) {
  if constexpr (std::is_same_v<O, BitOr>) {
    const auto bits = keys.ElementOf(before);
    const Plain<typename Keys::Key> plain;
    return keys.KeyOf(keys.mask == 0 ? ScanRuns<In, Out, kReverse, BitOr>(part, bits, plain)
                                     : ScanRuns<In, Out, kReverse, BitAnd>(part, bits, plain));
  } else {
    return ScanRuns<In, Out, kReverse, O>(part, before, keys);
  }
}

// Whether 64-bit integers are scanned sooner in vectors than in runs, as measured on Zen 5 and on a Xeon of 2023. They
// need two of these advantages: nothing is converted; memory is waited for anyway; there are eight lanes, or four that
// are neither turned nor shifted. Products are slow or missing; without AVX-512 so are comparisons.
template <class O, bool kSame, bool kReverse, bool kStream>
constexpr bool VectorsPay(bool exclusive) {
  constexpr bool kHasEight = kVectorBytes == 64;
  constexpr bool kHasFour = kVectorBytes == 32;
  if constexpr (std::is_same_v<O, Multiply>) return kHasEight && kStream;
  if constexpr (std::is_same_v<O, Largest>) return kHasEight || (kHasFour && kSame && kStream);
  return kSame + kStream + (kHasEight || (kHasFour && !kReverse && !exclusive)) >= 2;
}

template <class In, class Out, bool kReverse, bool kStream, class O, class Keys>
typename Keys::Key ScanPartOf(const ScanPart& part, typename Keys::Key before, Keys keys) {
  using T = typename Keys::Key;
  if constexpr (sizeof(T) == 8 && !kIsFloating<Out>) {
    if (!VectorsPay<O, std::is_same_v<In, Out>, kReverse, kStream>(part.exclusive)) {
      return ScanRunsByBits<In, Out, kReverse, O>(part, before, keys);
    }
  }
  if constexpr (std::is_same_v<In, Out>) {
    return ScanItems<O, Keys, kReverse, kStream>(static_cast<const T*>(part.in), static_cast<T*>(part.out),
                                                 part.num_items, part.exclusive, before, keys, part.next);
  } else {
    return ScanConverted<In, Out, kReverse, kStream, O>(part, before, keys);
  }
}

template <class In, class Out, class O, class Keys>
void Scan(const ScanPart& part, void* prefix, Keys keys) {
  using T = typename Keys::Key;
  Out* const last = &static_cast<Prefix<Out>*>(prefix)->last;
  const T before = keys.KeyOf(BitsOf<T>(last));
  // Vectors of a reverse scan are counted from the end.
  const bool stream = part.stream && IsAligned(static_cast<T*>(part.out) + (part.reverse ? part.num_items : 0));
  T key;
  if (part.reverse) {
    key = stream ? ScanPartOf<In, Out, true, true, O>(part, before, keys)
                 : ScanPartOf<In, Out, true, false, O>(part, before, keys);
  } else {
    key = stream ? ScanPartOf<In, Out, false, true, O>(part, before, keys)
                 : ScanPartOf<In, Out, false, false, O>(part, before, keys);
  }
  const T bits = keys.ElementOf(key);
  __builtin_memcpy(last, &bits, sizeof(bits));
  if (stream) FinishStreaming();
}

// ---- Reduce --------------------------------------------------------------------------------------------------------

// The key of all items; the identity if there are none.
template <class O, class Keys>
__attribute__((noinline)) typename Keys::Key ReduceItems(const typename Keys::Key* in, uint64_t num_items, Keys keys) {
  using T = typename Keys::Key;
  using V = Vector<T>;
  constexpr uint64_t kL = kLanes<T>;
  const V identity = Splat(O::template kIdentity<T>);
  V v0 = identity, v1 = identity, v2 = identity, v3 = identity;
  uint64_t i = 0;
  for (; i + 4 * kL <= num_items; i += 4 * kL) {
    v0 = O::Of(v0, keys.KeyOf(Load(in + i)));
    v1 = O::Of(v1, keys.KeyOf(Load(in + i + kL)));
    v2 = O::Of(v2, keys.KeyOf(Load(in + i + 2 * kL)));
    v3 = O::Of(v3, keys.KeyOf(Load(in + i + 3 * kL)));
  }
  const V all = O::Of(O::Of(v0, v1), O::Of(v2, v3));
  T value = all[0];
  for (uint64_t lane = 1; lane < kL; ++lane) value = O::Of(value, static_cast<T>(all[lane]));
  for (; i < num_items; ++i) value = O::Of(value, keys.KeyOf(in[i]));
  return value;
}

// The sum of items that are shorter than 8 bytes, as if converted to 64 bits: lanes are added to their neighbours in
// lanes of twice the size, which are emptied before they overflow. Signed items are taken to be larger by their range's
// half, which is taken off at the end.
template <class In>
__attribute__((noinline)) uint64_t SumWide(const In* in, uint64_t num_items) {
  using T = Unsigned<In>;
  using Half = Vector<T>;
  using Wide = Vector<typename IntegersOf<2 * sizeof(T)>::Unsigned>;
  constexpr int kL = kLanes<T>;
  constexpr int kBits = 8 * sizeof(T);
  constexpr uint64_t kChunk = sizeof(T) == 1 ? 128 : 16384;  // Vectors that a lane has room for.
  constexpr T kOffset = kIsSignedLane<In> ? kTopBit<T> : T{0};
  const auto add_pairs = []<class V>(V v, int bits) __attribute__((always_inline)) {
    const V low = Splat(static_cast<Lane<V>>((uint64_t{1} << bits) - 1));
    return (v & low) + (v >> Splat(static_cast<Lane<V>>(bits)));
  };
  Vector<uint64_t> sum = {};
  uint64_t i = 0;
  while (i + kL <= num_items) {
    Wide w0 = {}, w1 = {};
    uint64_t vectors = (num_items - i) / kL;
    if (vectors > kChunk) vectors = kChunk;
    uint64_t k = 0;
    for (; k + 2 <= vectors; k += 2) {
      w0 += add_pairs(reinterpret_cast<Wide>(Half(Load(reinterpret_cast<const T*>(in) + i + k * kL) ^ kOffset)), kBits);
      w1 += add_pairs(reinterpret_cast<Wide>(Half(Load(reinterpret_cast<const T*>(in) + i + k * kL + kL) ^ kOffset)),
                      kBits);
    }
    if (k < vectors) {
      w0 += add_pairs(reinterpret_cast<Wide>(Half(Load(reinterpret_cast<const T*>(in) + i + k * kL) ^ kOffset)), kBits);
    }
    i += vectors * kL;
    for (const Wide wide : {w0, w1}) {
      if constexpr (sizeof(T) == 4) {
        sum += wide;
      } else {
        auto words = reinterpret_cast<Vector<uint32_t>>(wide);
        if constexpr (sizeof(T) == 1) words = add_pairs(words, 16);
        sum += add_pairs(reinterpret_cast<Vector<uint64_t>>(words), 32);
      }
    }
  }
  uint64_t value = 0;
  for (int lane = 0; lane < kLanes<uint64_t>; ++lane) value += sum[lane];
  value -= uint64_t{kOffset} * i;
  for (; i < num_items; ++i) value += static_cast<uint64_t>(in[i]);
  return value;
}

template <class In, class Out>
__attribute__((noinline)) Out ProductWide(const In* in, uint64_t num_items) {
  using T = Unsigned<Out>;
  constexpr int kItems = 8192 / sizeof(T);
  alignas(kVectorBytes) Out buffer[kItems];
  T value = 1;
  for (uint64_t i = 0; i < num_items; i += kItems) {
    const int count = num_items - i < kItems ? static_cast<int>(num_items - i) : kItems;
    Convert(in + i, count, buffer);
    value *= ReduceItems<Multiply>(reinterpret_cast<const T*>(buffer), count, Plain<T>{});
  }
  return static_cast<Out>(value);
}

// The index of the first of the items whose key is the largest.
template <class Keys>
uint64_t IndexOfLargest(const void* items, uint64_t num_items, Keys keys) {
  using T = typename Keys::Key;
  constexpr uint64_t kBlock = 16384 / sizeof(T);  // Is in the first-level cache when it is searched.
  const auto* const in = static_cast<const T*>(items);
  uint64_t index = 0;
  T largest = keys.KeyOf(in[0]);
  for (uint64_t first = 0; first < num_items; first += kBlock) {
    const uint64_t count = num_items - first < kBlock ? num_items - first : kBlock;
    const T here = ReduceItems<Largest>(in + first, count, keys);
    if (here <= largest) continue;
    largest = here;
    index = first;
    constexpr int kL = kLanes<T>;
    while (index + kL <= first + count && Bits(keys.KeyOf(Load(in + index)) == Splat(largest)) == 0) index += kL;
    while (keys.KeyOf(in[index]) != largest) ++index;
  }
  return index;
}

// ---- The tables ----------------------------------------------------------------------------------------------------
// Each operator of the contract as an operator on keys. `In` and `Out` are element types.
template <Op kOp, class T>
constexpr auto KeysOf() {
  if constexpr (kIsFloating<T>) {
    return FloatKeys<Signed<T>>{static_cast<Signed<T>>(kOp == Op::kMin ? -1 : 0)};
  } else if constexpr (kOp == Op::kMin || kOp == Op::kMax) {
    using K = Ordered<T>;
    const K order = kIsSignedLane<K> == kIsSignedLane<T> ? K{0} : kTopBit<K>;
    return Turned<K>{static_cast<K>(kOp == Op::kMin ? ~order : order)};
  } else if constexpr (kOp == Op::kAnd) {
    return Turned<Unsigned<T>>{static_cast<Unsigned<T>>(-1)};
  } else if constexpr (kOp == Op::kOr) {
    return Turned<Unsigned<T>>{0};
  } else {
    static_assert(kOp == Op::kSum || kOp == Op::kProd || kOp == Op::kXor);
    return Plain<Unsigned<T>>{};
  }
}

template <Op kOp>
constexpr auto OperatorOf() {
  if constexpr (kOp == Op::kSum) {
    return Add{};
  } else if constexpr (kOp == Op::kProd) {
    return Multiply{};
  } else if constexpr (kOp == Op::kMin || kOp == Op::kMax) {
    return Largest{};
  } else if constexpr (kOp == Op::kXor) {
    return BitXor{};
  } else {
    static_assert(kOp == Op::kAnd || kOp == Op::kOr);
    return BitOr{};
  }
}

template <class In, class Out, Op kOp>
void ScanOf(const ScanPart& part, void* prefix) {
  Scan<In, Out, decltype(OperatorOf<kOp>())>(part, prefix, KeysOf<kOp, Out>());
}

template <class In, class Out, Op kOp>
void ReduceOf(const void* in, uint64_t num_items, bool /*reverse*/, void* value) {
  Out result;
  if constexpr (!std::is_same_v<In, Out> && kOp == Op::kSum) {
    result = static_cast<Out>(SumWide(static_cast<const In*>(in), num_items));
  } else if constexpr (!std::is_same_v<In, Out> && kOp == Op::kProd) {
    result = ProductWide<In, Out>(static_cast<const In*>(in), num_items);
  } else {  // The other operators do not care whether items are converted before or after.
    const auto keys = KeysOf<kOp, In>();
    using T = typename decltype(KeysOf<kOp, In>())::Key;
    const T key = ReduceItems<decltype(OperatorOf<kOp>())>(static_cast<const T*>(in), num_items, keys);
    const T bits = keys.ElementOf(key);
    In item;
    __builtin_memcpy(&item, &bits, sizeof(bits));
    result = static_cast<Out>(item);
  }
  __builtin_memcpy(value, &result, sizeof(result));
}

template <class Out, Op kOp>
void AddOf(const void* values, uint64_t num_values, void* prefix) {
  const auto keys = KeysOf<kOp, Out>();
  using T = typename decltype(KeysOf<kOp, Out>())::Key;
  Out* const last = &static_cast<Prefix<Out>*>(prefix)->last;
  T key = keys.KeyOf(BitsOf<T>(last));
  for (uint64_t i = 0; i < num_values; ++i) {
    key = decltype(OperatorOf<kOp>())::Of(key, keys.KeyOf(BitsOf<T>(static_cast<const Out*>(values) + i)));
  }
  const T bits = keys.ElementOf(key);
  __builtin_memcpy(last, &bits, sizeof(bits));
}

template <class In, Op kOp>
uint64_t ExtremumOf(const void* in, uint64_t num_items) {
  return IndexOfLargest(in, num_items, KeysOf<kOp, In>());
}

template <class In, class Out, Op kOp>
constexpr void SetScan(ScanTable* table) {
  if constexpr (IsSupported(Primitive::kScan, kDTypeOf<In>, kDTypeOf<Out>, kOp) && !IsOrdered(kDTypeOf<Out>, kOp)) {
    table->of[static_cast<int>(kDTypeOf<In>)][static_cast<int>(kDTypeOf<Out>)][static_cast<int>(kOp)] = {
        ReduceOf<In, Out, kOp>, AddOf<Out, kOp>, ScanOf<In, Out, kOp>};
  }
}

constexpr ScanTable MakeScans() {
  ScanTable table = {};
#define PREFIXD_SET_OP(enumerator, name) SetScan<In, Out, Op::enumerator>(&table);
#define PREFIXD_SET(name, type, out_name, out_type) \
  {                                                 \
    using In = type;                                \
    using Out = out_type;                           \
    PREFIXD_OPS(PREFIXD_SET_OP)                     \
  }
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_SET)
#undef PREFIXD_SET
#undef PREFIXD_SET_OP
  return table;
}

constexpr ExtremumTable MakeExtrema() {
  ExtremumTable table = {};
#define PREFIXD_SET(name, type)                                          \
  table.min[static_cast<int>(DType::name)] = ExtremumOf<type, Op::kMin>; \
  table.max[static_cast<int>(DType::name)] = ExtremumOf<type, Op::kMax>;
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_SET)
#undef PREFIXD_SET
  return table;
}

}  // namespace

constinit const ScanTable kUnorderedScans = MakeScans();
constinit const ExtremumTable kExtrema = MakeExtrema();

}  // namespace prefixd::cpu::PREFIXD_ISA
