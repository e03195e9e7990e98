// Calls over real sockets: what the server answers, what it refuses, and what it sends along with an answer.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/server/service_fixture.h"

namespace prefixd {
namespace {

TEST_F(ServiceTest, OutputTypes) {
  v1::ScanRequest scan;
  scan.mutable_spec()->set_dtype(v1::DTYPE_U8);
  scan.mutable_spec()->set_out_dtype(v1::DTYPE_U32);
  scan.mutable_spec()->set_op(v1::OP_SUM);
  scan.mutable_spec()->mutable_init()->set_int64_value(1000);
  scan.mutable_values()->mutable_inline_()->set_data("\xff\x01");
  v1::ScanResponse scanned;
  ASSERT_TRUE(Scan(scan, &scanned).ok());
  EXPECT_EQ(Items<uint32_t>(scanned.values().inline_().data()), (std::vector<uint32_t>{1255, 1256}));

  scan.mutable_values()->mutable_inline_()->set_data(std::string((1 << 18) + 1, '\1'));
  grpc::Status status = Scan(scan, &scanned);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(Reason(status), "REPLY_TOO_LARGE");
  scan.mutable_spec()->set_out_dtype(v1::DTYPE_F64);
  status = Scan(scan, &scanned);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(status), "UNSUPPORTED_COMBINATION");
  EXPECT_EQ(status.error_message(), "u8 has no output type f64: use one of u8, u32, u64");

  grpc::ClientContext context;
  v1::ReduceRequest reduce;
  reduce.mutable_spec()->set_dtype(v1::DTYPE_F32);
  reduce.mutable_spec()->set_out_dtype(v1::DTYPE_F64);
  reduce.mutable_spec()->set_op(v1::OP_SUM);
  reduce.mutable_values()->mutable_inline_()->set_data(Bytes<float>({1, 0x1p-40F}));
  v1::ReduceResponse reduced;
  ASSERT_TRUE(prefix_->Reduce(&context, reduce, &reduced).ok());
  EXPECT_EQ(reduced.value().double_value(), 1 + 0x1p-40);
}

TEST_F(ServiceTest, ScanReduceAndCompact) {
  v1::ScanResponse scanned;
  ASSERT_TRUE(Scan(ScanRequestOf({3, 1, 2}), &scanned).ok());
  EXPECT_EQ(Items<int32_t>(scanned.values().inline_().data()), (std::vector<int32_t>{3, 4, 6}));
  EXPECT_EQ(scanned.timing().num_items(), 3u);
  EXPECT_TRUE(scanned.timing().has_server_total_ns());

  v1::ReduceRequest reduce;
  reduce.mutable_spec()->set_dtype(v1::DTYPE_I32);
  reduce.mutable_spec()->set_op(v1::OP_MAX);
  reduce.mutable_values()->mutable_inline_()->set_data(Bytes<int32_t>({3, 9, 9}));
  v1::ReduceResponse reduced;
  grpc::ClientContext reduce_context;
  ASSERT_TRUE(prefix_->Reduce(&reduce_context, reduce, &reduced).ok());
  EXPECT_EQ(reduced.value().int64_value(), 9);
  EXPECT_EQ(reduced.count(), 3u);
  EXPECT_EQ(reduced.index(), 1u);

  v1::CompactRequest compact;
  compact.mutable_spec()->set_dtype(v1::DTYPE_I32);
  compact.mutable_spec()->set_mask(v1::MASK_KIND_BYTES);
  compact.mutable_spec()->set_return_indices(true);
  compact.mutable_spec()->set_index_dtype(v1::DTYPE_U32);
  compact.mutable_mask()->mutable_inline_()->set_data(std::string("\x01\x00\x01", 3));
  compact.mutable_values()->mutable_inline_()->set_data(Bytes<int32_t>({3, 9, 8}));
  v1::CompactResponse compacted;
  grpc::ClientContext compact_context;
  ASSERT_TRUE(prefix_->Compact(&compact_context, compact, &compacted).ok());
  EXPECT_EQ(compacted.count(), 2u);
  EXPECT_EQ(Items<int32_t>(compacted.values().inline_().data()), (std::vector<int32_t>{3, 8}));
  EXPECT_EQ(Items<uint32_t>(compacted.indices().inline_().data()), (std::vector<uint32_t>{0, 2}));
}

TEST_F(ServiceTest, EachChunkIsAnsweredBeforeTheNextIsSent) {
  grpc::ClientContext context;
  auto stream = prefix_->StreamScan(&context);
  v1::ScanResponse reply;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(stream->Write(i == 0 ? ScanRequestOf({1, 1}) : ChunkOf({1, 1})));
    ASSERT_TRUE(stream->Read(&reply));
    EXPECT_EQ(Items<int32_t>(reply.values().inline_().data()), (std::vector<int32_t>{2 * i + 1, 2 * i + 2}));
    EXPECT_FALSE(reply.has_timing());
  }
  stream->WritesDone();
  ASSERT_TRUE(stream->Read(&reply));
  EXPECT_TRUE(reply.has_timing());
  EXPECT_EQ(reply.timing().num_items(), 10u);
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ServiceTest, ReduceOfAStream) {
  grpc::ClientContext context;
  v1::ReduceResponse response;
  auto stream = prefix_->StreamReduce(&context, &response);
  v1::ReduceRequest request;
  request.mutable_spec()->set_dtype(v1::DTYPE_I32);
  request.mutable_spec()->set_op(v1::OP_SUM);
  for (int i = 0; i < 3; ++i) {
    request.mutable_values()->mutable_inline_()->set_data(Bytes<int32_t>({1, 2}));
    ASSERT_TRUE(stream->Write(request));
    request.clear_spec();
  }
  stream->WritesDone();
  ASSERT_TRUE(stream->Finish().ok());
  EXPECT_EQ(response.value().int64_value(), 9);
  EXPECT_EQ(response.count(), 6u);
}

