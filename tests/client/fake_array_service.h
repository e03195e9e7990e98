// Resident arrays in the memory of the test, for the fake server: enough of the contract to see what a client does.
#ifndef PREFIXD_TESTS_CLIENT_FAKE_ARRAY_SERVICE_H_
#define PREFIXD_TESTS_CLIENT_FAKE_ARRAY_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "prefixd/v1/arrays.grpc.pb.h"

namespace prefixd::client {

// An error as a prefixd server makes it: fake_server.h.
inline grpc::Status DetailedError(grpc::StatusCode code, const std::string& reason, const std::string& message,
                                  const std::string& field, int64_t retry_ms);

// Arrays of 4-byte elements.
class FakeArrayService : public v1::ArrayService::Service {
 public:
  static constexpr size_t kItemBytes = 4;

  // Called with the method's name before it does anything; what it returns, if not OK, is the answer.
  std::function<grpc::Status(const std::string& method, const std::string& peer)> before;
  // Called when a stream has written so many bytes; what it returns, if not OK, is the answer.
  std::function<grpc::Status(grpc::ServerContext*, uint64_t first_item, uint64_t written_bytes)> while_writing;

  std::string Contents(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return arrays_.at(name).data;
  }
  bool Has(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return arrays_.count(name) != 0;
  }
  size_t size() {
    const std::lock_guard lock(mutex_);
    return arrays_.size();
  }
  // Those of WriteArray and ReadArray.
  std::set<std::string> peers() {
    const std::lock_guard lock(mutex_);
    return peers_;
  }
  std::vector<v1::CreateArrayRequest> creations;
  std::vector<v1::FillArrayRequest> fills;
  std::vector<v1::CopyArrayRequest> copies;
  std::vector<v1::RenewArrayRequest> renewals;

 private:
  struct Entry {
    v1::Array info;
    std::string data;
  };

  grpc::Status Begin(const char* method, grpc::ServerContext* context) {
    return before ? before(method, context->peer()) : grpc::Status::OK;
  }
  static grpc::Status Unknown() {
    return DetailedError(grpc::StatusCode::NOT_FOUND, "ARRAY_UNKNOWN", "there is no such array", "name", -1);
  }

