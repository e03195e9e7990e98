// prefixctl scan: the scan of a file, into a file.
#ifndef PREFIXD_CLIENT_PREFIXCTL_SCAN_COMMAND_H_
#define PREFIXD_CLIENT_PREFIXCTL_SCAN_COMMAND_H_

#include "client/prefixctl/command.h"

namespace prefixd::cli {

void AddScanCommand(CLI::App& app, Commands* commands);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_SCAN_COMMAND_H_