TEST_F(ServiceTest, ErrorsOfAStreamReachTheCallerAtOnce) {
  grpc::ClientContext context;
  auto stream = prefix_->StreamScan(&context);
  ASSERT_TRUE(stream->Write(ScanRequestOf({1})));
  v1::ScanResponse reply;
  ASSERT_TRUE(stream->Read(&reply));
  stream->Write(ScanRequestOf({1}));  // A second spec. The stream is not closed: the answer must not wait for that.
  EXPECT_FALSE(stream->Read(&reply));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(status), "SPEC_REPEATED");
}

TEST_F(ServiceTest, AMessageOverTheLimitIsRefused) {
  v1::ScanRequest request = ScanRequestOf({});
  request.mutable_values()->mutable_inline_()->set_data(std::string(TestOptions().max_message_bytes + 1, 'x'));
  v1::ScanResponse response;
  EXPECT_EQ(Scan(request, &response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(BecomesIdle());
}

TEST_F(ServiceTest, ADeadlineThatPassesInMidStreamFreesTheLane) {
  v1::ScanResponse reply;
  bool came_in_time = false;
  for (std::chrono::seconds timeout(1); !came_in_time; timeout *= 2) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    auto stream = prefix_->StreamScan(&context);
    came_in_time = stream->Write(ScanRequestOf({1})) && stream->Read(&reply);
    EXPECT_FALSE(stream->Read(&reply));  // Nothing more is sent; the deadline ends it.
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_TRUE(BecomesIdle());
  }
  EXPECT_TRUE(Scan(ScanRequestOf({1}), &reply).ok());
}

TEST_F(ServiceTest, ACallerThatVanishesInMidStreamFreesTheLaneWithinOneChunk) {
  Gate running;
  Gate go_on;
  device_->before_work = [&] {
    running.Arrive();
    EXPECT_TRUE(go_on.WaitFor(1));
    return absl::OkStatus();
  };
  {
    // A connection of its own, which goes down with the caller.
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    auto channel = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", server_->ports().front()),
                                             grpc::InsecureChannelCredentials(), own);
    auto stub = v1::PrefixService::NewStub(channel);
    grpc::ClientContext context;
    auto stream = stub->StreamScan(&context);
    // One message of four pieces; that the lane stops before the second is session_test's to show.
    ASSERT_TRUE(stream->Write(ScanRequestOf(std::vector<int32_t>(4 * kMaxReplyPayloadBytes / sizeof(int32_t) - 1024))));
    ASSERT_TRUE(running.WaitFor(1));
    context.TryCancel();
    stream->Finish();
  }
  go_on.Arrive();
  EXPECT_TRUE(BecomesIdle());
}

TEST_F(ServiceTest, TooManyRequestsAreToldWhenToComeBack) {
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReaderWriter<v1::ScanRequest, v1::ScanResponse>>> streams;
  v1::ScanResponse reply;
  for (uint64_t i = 0; i < TestOptions().max_requests; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(prefix_->StreamScan(contexts.back().get()));
    ASSERT_TRUE(streams.back()->Write(ScanRequestOf({1})));
    ASSERT_TRUE(streams.back()->Read(&reply));
  }
  const grpc::Status refused = Scan(ScanRequestOf({1}), &reply);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(refused), "REQUEST_BUDGET");
  EXPECT_EQ(Info().requests().used(), TestOptions().max_requests);
  for (auto& stream : streams) {
    stream->WritesDone();
    while (stream->Read(&reply)) {
    }
    EXPECT_TRUE(stream->Finish().ok());
  }
  EXPECT_TRUE(BecomesIdle());
  EXPECT_TRUE(Scan(ScanRequestOf({1}), &reply).ok());
}

