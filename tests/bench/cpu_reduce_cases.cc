// The reduces that cpu_bench measures.
#include <string>
#include <type_traits>

#include "base/status.h"
#include "tests/bench/cpu_peers.h"
#include "tests/bench/cpu_suite.h"

namespace prefixd::bench {
namespace {

// The case, with prefixd as its only contender so far. A min or max has its position as its number.
template <Op kOp, class In, class Out>
Case MakeCase(Suite& suite) {
  const uint64_t n = suite.data().num_items;
  ReduceArgs args;
  args.dtype = kDTypeOf<In>;
  args.out_dtype = kDTypeOf<Out>;
  args.op = kOp;
  args.in = suite.data().In<In>();
  if constexpr (kOp == Op::kProd) args.in = suite.data().Factors<In>();
  args.num_items = n;
  args.init = {Neutral(kOp, args.StateDType()), ReduceState::kNothing};
  Out* const out = suite.data().values.As<Out>();
  const auto work = [=, &suite] {
    ReduceState state;
    ReduceArgs call = args;
    call.state_out = &state;
    Check(suite.lane().Reduce(call));
    *out = state.value.As<Out>();
    return kOp == Op::kMin || kOp == Op::kMax ? state.position - 1 : 0;
  };
  const bool widens = args.dtype != args.output();
  return {
      .name = StrCat("reduce ", Name(args.dtype), widens ? StrCat(" to ", Name(args.output())) : "", " ", Name(kOp)),
      .bytes = static_cast<double>(n) * sizeof(In),
      .copy_bytes = n * sizeof(In),
      .value_bytes = sizeof(Out),
      .contenders = {{kPrefixd, Threads::kAnyNumber, work}}};
}

template <Op kOp, class In, class Out, Beside kBeside = Beside::kAll>
void AddCase(Suite& suite) {
  Case made = MakeCase<kOp, In, Out>(suite);
  const uint64_t n = suite.data().num_items;
  const In* in = suite.data().In<In>();
  if constexpr (kOp == Op::kProd) in = suite.data().Factors<In>();
  Out* const out = suite.data().values.As<Out>();
  const Out start = Identity(kOp, kDTypeOf<Out>).template As<Out>();
  const auto storing = [out](auto value) {
    return [=] {
      *out = value();
      return uint64_t{0};
    };
  };
  const Combine<kOp, Out> combine;
  made.contenders.insert(made.contenders.begin(),
                         {kLoop, Threads::kOne, storing([=] { return ReduceByLoop<kOp>(in, n, start); })});
  if constexpr (kBeside == Beside::kAll) {
    made.contenders.push_back({kStd, Threads::kOne, storing([=] { return std::reduce(in, in + n, start, combine); })});
    made.contenders.push_back({kStdPar, Threads::kAnyNumber, storing([=] {
                                 return std::reduce(std::execution::par_unseq, in, in + n, start, combine);
                               })});
    made.contenders.push_back({kTbb, Threads::kAnyNumber, storing([=] { return ReduceByTbb<kOp>(in, n, start); })});
  }
  suite.Add(made);
}

// With the index.
template <Op kOp, class T, Beside kBeside = Beside::kAll>
void AddBestCase(Suite& suite) {
  Case made = MakeCase<kOp, T, T>(suite);
  const uint64_t n = suite.data().num_items;
  const T* const in = suite.data().In<T>();
  T* const out = suite.data().values.As<T>();
  const auto storing = [out](auto find) {
    return [=] {
      const Best<T> best = find();
      *out = best.value;
      return best.index;
    };
  };
  made.contenders.insert(made.contenders.begin(),
                         {kLoop, Threads::kOne, storing([=] { return BestByLoop<kOp>(in, n); })});
  if constexpr (kBeside == Beside::kAll) {
    made.contenders.push_back({kStd, Threads::kOne, storing([=] { return BestByStd<kOp>(in, n); })});
    made.contenders.push_back(
        {kStdPar, Threads::kAnyNumber, storing([=] { return BestByStd<kOp>(in, n, std::execution::par_unseq); })});
    made.contenders.push_back({kTbb, Threads::kAnyNumber, storing([=] { return BestByTbb<kOp>(in, n); })});
  }
  suite.Add(made);
}

template <Op kOp, class In, class Out>
void AddIfServed(Suite& suite) {
  if constexpr (kHasPeers<In> && IsSupported(Primitive::kReduce, kDTypeOf<In>, kDTypeOf<Out>, kOp)) {
    if constexpr ((kOp == Op::kMin || kOp == Op::kMax) && std::is_same_v<In, Out>) {
      AddBestCase<kOp, In, Beside::kLoop>(suite);
    } else if constexpr (kOp != Op::kMin && kOp != Op::kMax) {
      AddCase<kOp, In, Out, Beside::kLoop>(suite);
    }
  }
}

template <class T>
void AddSum(Suite& suite) {
  if constexpr (kHasPeers<T>) AddCase<Op::kSum, T, T>(suite);
}

template <class In, class Out>
void AddEveryOp(Suite& suite) {
#define PREFIXD_ADD(op, name) AddIfServed<Op::op, In, Out>(suite);
  PREFIXD_OPS(PREFIXD_ADD)
#undef PREFIXD_ADD
}

}  // namespace

void AddEveryReduce(Suite& suite) {
#define PREFIXD_ADD(name, type, out_name, out_type) AddEveryOp<type, out_type>(suite);
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_ADD)
#undef PREFIXD_ADD
}

void AddReduceCases(Suite& suite) {
#define PREFIXD_ADD(dtype, type) AddSum<type>(suite);
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_ADD)
#undef PREFIXD_ADD
  AddBestCase<Op::kMin, float>(suite);
  AddBestCase<Op::kMax, float>(suite);
  AddBestCase<Op::kMin, int32_t>(suite);
  AddBestCase<Op::kMax, int32_t>(suite);
  AddBestCase<Op::kMin, uint8_t>(suite);
  AddBestCase<Op::kMax, uint8_t>(suite);
  AddBestCase<Op::kMin, double>(suite);
  AddBestCase<Op::kMax, double>(suite);
  AddCase<Op::kProd, float, float>(suite);
  AddCase<Op::kSum, uint8_t, uint64_t>(suite);
  AddCase<Op::kSum, float, double>(suite);
}

}  // namespace prefixd::bench
