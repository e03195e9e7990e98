// The bytes of a value as a value of another type of its size: a float's as an integer, or a vector's as another
// vector.
#ifndef PREFIXD_KERNELS_SAME_BYTES_H_
#define PREFIXD_KERNELS_SAME_BYTES_H_

#include "kernels/inline_anywhere.h"

namespace prefixd {

template <class To, class From>
PREFIXD_INLINE_ANYWHERE To SameBytes(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_SAME_BYTES_H_