TEST_F(ServiceTest, AMessageThatDoesNotParseIsNoEndOfTheStream) {
  grpc::ByteBuffer garbage;
  {
    const grpc::Slice slice("\xff\xff\xff\xff");
    garbage = grpc::ByteBuffer(&slice, 1);
  }
  grpc::ByteBuffer good;
  bool own = false;
  ASSERT_TRUE(grpc::SerializationTraits<v1::ScanRequest>::Serialize(ScanRequestOf({1}), &good, &own).ok());
  for (const char* method : {"StreamScan", "StreamReduce", "StreamCompact"}) {
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    grpc::GenericStub stub(channel_);
    auto call = stub.PrepareCall(&context, absl::StrCat("/prefixd.v1.PrefixService/", method), &queue);
    void* tag = nullptr;
    bool ok = false;
    const auto next = [&] { return queue.Next(&tag, &ok) && ok; };
    call->StartCall(nullptr);
    ASSERT_TRUE(next());
    if (std::string(method) == "StreamScan") {
      call->Write(good, nullptr);
      ASSERT_TRUE(next());
    }
    call->Write(garbage, nullptr);
    ASSERT_TRUE(next());
    grpc::ByteBuffer reply;
    do {  // gRPC tells the status once every reply was read.
      call->Read(&reply, nullptr);
    } while (next());
    grpc::Status status;
    call->Finish(&status, nullptr);
    ASSERT_TRUE(next());
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_EQ(Reason(status), "MALFORMED") << method;
  }
}

// Where protobuf had to copy the array, the bytes as sent are let go of.
TEST_F(ServiceTest, AMessageIsChargedOnceHoweverItIsEncoded) {
  const std::string plain = ScanRequestOf(std::vector<int32_t>(3000, 1)).SerializeAsString();
  // A second operand, to be merged with the first: valid, and unusual.
  const std::string unusual = plain + ChunkOf({}).SerializeAsString();
  for (const std::string& bytes : {plain, unusual}) {
    uint64_t charged = 0;
    const uint64_t expected = Call::kBytes + 10 * bytes.size();  // Beside the message, what its reply may need.
    device_->before_work = [&] {
      charged = ChargedBytes(expected);
      return absl::OkStatus();
    };
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(channel_);
    auto call = stub.PrepareUnaryCall(&context, "/prefixd.v1.PrefixService/Scan", request, &queue);
    grpc::Status status;
    void* tag = nullptr;
    bool ok = false;
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(charged, expected);
  }
}

// Or its caller would count as one who has nothing yet, and get more than his share.
TEST_F(ServiceTest, AReflectionStreamIsChargedForItselfAfterEachAnswer) {
  grpc::ClientContext context;
  const auto stream = grpc::reflection::v1::ServerReflection::NewStub(channel_)->ServerReflectionInfo(&context);
  grpc::reflection::v1::ServerReflectionRequest request;
  grpc::reflection::v1::ServerReflectionResponse response;
  request.set_list_services("");
  constexpr uint64_t kCharged = Call::kBytes + 1024;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(stream->Write(request) && stream->Read(&response));
    EXPECT_EQ(ChargedBytes(kCharged), kCharged);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(BecomesIdle());
}

v1::RunBenchmarkRequest BenchmarkOf(std::vector<uint64_t> sizes) {
  v1::RunBenchmarkRequest request;
  request.add_primitives(v1::PRIMITIVE_SCAN);
  request.add_dtypes(v1::DTYPE_F32);
  request.mutable_num_items()->Add(sizes.begin(), sizes.end());
  request.set_repetitions(3);
  return request;
}

TEST_F(ServiceTest, ABenchmarkStreamsItsMeasurements) {
  device_->free_memory_bytes = uint64_t{1} << 30;
  v1::RunBenchmarkRequest request = BenchmarkOf({100, uint64_t{1} << 60});
  request.add_primitives(v1::PRIMITIVE_COMPACT);
  grpc::ClientContext context;
  const auto reader = admin_->RunBenchmark(&context, request);
  std::vector<v1::RunBenchmarkResponse> responses;
  for (v1::RunBenchmarkResponse response; reader->Read(&response);) responses.push_back(response);
  ASSERT_TRUE(reader->Finish().ok());
  ASSERT_EQ(responses.size(), 4u);
  EXPECT_EQ(responses[0].primitive(), v1::PRIMITIVE_SCAN);
  EXPECT_EQ(responses[0].dtype(), v1::DTYPE_F32);
  EXPECT_EQ(responses[0].op(), v1::OP_SUM);
  EXPECT_EQ(responses[0].algorithm().strategy(), v1::STRATEGY_CHAINED);
  EXPECT_EQ(responses[0].num_items(), 100u);
  EXPECT_EQ(responses[0].device(), "fake");
  EXPECT_EQ(responses[0].measurement().num_bytes(), 800u);
  EXPECT_EQ(responses[0].measurement().repetitions(), 3u);
  EXPECT_FALSE(responses[1].has_measurement());
  EXPECT_NE(responses[1].skipped(), "");
  EXPECT_EQ(responses[2].primitive(), v1::PRIMITIVE_COMPACT);
  EXPECT_EQ(responses[2].op(), v1::OP_UNSPECIFIED);
  EXPECT_TRUE(BecomesIdle());
}

