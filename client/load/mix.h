// What the requests of a load are: operations, as often as their weights say.
#ifndef PREFIXD_CLIENT_LOAD_MIX_H_
#define PREFIXD_CLIENT_LOAD_MIX_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/types.h"

namespace prefixd::load {

// One kind of request: what the primitive does by default, such as an inclusive scan by sum; a compact keeps about
// half.
struct Operation {
  Primitive primitive = Primitive::kScan;
  DType dtype = DType::kF32;
  uint64_t num_items = 1024;
  uint32_t weight = 1;

  uint64_t bytes() const { return num_items * SizeOf(dtype); }
};

// Example: "scan:f32:1000"; "scan:f32:2^20" where the size is a power of two, from 1024 on.
std::string Name(const Operation& operation);

// Threads: any.
class Mix {
 public:
  // Needs: at least one operation, and weights above 0.
  Mix(std::vector<Operation> operations, uint64_t seed);

  // The operation of the request with this number: an index into operations(), drawn by weight. Seed and number alone
  // decide, so that a seed repeats a load whatever its threads do.
  size_t Pick(uint64_t number) const;

  const std::vector<Operation>& operations() const { return operations_; }
  uint64_t seed() const { return seed_; }

 private:
  const std::vector<Operation> operations_;
  const uint64_t seed_;
  std::vector<uint64_t> ends_;  // The weights summed up: operation i has the places from ends_[i - 1] to ends_[i].
};

}  // namespace prefixd::load

#endif  // PREFIXD_CLIENT_LOAD_MIX_H_
