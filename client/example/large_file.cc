// A linear pass over a file that is larger than the card's memory: the running total of its f32 values, part by part.
// Each scan goes on where the one before ended, so the result has the bits of one scan of the whole file.
// Start a server (`prefixd`), then: prefixd_large_file INPUT OUTPUT [PART_MIB [ADDRESS]]
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <absl/strings/numbers.h>
#include <prefixd/client.h>

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

absl::Status Cant(const std::string& use, const std::string& path) {
  return absl::ErrnoToStatus(errno, "can't " + use + ' ' + path);  // It adds why: that the disk is full.
}

absl::Status Run(const std::string& input, const std::string& output, int part_mib, const char* address) {
  std::error_code error;
  const uint64_t num_bytes = std::filesystem::file_size(input, error);
  if (error) return absl::ErrnoToStatus(error.value(), "can't read " + input);
  if (num_bytes == 0 || num_bytes % sizeof(float) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(input, " has ", num_bytes, " bytes; expected 4 for each value"));
  }
  if (std::filesystem::equivalent(input, output, error)) return absl::InvalidArgumentError(output + " is the input");
  std::ifstream in(input, std::ios::binary);
  if (!in) return Cant("read", input);

  // One array on the device, for one part after the other. It stays as long as it is in use.
  const uint64_t num_values = num_bytes / sizeof(float);
  std::vector<float> part(std::min(static_cast<uint64_t>(part_mib) << 18, num_values));  // A MiB has 2^18.
  prefixd::client::Client client(address);
  PREFIXD_ASSIGN_OR_RETURN(
      const auto array,
      client.CreateArray({.dtype = prefixd::DType::kF32, .shape = {part.size()}, .lifetime = {.renew_on_use = true}}));
  std::ofstream out(output, std::ios::binary);
  if (!out) return Cant("write", output);

  std::map<std::string, Seconds> took;  // By stage.
  auto end = [&, last = Clock::now()](const char* stage) mutable {
    const auto before = std::exchange(last, Clock::now());
    took[stage] += last - before;
    took["all"] += last - before;
  };
  std::vector<float> totals;
  std::optional<prefixd::client::Carry> carry;  // What joins a part to the part behind it.
  for (uint64_t first = 0; first < num_values; first += part.size()) {
    part.resize(std::min<uint64_t>(part.size(), num_values - first));
    const auto part_bytes = static_cast<std::streamsize>(part.size() * sizeof(float));
    if (!in.read(reinterpret_cast<char*>(part.data()), part_bytes)) {
      return in.eof() ? absl::DataLossError(input + " has become shorter") : Cant("read", input);
    }
    end("read");
    PREFIXD_RETURN_IF_ERROR(array.Write<float>(part));
    end("upload");
    const auto room = array.Part(0, part.size());  // The values, then their totals.
    PREFIXD_ASSIGN_OR_RETURN(auto scan, client.ScanInto<float>(room, room, {.carry_in = carry, .return_carry = true}));
    carry = std::move(scan.carry);
    end("scan");
    PREFIXD_ASSIGN_OR_RETURN(totals, array.Read<float>(0, part.size()));
    end("download");
    if (!out.write(reinterpret_cast<const char*>(totals.data()), part_bytes).flush()) return Cant("write", output);
    end("write");
    std::cerr << first + part.size() << " of " << num_values << " values\n";
  }

  std::cout << "total: " << std::setprecision(9) << totals.back() << "\nMB/s:" << std::fixed << std::setprecision(1);
  for (const auto& [stage, seconds] : took) {
    std::cout << ' ' << stage << ' ' << static_cast<double>(num_bytes) / 1e6 / seconds.count();
  }
  std::cout << '\n';
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  int part_mib = 256;
  const bool is_number = argc <= 3 || absl::SimpleAtoi(argv[3], &part_mib);
  if (argc < 3 || argc > 5 || !is_number || part_mib < 1) {
    std::cerr << "usage: prefixd_large_file INPUT OUTPUT [PART_MIB [ADDRESS]]\n";
    return 2;
  }
  const absl::Status status = Run(argv[1], argv[2], part_mib, argc > 4 ? argv[4] : "127.0.0.1:50051");
  if (!status.ok()) std::cerr << status.ToString() << '\n';
  return status.ok() ? 0 : 1;
}
