// prefixctl reduce: the one value of a file, printed.
#ifndef PREFIXD_CLIENT_PREFIXCTL_REDUCE_COMMAND_H_
#define PREFIXD_CLIENT_PREFIXCTL_REDUCE_COMMAND_H_

#include "client/prefixctl/command.h"

namespace prefixd::cli {

void AddReduceCommand(CLI::App& app, Commands* commands);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_REDUCE_COMMAND_H_
