// Who calls, as shares, the log and errors know him.
#ifndef PREFIXD_SERVER_CALL_CALLER_H_
#define PREFIXD_SERVER_CALL_CALLER_H_

#include <string>

namespace prefixd {

struct Caller {
  // "10.0.0.1", "2001:db8::/64", "uid:1000", "alice". All who have the same name have one share together.
  std::string name;
  // One of his connections: "ipv4:10.0.0.1:4242".
  std::string connection;
  // The name is only an address or a user of this host, behind which there may be several programs: each connection has
  // a share of its share.
  bool is_address = true;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_CALLER_H_
