#include "server/rpc/methods.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "base/status.h"
#include "server/call/call.h"
#include "server/rpc/call_info.h"
#include "server/rpc/grpc_status.h"

namespace prefixd {
namespace {

// Answers at once, whatever the caller means to send.
class UnknownMethodReactor final : public Reactor {
 public:
  UnknownMethodReactor(ServerContext* context, Rpc* rpc)
      : Reactor(rpc), path_(rpc->context().method()), call_(context, InfoOf(*context, rpc)) {}

  void OnStart() override {
    call_.Watch();
    absl::Status status = call_.Admit(Admission::Kind::kQuestion);
    if (status.ok()) status = call_.Charge(Call::kQuestionBytes);
    if (status.ok()) status = NoSuchMethod(path_);
    const Result& result = call_.Finish({.result = {.status = std::move(status)}});
    Finish(ToGrpcStatus(result.status, result.request_id));
  }

  void OnDone() override {
    call_.Done(!WasCancelled());
    delete this;
  }

 private:
  static CallInfo InfoOf(const ServerContext& context, Rpc* rpc) {
    CallInfo info = CallInfoOf(context, rpc, "unknown", CallShape::kUnary);
    info.is_logged = false;
    return info;
  }

  static absl::Status NoSuchMethod(std::string_view path) {
    constexpr size_t kMaxPathBytes = 128;
    return Error(absl::StatusCode::kUnimplemented, "NO_SUCH_METHOD", "",
                 StrCat("this address serves no method ", absl::CHexEscape(AbslView(path.substr(0, kMaxPathBytes))),
                        ": check the name, and whether the server has an address for administrators (--admin-listen)"));
  }

  const std::string path_;
  Call call_;
};

}  // namespace

void Methods::Add(std::string_view service, std::string_view method, Maker make) {
  services_.emplace(service);
  makers_[StrCat("/", service, "/", method)] = std::move(make);
}

Reactor* Methods::MakeReactor(Rpc* rpc) const {
  const auto maker = makers_.find(rpc->context().method());
  return maker != makers_.end() ? maker->second(rpc) : new UnknownMethodReactor(context_, rpc);
}

}  // namespace prefixd
