// Sends the log of gRPC and protobuf through ours, so that a JSON log has nothing but JSON in it.
#ifndef PREFIXD_SERVER_LIBRARY_LOG_H_
#define PREFIXD_SERVER_LIBRARY_LOG_H_

namespace prefixd {

// Call once, after StartLog and before the libraries are used.
void CaptureLibraryLogs();

}  // namespace prefixd

#endif  // PREFIXD_SERVER_LIBRARY_LOG_H_
