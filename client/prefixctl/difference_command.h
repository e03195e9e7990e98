// prefixctl difference: the differences of a file's neighbours, into a file.
#ifndef PREFIXD_CLIENT_PREFIXCTL_DIFFERENCE_COMMAND_H_
#define PREFIXD_CLIENT_PREFIXCTL_DIFFERENCE_COMMAND_H_

#include "client/prefixctl/command.h"

namespace prefixd::cli {

void AddDifferenceCommand(CLI::App& app, Commands* commands);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_DIFFERENCE_COMMAND_H_
