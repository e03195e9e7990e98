// prefixd on a device that is lost as soon as it is to scan: for the end-to-end tests of what happens then.
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
