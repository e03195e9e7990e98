#include "kernels/yardsticks/yardsticks.h"

#include "kernels/yardsticks/cub/cub.h"
#include "kernels/yardsticks/cuda/textbooks.h"
#include "kernels/yardsticks/serves.h"

namespace prefixd::cuda {
namespace {

// Whether the textbooks' kernels exist for the types.
template <class In, class Out>
constexpr bool kIsInTextbooks = kTextbooksServe(kDTypeOf<In>, kDTypeOf<Out>, Op::kSum);

}  // namespace

std::vector<AlgorithmInfo> YardstickAlgorithms() {
  constexpr char kCub[] = "NVIDIA's library; Note and Save";
  std::vector<AlgorithmInfo> rows = {
      {.primitive = Primitive::kScan,
       .algorithm = {Strategy::kCub},
       .work = "2n",
       .depth = "log n",
       .traffic = "2n",
       .launches = "2 or 3",
       .deterministic = false,
       .serves = kCubServes,
       .source = kCub},
      {.primitive = Primitive::kReduce,
       .algorithm = {Strategy::kCub},
       .work = "n",
       .depth = "log n",
       .traffic = "n",
       .launches = "2 or 3",
       .serves = kCubServes,
       .source = kCub},
      {.primitive = Primitive::kCompact,
       .algorithm = {Strategy::kCub},
       .work = "2n",
       .depth = "log n",
       .traffic = "n and what is kept",
       .launches = "2 and more",
       .serves = kCubCompactsServe,
       .source = kCub},
  };
  const std::vector<AlgorithmInfo> textbooks = TextbookAlgorithms();
  rows.insert(rows.end(), textbooks.begin(), textbooks.end());
  return rows;
}

cudaError_t LaunchYardstick(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches) {
  return VisitOutput(args.dtype, args.output(), [&](auto in, auto out) -> cudaError_t {
    using In = typename decltype(in)::type;
    using Out = typename decltype(out)::type;
    if constexpr (kCubServes(kDTypeOf<In>, kDTypeOf<Out>, Op::kSum)) {
      if (args.algorithm.strategy == Strategy::kCub) return LaunchCubScan<In, Out>(args, context, num_launches);
    }
    if constexpr (kIsInTextbooks<In, Out>) return LaunchTextbookScan<In>(args, context, num_launches);
    FatalValue("LaunchYardstick of a scan", args.algorithm.strategy);
  });
}

cudaError_t LaunchYardstick(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
  return VisitOutput(args.dtype, args.output(), [&](auto in, auto out) -> cudaError_t {
    using In = typename decltype(in)::type;
    using Out = typename decltype(out)::type;
    if constexpr (kCubServes(kDTypeOf<In>, kDTypeOf<Out>, Op::kSum)) {
      if (args.algorithm.strategy == Strategy::kCub) return LaunchCubReduce<In, Out>(args, context, num_launches);
    }
    if constexpr (kIsInTextbooks<In, Out>) return LaunchTextbookReduce<In>(args, context, num_launches);
    FatalValue("LaunchYardstick of a reduce", args.algorithm.strategy);
  });
}

cudaError_t LaunchYardstick(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                            uint64_t* num_launches) {
  return VisitDType(args.dtype, [&](auto tag) -> cudaError_t {
    using T = typename decltype(tag)::type;
    if constexpr (kCubCompactsServe(kDTypeOf<T>, kDTypeOf<T>, Op::kSum)) {
      if (args.algorithm.strategy == Strategy::kCub) {
        return LaunchCubCompact<T>(args, h_num_kept, context, num_launches);
      }
    }
    if constexpr (kIsInTextbooks<T, T>) return LaunchTextbookCompact<T>(args, h_num_kept, context, num_launches);
    FatalValue("LaunchYardstick of a compact", args.algorithm.strategy);
  });
}

}  // namespace prefixd::cuda
