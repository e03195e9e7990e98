// The scans that cpu_bench measures.
#include <algorithm>
#include <string>
#include <type_traits>

#include "base/status.h"
#include "tests/bench/cpu_peers.h"
#include "tests/bench/cpu_suite.h"

namespace prefixd::bench {
namespace {

enum class Place { kOutOfPlace, kInPlace };

template <class S>
std::string NameOf(Place place) {
  constexpr DType kIn = kDTypeOf<typename S::In>;
  constexpr DType kOut = kDTypeOf<typename S::Out>;
  std::string name = StrCat("scan ", Name(kIn), kIn == kOut ? "" : StrCat(" to ", Name(kOut)), " ", Name(S::kOp));
  if (S::kKind == ScanKind::kExclusive) name += " exclusive";
  if (S::kReverse) name += " reverse";
  if (place == Place::kInPlace) name += " in place";
  return name;
}

template <class S, Beside kBeside = Beside::kAll>
void AddCase(Suite& suite, Place place = Place::kOutOfPlace) {
  using In = typename S::In;
  using Out = typename S::Out;
  const uint64_t n = suite.data().num_items;
  const In* source = suite.data().In<In>();
  if constexpr (S::kOp == Op::kProd) source = suite.data().Factors<In>();
  Out* const out = suite.data().values.As<Out>();
  const In* const in = place == Place::kInPlace ? suite.data().values.As<In>() : source;

  ScanArgs args;
  args.dtype = kDTypeOf<In>;
  args.out_dtype = kDTypeOf<Out>;
  args.op = S::kOp;
  args.kind = S::kKind;
  args.reverse = S::kReverse;
  args.in = in;
  args.out = out;
  args.num_items = n;
  args.init = Value::Of(S::Start());
  const auto returning_0 = [](auto work) {
    return [work] {
      work();
      return uint64_t{0};
    };
  };
  Case made = {.name = NameOf<S>(place),
               .bytes = static_cast<double>(n) * (sizeof(In) + sizeof(Out)),
               .copy_bytes = n * std::max(sizeof(In), sizeof(Out)),
               .value_bytes = n * sizeof(Out),
               .source = place == Place::kInPlace ? source : nullptr};
  made.contenders = {{kLoop, Threads::kOne, returning_0([=] { ScanByLoop<S>(in, out, n); })},
                     {kPrefixd, Threads::kAnyNumber, returning_0([=, &suite] { Check(suite.lane().Scan(args)); })}};
  if constexpr (kBeside == Beside::kAll) {
    made.contenders.push_back({kStd, Threads::kOne, returning_0([=] { ScanByStd<S>(in, out, n); })});
    made.contenders.push_back({kTbb, Threads::kAnyNumber, returning_0([=] { ScanByTbb<S>(in, out, n); })});
    // The parallel scan of floats in libstdc++ 12 begins its parts with 0: right for a sum, wrong for min and max.
    if constexpr (S::kOp == Op::kSum || !kIsFloating<Out>) {
      made.contenders.push_back(
          {kStdPar, Threads::kAnyNumber, returning_0([=] { ScanByStd<S>(in, out, n, std::execution::par); })});
    }
  }
  suite.Add(made);
}

template <Op kOp, class In, class Out>
void AddEveryKind(Suite& suite) {
  if constexpr (kHasPeers<In> && IsSupported(Primitive::kScan, kDTypeOf<In>, kDTypeOf<Out>, kOp)) {
    AddCase<ScanOf<In, Out, kOp>, Beside::kLoop>(suite);
    AddCase<ScanOf<In, Out, kOp, ScanKind::kExclusive>, Beside::kLoop>(suite);
    AddCase<ScanOf<In, Out, kOp, ScanKind::kInclusive, true>, Beside::kLoop>(suite);
    if constexpr (std::is_same_v<In, Out>) AddCase<ScanOf<In, Out, kOp>, Beside::kLoop>(suite, Place::kInPlace);
  }
}

template <class In, class Out>
void AddEveryOp(Suite& suite) {
#define PREFIXD_ADD(op, name) AddEveryKind<Op::op, In, Out>(suite);
  PREFIXD_OPS(PREFIXD_ADD)
#undef PREFIXD_ADD
}

}  // namespace

void AddEveryScan(Suite& suite) {
#define PREFIXD_ADD(name, type, out_name, out_type) AddEveryOp<type, out_type>(suite);
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_ADD)
#undef PREFIXD_ADD
}

void AddScanCases(Suite& suite) {
  AddCase<ScanOf<float, float, Op::kSum>>(suite);
  AddCase<ScanOf<double, double, Op::kSum>>(suite);
  AddCase<ScanOf<int32_t, int32_t, Op::kSum>>(suite);
  AddCase<ScanOf<int64_t, int64_t, Op::kSum>>(suite);
  AddCase<ScanOf<uint8_t, uint8_t, Op::kSum>>(suite);
  AddCase<ScanOf<int16_t, int16_t, Op::kSum>>(suite);
  AddCase<ScanOf<float, float, Op::kSum, ScanKind::kExclusive>>(suite);
  AddCase<ScanOf<int32_t, int32_t, Op::kSum, ScanKind::kExclusive>>(suite);
  AddCase<ScanOf<float, float, Op::kSum, ScanKind::kInclusive, true>>(suite);
  AddCase<ScanOf<int32_t, int32_t, Op::kSum, ScanKind::kInclusive, true>>(suite);
  AddCase<ScanOf<float, float, Op::kSum>>(suite, Place::kInPlace);
  AddCase<ScanOf<int32_t, int32_t, Op::kSum>>(suite, Place::kInPlace);
  AddCase<ScanOf<float, float, Op::kMin>>(suite);
  AddCase<ScanOf<double, double, Op::kMin>>(suite);
  AddCase<ScanOf<uint8_t, uint8_t, Op::kMin>>(suite);
  AddCase<ScanOf<int32_t, int32_t, Op::kMax>>(suite);
  AddCase<ScanOf<int32_t, int32_t, Op::kProd>>(suite);
  AddCase<ScanOf<uint8_t, uint8_t, Op::kXor>>(suite);
  AddCase<ScanOf<uint8_t, uint64_t, Op::kSum>>(suite);
  AddCase<ScanOf<int16_t, int32_t, Op::kSum>>(suite);
  AddCase<ScanOf<int32_t, int64_t, Op::kSum>>(suite);
  AddCase<ScanOf<float, double, Op::kSum>>(suite);
  AddCase<ScanOf<Float16, float, Op::kSum>>(suite);
}

}  // namespace prefixd::bench
