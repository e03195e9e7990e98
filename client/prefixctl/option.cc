#include "client/prefixctl/option.h"

namespace prefixd::cli {

std::string DTypeNames() {
  return NamesOf<DType>([](DType) { return true; });
}

std::string OpNames(Primitive primitive) {
  return NamesOf<Op>([&](Op op) { return op != Op::kLinearRecurrence || primitive == Primitive::kScan; });
}

Algorithm ParseAlgorithm(const std::string& flag, std::string_view name) {
  Algorithm algorithm;
  if (FromName(name, &algorithm)) return algorithm;
  throw CLI::ValidationError(
      flag, StrCat("'", name, "' is the name of no algorithm: expected one such as chained, ",
                   "three_phase/kogge_stone or three_phase/brent_kung/4/padded (prefixctl algorithms)"));
}

}  // namespace prefixd::cli
