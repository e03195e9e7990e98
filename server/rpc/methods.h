// What a gRPC server serves: the names of its methods, and who takes the calls of each.
//
//   Methods methods(&context);
//   methods.Add(v1::PrefixService::service_full_name(), "Scan", [](Rpc* rpc) {
//     return new ScanReactor(rpc);
//   });
//   queues.Start([&](Rpc* rpc) { return methods.MakeReactor(rpc); });
//
// gRPC hands a call over as soon as its headers have come, whatever its shape, so that it is charged and watched from
// there on. A generated service would be told of a unary call with its message: one that never comes would be held for
// ever, by nobody's leave. A name that nobody has is answered with UNIMPLEMENTED here, and charged like any other.
//
// Threads: Add before the server starts; then any.
// Ownership: outlives the gRPC server. The context outlives both.
#ifndef PREFIXD_SERVER_RPC_METHODS_H_
#define PREFIXD_SERVER_RPC_METHODS_H_

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "server/call/server_context.h"
#include "server/rpc/reactor.h"

namespace prefixd {

class Methods {
 public:
  using Maker = std::function<Reactor*(Rpc*)>;

  explicit Methods(ServerContext* context) : context_(context) {}

  // service: "prefixd.v1.PrefixService"; method: "Scan".
  void Add(std::string_view service, std::string_view method, Maker make);

  const std::set<std::string>& services() const { return services_; }

  // That of the method that is called.
  Reactor* MakeReactor(Rpc* rpc) const;

 private:
  ServerContext* const context_;
  std::set<std::string> services_;
  absl::flat_hash_map<std::string, Maker> makers_;  // By path: "/prefixd.v1.PrefixService/Scan".
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_METHODS_H_
