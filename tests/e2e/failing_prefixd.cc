// prefixd on a device that is lost at its first scan. The end-to-end tests of a lost device start this program.
#include <variant>

#include "server/options.h"
#include "server/serve.h"
#include "tests/server/fake_device.h"

int main(int argc, char** argv) {
  const std::variant<prefixd::Options, int> parsed = prefixd::ParseOptions(argc, argv);
  if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
  prefixd::Serve(std::get<prefixd::Options>(parsed), [] {
    auto device = std::make_unique<prefixd::FakeDevice>();
    device->before_work = [] {
      return prefixd::Error(absl::StatusCode::kUnavailable, "DEVICE_LOST", "", "the card is gone");
    };
    return absl::StatusOr<std::unique_ptr<prefixd::Device>>(std::move(device));
  });
}