  grpc::Status CreateArray(grpc::ServerContext* context, const v1::CreateArrayRequest* request,
                           v1::CreateArrayResponse* response) override {
    if (grpc::Status status = Begin("CreateArray", context); !status.ok()) return status;
    const std::lock_guard lock(mutex_);
    creations.push_back(*request);
    Entry entry;
    entry.info.set_name("arrays/" + std::to_string(next_++));
    entry.info.set_dtype(request->dtype());
    uint64_t num_items = 1;
    for (const uint64_t along : request->shape()) num_items *= along;
    *entry.info.mutable_shape() = request->shape();
    entry.info.set_num_items(num_items);
    entry.data.resize(num_items * kItemBytes);
    *response->mutable_array() = entry.info;
    arrays_[entry.info.name()] = entry;
    return grpc::Status::OK;
  }
  grpc::Status FillArray(grpc::ServerContext* context, const v1::FillArrayRequest* request,
                         v1::FillArrayResponse* response) override {
    if (grpc::Status status = Begin("FillArray", context); !status.ok()) return status;
    fills.push_back(*request);
    response->mutable_timing()->set_num_items(3);
    return grpc::Status::OK;
  }
  grpc::Status CopyArray(grpc::ServerContext* context, const v1::CopyArrayRequest* request,
                         v1::CopyArrayResponse* response) override {
    if (grpc::Status status = Begin("CopyArray", context); !status.ok()) return status;
    copies.push_back(*request);
    response->mutable_timing()->set_num_items(4);
    return grpc::Status::OK;
  }
  grpc::Status GetArray(grpc::ServerContext* context, const v1::GetArrayRequest* request,
                        v1::GetArrayResponse* response) override {
    if (grpc::Status status = Begin("GetArray", context); !status.ok()) return status;
    const std::lock_guard lock(mutex_);
    const auto found = arrays_.find(request->name());
    if (found == arrays_.end()) return Unknown();
    *response->mutable_array() = found->second.info;
    return grpc::Status::OK;
  }
  grpc::Status RenewArray(grpc::ServerContext* context, const v1::RenewArrayRequest* request,
                          v1::RenewArrayResponse* response) override {
    if (grpc::Status status = Begin("RenewArray", context); !status.ok()) return status;
    const std::lock_guard lock(mutex_);
    renewals.push_back(*request);
    const auto found = arrays_.find(request->name());
    if (found == arrays_.end()) return Unknown();
    *found->second.info.mutable_ttl() = request->lifetime().ttl();
    *response->mutable_array() = found->second.info;
    return grpc::Status::OK;
  }
  // A page has two.
  grpc::Status ListArrays(grpc::ServerContext* context, const v1::ListArraysRequest* request,
                          v1::ListArraysResponse* response) override {
    if (grpc::Status status = Begin("ListArrays", context); !status.ok()) return status;
    const std::lock_guard lock(mutex_);
    for (auto next = arrays_.lower_bound(request->page_token()); next != arrays_.end(); ++next) {
      if (response->arrays_size() == 2) {
        response->set_next_page_token(next->first);
        break;
      }
      *response->add_arrays() = next->second.info;
    }
    return grpc::Status::OK;
  }
  grpc::Status DeleteArray(grpc::ServerContext* context, const v1::DeleteArrayRequest* request,
                           v1::DeleteArrayResponse*) override {
    if (grpc::Status status = Begin("DeleteArray", context); !status.ok()) return status;
    const std::lock_guard lock(mutex_);
    return arrays_.erase(request->name()) != 0 ? grpc::Status::OK : Unknown();
  }
  grpc::Status WriteArray(grpc::ServerContext* context, grpc::ServerReader<v1::WriteArrayRequest>* reader,
                          v1::WriteArrayResponse*) override {
    if (grpc::Status status = Begin("WriteArray", context); !status.ok()) return status;
    v1::ArraySlice slice;
    uint64_t written_bytes = 0;
    for (v1::WriteArrayRequest request; reader->Read(&request); request.Clear()) {
      if (request.has_array()) slice = request.array();
      const std::string& data = request.values().inline_().data();
      {
        const std::lock_guard lock(mutex_);
        peers_.insert(context->peer());
        if (request.values().inline_().first_item() != written_bytes / kItemBytes) {
          return {grpc::StatusCode::INVALID_ARGUMENT, "out of order"};
        }
        std::string& to = arrays_.at(slice.name()).data;
        std::copy(data.begin(), data.end(), to.begin() + slice.first_item() * kItemBytes + written_bytes);
      }
      written_bytes += data.size();
      if (while_writing) {
        if (grpc::Status status = while_writing(context, slice.first_item(), written_bytes); !status.ok())
          return status;
      }
      if (request.end() && written_bytes != slice.num_items() * kItemBytes) {
        return {grpc::StatusCode::INVALID_ARGUMENT, "another number of elements came"};
      }
    }
    return grpc::Status::OK;
  }
  grpc::Status ReadArray(grpc::ServerContext* context, const v1::ReadArrayRequest* request,
                         grpc::ServerWriter<v1::ReadArrayResponse>* writer) override {
    if (grpc::Status status = Begin("ReadArray", context); !status.ok()) return status;
    constexpr uint64_t kMessageBytes = 1 << 20;
    std::string data;
    {
      const std::lock_guard lock(mutex_);
      peers_.insert(context->peer());
      data = arrays_.at(request->array().name())
                 .data.substr(request->array().first_item() * kItemBytes, request->array().num_items() * kItemBytes);
    }
    for (uint64_t sent = 0; sent < data.size(); sent += kMessageBytes) {
      v1::ReadArrayResponse response;
      response.mutable_values()->mutable_inline_()->set_data(data.substr(sent, kMessageBytes));
      writer->Write(response);
    }
    return grpc::Status::OK;
  }

  std::mutex mutex_;
  std::map<std::string, Entry> arrays_;
  std::set<std::string> peers_;
  int next_ = 100;
};

}  // namespace prefixd::client

#endif  // PREFIXD_TESTS_CLIENT_FAKE_ARRAY_SERVICE_H_
