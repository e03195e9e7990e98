#include "server/rpc/reflection_service.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "proto/array_message.h"
#include "server/rpc/call_info.h"
#include "server/rpc/reading_reactor.h"

namespace prefixd {
namespace {

namespace reflection = grpc::reflection::v1;
using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

const DescriptorPool& Pool() { return *DescriptorPool::generated_pool(); }

void SetError(grpc::StatusCode code, const std::string& message, reflection::ServerReflectionResponse* response) {
  response->mutable_error_response()->set_error_code(code);
  response->mutable_error_response()->set_error_message(message);
}

// Adds what the file imports, each before what imports it, and then the file: each once.
void AddInOrder(const FileDescriptor* file, absl::flat_hash_set<const FileDescriptor*>* known,
                std::vector<const FileDescriptor*>* files) {
  if (!known->insert(file).second) return;
  for (int k = 0; k < file->dependency_count(); ++k) AddInOrder(file->dependency(k), known, files);
  files->push_back(file);
}

// The file, and behind it all that it imports: few and small, for they are ours. Whoever takes them from the back has
// what a file imports before the file.
void SetFiles(const FileDescriptor* file, const std::string& asked_for,
              reflection::ServerReflectionResponse* response) {
  if (file == nullptr) return SetError(grpc::StatusCode::NOT_FOUND, StrCat("there is no ", asked_for), response);
  std::vector<const FileDescriptor*> files;
  absl::flat_hash_set<const FileDescriptor*> known;
  AddInOrder(file, &known, &files);
  for (auto it = files.rbegin(); it != files.rend(); ++it) {
    google::protobuf::FileDescriptorProto description;
    (*it)->CopyTo(&description);
    response->mutable_file_descriptor_response()->add_file_descriptor_proto(description.SerializeAsString());
  }
}

reflection::ServerReflectionResponse Answer(const reflection::ServerReflectionRequest& request,
                                            const Methods& methods) {
  reflection::ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case reflection::ServerReflectionRequest::kListServices:
      for (const std::string& service : methods.services()) {
        if (Pool().FindServiceByName(service) == nullptr) continue;  // v1alpha, which nobody could describe.
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case reflection::ServerReflectionRequest::kFileByFilename:
      SetFiles(Pool().FindFileByName(request.file_by_filename()), "such file", &response);
      break;
    case reflection::ServerReflectionRequest::kFileContainingSymbol:
      SetFiles(Pool().FindFileContainingSymbol(request.file_containing_symbol()), "such symbol", &response);
      break;
    case reflection::ServerReflectionRequest::kFileContainingExtension:
    case reflection::ServerReflectionRequest::kAllExtensionNumbersOfType:
      SetError(grpc::StatusCode::NOT_FOUND, "the contract has no extensions", &response);
      break;
    case reflection::ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      SetError(grpc::StatusCode::INVALID_ARGUMENT, "the message asks for nothing", &response);
      break;
  }
  return response;
}

class ReflectionReactor final : public ReadingReactor {
 public:
  ReflectionReactor(ServerContext* context, Rpc* rpc, const Methods* methods)
      : ReadingReactor(context, rpc, InfoOf(*context, rpc), Admission::Kind::kQuestion), methods_(*methods) {}

  void OnWriteDone(bool ok) override {
    response_.Clear();
    if (!ok) return End(call().Cancel());
    call().ShrinkTo(own_bytes_);
    ReadNext();
  }

 private:
  static CallInfo InfoOf(const ServerContext& context, Rpc* rpc) {
    CallInfo info = CallInfoOf(context, rpc, "ServerReflectionInfo", CallShape::kStream);
    info.is_logged = false;
    return info;
  }

  void OnRequest(const grpc::ByteBuffer& bytes) override {
    if (own_bytes_ == 0) own_bytes_ = charged_bytes() - bytes.Length();
    reflection::ServerReflectionRequest request;
    if (absl::Status status = ParseMessage(bytes, &request); !status.ok()) return End(std::move(status));
    response_ = SerializeArrayMessage(Answer(request, methods_), {});
    if (absl::Status status = call().Charge(response_.Length()); !status.ok()) return End(std::move(status));
    call().CountSent(response_.Length());
    StartWrite(&response_);
  }
  void OnReadEnd() override { End(absl::OkStatus()); }

  const Methods& methods_;
  uint64_t own_bytes_ = 0;  // What it is charged without messages: with less its caller would count as having nothing.
  grpc::ByteBuffer response_;
};

}  // namespace

void AddReflectionMethods(ServerContext* context, Methods* methods) {
  for (const char* service :
       {reflection::ServerReflection::service_full_name(), "grpc.reflection.v1alpha.ServerReflection"}) {
    methods->Add(service, "ServerReflectionInfo",
                 [=](Rpc* rpc) { return new ReflectionReactor(context, rpc, methods); });
  }
}

}  // namespace prefixd
