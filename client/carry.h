// Scans that go on where another one ended, so that an array of any length passes through part by part, at any time.
//
//   std::optional<Carry> carry;
//   for (const std::vector<float>& part : parts) {
//     auto scanned = client.Scan<float>(part, {.carry_in = carry, .return_carry = true});
//     carry = scanned->carry;
//   }
//
// The results of the parts, one after the other, have the bits of one scan of all of them, however they are cut.
// Each part may be inline or resident, and its result may go anywhere.
#ifndef PREFIXD_CLIENT_CARRY_H_
#define PREFIXD_CLIENT_CARRY_H_

#include <string>
#include <utility>

namespace prefixd::client {

// What joins the scan of a part to the scan of the part behind it. A value: opaque, and of one choice of types,
// operator, kind, algorithm and numerics version.
// Cost:    few bytes where the part ended at a multiple of 131,072 elements, counted from the first part on; sums and
//          products of floats take up to 1 MiB elsewhere.
class Carry {
 public:
  // To keep it, and to have it back: in another process, or on another day. Whether the bytes are a carry, and of that
  // scan, is the server's to judge: INVALID_ARGUMENT (CARRY).
  const std::string& ToBytes() const { return bytes_; }
  static Carry FromBytes(std::string bytes) { return Carry(std::move(bytes)); }

  friend bool operator==(const Carry&, const Carry&) = default;

 private:
  explicit Carry(std::string bytes) : bytes_(std::move(bytes)) {}

  std::string bytes_;
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_CARRY_H_
