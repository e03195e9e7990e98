// prefixctl algorithms, info and health: what a server is, can run and is doing.
#ifndef PREFIXD_CLIENT_PREFIXCTL_SERVER_COMMANDS_H_
#define PREFIXD_CLIENT_PREFIXCTL_SERVER_COMMANDS_H_

#include "client/prefixctl/command.h"

namespace prefixd::cli {

void AddServerCommands(CLI::App& app, Commands* commands);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_SERVER_COMMANDS_H_
