#include "client/prefixctl/transfer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <future>
#include <limits>
#include <string_view>
#include <vector>

#include "absl/time/clock.h"
#include "base/status.h"

namespace prefixd::cli {
namespace {

// What a transfer has in memory, twice: one is on the wire while the other is read from the file, or written to it.
// Each is as much as the client splits over all its connections.
constexpr size_t kWindowBytes = size_t{64} << 20;

client::CallOptions CallUntil(absl::Time deadline, client::Cancellation* cancellation) {
  return {.timeout = deadline - absl::Now(), .cancellation = cancellation};
}

}  // namespace

absl::StatusOr<uint64_t> Upload(ArrayReader& reader, const client::Array& array, uint64_t first_item,
                                Progress& progress, absl::Time deadline, client::Cancellation* cancellation) {
  const size_t item_bytes = SizeOf(array.dtype());
  const size_t window_items =
      std::min<uint64_t>(kWindowBytes / item_bytes,
                         std::max<uint64_t>(1, reader.num_items().value_or(std::numeric_limits<uint64_t>::max())));
  std::array<std::vector<std::byte>, 2> windows;
  for (std::vector<std::byte>& window : windows) window.resize(window_items * item_bytes);
  uint64_t num_written = 0;
  PREFIXD_ASSIGN_OR_RETURN(size_t count, reader.Read(window_items, windows[0].data()));
  for (size_t turn = 0;; turn ^= 1) {
    const bool is_last = count < window_items;
    std::future<absl::StatusOr<size_t>> ahead = std::async(std::launch::async, [&]() -> absl::StatusOr<size_t> {
      if (is_last) return 0;  // A terminal would be asked for another end.
      return reader.Read(window_items, windows[turn ^ 1].data());
    });
    const absl::Status status = array.WriteBytes(client::Bytes(windows[turn].data(), count * item_bytes),
                                                 first_item + num_written, CallUntil(deadline, cancellation));
    if (!status.ok()) reader.file().Interrupt();
    const absl::StatusOr<size_t> next = ahead.get();
    PREFIXD_RETURN_IF_ERROR(status);
    PREFIXD_RETURN_IF_ERROR(next.status());
    num_written += count;
    progress.Update(reader.file().bytes_read(), reader.file().size_bytes());
    count = *next;
    if (count == 0) return num_written;
  }
}

absl::Status Download(const client::Array& array, uint64_t first_item, uint64_t num_items, ArrayWriter& writer,
                      Progress& progress, absl::Time deadline, client::Cancellation* cancellation) {
  const size_t item_bytes = SizeOf(array.dtype());
  const size_t window_items = std::min<uint64_t>(kWindowBytes / item_bytes, num_items);
  std::array<std::vector<std::byte>, 2> windows;
  std::future<absl::Status> written;  // What of the window before is still on its way to the file.
  const auto wait = [&] { return written.valid() ? written.get() : absl::OkStatus(); };
  uint64_t num_read = 0;
  for (size_t turn = 0; num_read < num_items; turn ^= 1) {
    std::vector<std::byte>& window = windows[turn];
    window.resize(std::min<uint64_t>(window_items, num_items - num_read) * item_bytes);
    const absl::Status status =
        array.ReadBytes(absl::MakeSpan(window), first_item + num_read, CallUntil(deadline, cancellation));
    PREFIXD_RETURN_IF_ERROR(wait());
    PREFIXD_RETURN_IF_ERROR(status);
    written = std::async(std::launch::async, [&writer, &window] {
      const std::string_view bytes(reinterpret_cast<const char*>(window.data()), window.size());
      return writer.Write(absl::MakeConstSpan(&bytes, 1));
    });
    num_read += window.size() / item_bytes;
    progress.Update(num_read * item_bytes, num_items * item_bytes);
  }
  return wait();
}

}  // namespace prefixd::cli
