// The bytes of one array, where the wire or a staging block has them: in parts, none of them copied.
#ifndef PREFIXD_PROTO_PAYLOAD_H_
#define PREFIXD_PROTO_PAYLOAD_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prefixd {

// Threads: as a value. The bytes don't change while a Payload, or a copy of it, lives.
class Payload {
 public:
  using Owner = std::shared_ptr<const void>;

  Payload() = default;
  // One part, which lives as long as `owner`.
  Payload(std::string_view part, Owner owner) : owner_(std::move(owner)) { Append(part); }
  // A string's bytes, which it takes over.
  explicit Payload(std::string bytes) {
    auto owned = std::make_shared<const std::string>(std::move(bytes));
    Append(*owned);
    owner_ = std::move(owned);
  }

  // Adds a part, which lives as long as the owner.
  void Append(std::string_view part) {
    if (part.empty()) return;
    parts_.push_back(part);
    size_bytes_ += part.size();
  }
  // Adds another's parts, and keeps its owner too.
  void Append(const Payload& other) {
    for (const std::string_view part : other.parts_) Append(part);
    owner_ = owner_ == nullptr ? other.owner_ : std::make_shared<const std::pair<Owner, Owner>>(owner_, other.owner_);
  }
  void SetOwner(Owner owner) { owner_ = std::move(owner); }

  uint64_t size() const { return size_bytes_; }
  bool empty() const { return size_bytes_ == 0; }
  const std::vector<std::string_view>& parts() const { return parts_; }
  const Owner& owner() const { return owner_; }

  // Copies the bytes [first, first + size_bytes) to `to`. Needs: they are there.
  void CopyTo(void* to, uint64_t first, uint64_t size_bytes) const {
    auto* out = static_cast<char*>(to);
    for (const std::string_view part : parts_) {
      if (size_bytes == 0) return;
      if (first >= part.size()) {
        first -= part.size();
        continue;
      }
      const uint64_t count = std::min(size_bytes, part.size() - first);
      std::memcpy(out, part.data() + first, count);
      out += count;
      size_bytes -= count;
      first = 0;
    }
  }
  // Where the bytes [first, first + size_bytes) lie; null where they are not in one part. Needs: they are there, and
  // size_bytes > 0.
  const char* Find(uint64_t first, uint64_t size_bytes) const {
    for (const std::string_view part : parts_) {
      if (first < part.size()) return size_bytes <= part.size() - first ? part.data() + first : nullptr;
      first -= part.size();
    }
    return nullptr;
  }
  std::string ToString() const {
    std::string bytes(size_bytes_, '\0');
    CopyTo(bytes.data(), 0, size_bytes_);
    return bytes;
  }

 private:
  std::vector<std::string_view> parts_;
  uint64_t size_bytes_ = 0;
  Owner owner_;
};

}  // namespace prefixd

#endif  // PREFIXD_PROTO_PAYLOAD_H_
