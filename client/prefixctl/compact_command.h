// prefixctl compact: the elements of a file that a predicate or a mask selects, into a file.
#ifndef PREFIXD_CLIENT_PREFIXCTL_COMPACT_COMMAND_H_
#define PREFIXD_CLIENT_PREFIXCTL_COMPACT_COMMAND_H_

#include "client/prefixctl/command.h"

namespace prefixd::cli {

void AddCompactCommand(CLI::App& app, Commands* commands);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_COMPACT_COMMAND_H_
