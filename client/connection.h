// What a Client is made of. Private to the library.
#ifndef PREFIXD_CLIENT_CONNECTION_H_
#define PREFIXD_CLIENT_CONNECTION_H_

#include <grpcpp/channel.h>

#include <memory>

#include "client/options.h"

namespace prefixd::client {

struct Connection {
  std::shared_ptr<grpc::Channel> channel;
  ClientOptions options;
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_CONNECTION_H_
