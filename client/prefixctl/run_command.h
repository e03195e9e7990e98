// prefixctl run: a program, from a file.
#ifndef PREFIXD_CLIENT_PREFIXCTL_RUN_COMMAND_H_
#define PREFIXD_CLIENT_PREFIXCTL_RUN_COMMAND_H_

#include "client/prefixctl/command.h"

namespace prefixd::cli {

void AddRunCommand(CLI::App& app, Commands* commands);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_RUN_COMMAND_H_