TEST_F(ServiceTest, ABenchmarkThatIsRefusedSaysWhy) {
  const auto status_of = [&](const v1::RunBenchmarkRequest& request) {
    grpc::ClientContext context;
    const auto reader = admin_->RunBenchmark(&context, request);
    v1::RunBenchmarkResponse response;
    EXPECT_FALSE(reader->Read(&response));
    return reader->Finish();
  };
  EXPECT_EQ(status_of(BenchmarkOf({})).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(status_of(BenchmarkOf({}))), "BENCHMARK_SPEC");
  v1::RunBenchmarkRequest request = BenchmarkOf({1});
  request.add_dtypes(v1::DTYPE_UNSPECIFIED);
  EXPECT_EQ(Reason(status_of(request)), "UNKNOWN_ENUM");
  request = BenchmarkOf({1});
  v1::AlgorithmChoice* choice = request.add_algorithms();
  choice->set_strategy(static_cast<v1::Strategy>(99));
  EXPECT_EQ(Reason(status_of(request)), "UNKNOWN_ENUM");
  choice->set_strategy(v1::STRATEGY_THREE_PHASE);
  choice->set_tile_scan(static_cast<v1::TileScan>(8));
  EXPECT_EQ(Reason(status_of(request)), "UNKNOWN_ENUM");
  choice->set_tile_scan(v1::TILE_SCAN_BRENT_KUNG);
  choice->set_items_per_thread(257);
  EXPECT_EQ(Reason(status_of(request)), "ALGORITHM_CHOICE");
}

TEST_F(ServiceTest, ABenchmarkWhoseCallerGoesAwayStops) {
  device_->free_memory_bytes = uint64_t{1} << 30;
  Gate running;
  Gate go_on;
  device_->before_work = [&] {
    running.Arrive();
    EXPECT_TRUE(go_on.WaitFor(1));
    return absl::OkStatus();
  };
  grpc::ClientContext context;
  const auto reader = admin_->RunBenchmark(&context, BenchmarkOf({1}));
  ASSERT_TRUE(running.WaitFor(1));
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // That the server knows of it too shows in a call of the same connection that comes later; then the lane may go on.
  EXPECT_EQ(Info().requests().used(), 1u);
  go_on.Arrive();
  EXPECT_TRUE(BecomesIdle());
}

TEST_F(ServiceTest, AnOddTraceParentIsDropped) {
  for (const char* value : {"", "short", "00-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-bbbbbbbbbbbbbbbb-01",
                            "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-0 "}) {
    grpc::ClientContext context;
    context.AddMetadata("traceparent", value);
    v1::ScanResponse response;
    ASSERT_TRUE(prefix_->Scan(&context, ScanRequestOf({1}), &response).ok());
    EXPECT_EQ(context.GetServerInitialMetadata().count("traceparent"), 0u) << value;
  }
}

TEST_F(ServiceTest, TraceParentComesBack) {
  grpc::ClientContext context;
  context.AddMetadata("traceparent", "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01");
  v1::ScanResponse response;
  ASSERT_TRUE(prefix_->Scan(&context, ScanRequestOf({1}), &response).ok());
  const auto& metadata = context.GetServerInitialMetadata();
  const auto it = metadata.find("traceparent");
  ASSERT_NE(it, metadata.end());
  EXPECT_EQ(std::string(it->second.data(), it->second.size()),
            "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01");
}

TEST_F(ServiceTest, InfoNamesDeviceLimitsAndCapabilities) {
  const v1::GetServerInfoResponse info = Info();
  EXPECT_EQ(info.device(), "fake");
  EXPECT_EQ(info.device_memory_free_bytes(), 7u);
  EXPECT_EQ(info.lanes(), 1u);
  EXPECT_EQ(info.max_message_bytes(), TestOptions().max_message_bytes);
  EXPECT_EQ(info.requests().limit(), TestOptions().max_requests);
  EXPECT_GT(info.capabilities_size(), 0);
}

}  // namespace
}  // namespace prefixd
