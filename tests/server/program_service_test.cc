// Programs over the service: what is left behind when the answer is refused.
#include <memory>
#include <vector>

#include "prefixd/v1/programs.grpc.pb.h"
#include "tests/server/service_fixture.h"

namespace prefixd {
namespace {

// Streams of one double each hold 1 MiB, the elements that a group has room for, until nothing has room any more.
class FullServer {
 public:
  FullServer() {
    KeepOneServer();
    Options options = TestOptions();
    options.max_requests = 100;
    options.max_request_bytes = uint64_t{16} << 20;
    options.max_array_bytes = uint64_t{1} << 30;
    server_ = *Server::Start(options, std::make_unique<FakeDevice>(), [](Server::Failure) {});
    channel_ =
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->ports().front()), grpc::InsecureChannelCredentials());
    v1::ScanRequest request;
    request.mutable_spec()->set_dtype(v1::DTYPE_F64);
    request.mutable_spec()->set_op(v1::OP_SUM);
    request.mutable_values()->mutable_inline_()->set_data(Bytes(std::vector<double>{1}));
    const auto prefix = v1::PrefixService::NewStub(channel_);
    v1::ScanResponse response;
    do {
      streams_.push_back(std::make_unique<Stream>());
      streams_.back()->call = prefix->StreamScan(&streams_.back()->context);
      streams_.back()->call->Write(request);
    } while (streams_.back()->call->Read(&response));
  }
  ~FullServer() {
    for (const auto& stream : streams_) stream->context.TryCancel();
    for (const auto& stream : streams_) stream->call->Finish();
  }

  size_t num_streams() const { return streams_.size(); }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  struct Stream {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::ScanRequest, v1::ScanResponse>> call;
  };

  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

TEST(ProgramServiceTest, AProgramWhoseReplyHasNoRoomMakesNoArray) {
  const FullServer full;
  ASSERT_GT(full.num_streams(), 8u);
  v1::RunRequest program;
  for (const char* const name : {"kept", "sent"}) {
    v1::FillStep& fill = *program.add_steps()->mutable_fill();
    fill.set_dtype(v1::DTYPE_U8);
    fill.set_num_items(1 << 20);
    fill.mutable_content()->mutable_value()->set_uint64_value(1);
    fill.set_out(name);
    program.add_outputs()->set_name(name);
  }
  program.mutable_outputs(0)->mutable_sink()->mutable_new_array();
  const auto programs = v1::ProgramService::NewStub(full.channel());
  const auto num_arrays = [&] {
    grpc::ClientContext context;
    v1::GetServerInfoResponse info;
    EXPECT_TRUE(v1::AdminService::NewStub(full.channel())->GetServerInfo(&context, {}, &info).ok());
    return info.arrays().used();
  };
  const auto run = [&] {
    grpc::ClientContext context;
    v1::RunResponse response;
    return programs->Run(&context, program, &response);
  };
  const grpc::Status status = run();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(num_arrays(), 0u);
  program.mutable_outputs()->DeleteSubrange(1, 1);  // Then nothing of it comes inline, and there is room.
  program.mutable_steps()->DeleteSubrange(1, 1);
  EXPECT_TRUE(run().ok());
  EXPECT_EQ(num_arrays(), 1u);
}

}  // namespace
}  // namespace prefixd
