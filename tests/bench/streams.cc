#include "tests/bench/streams.h"

#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace prefixd {
namespace {

using Clock = std::chrono::steady_clock;
using grpc::ByteBuffer;

// One stream: sends the messages of `out` in turn, num_messages in all, and drops what comes back.
class StreamCall final : public grpc::ClientBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  StreamCall(const ServerProcess& peer, const std::string& method, std::vector<ByteBuffer> out, size_t num_messages)
      : out_(std::move(out)), num_messages_(num_messages), stub_(Connect(peer)) {
    stub_.PrepareBidiStreamingCall(&context_, method, {}, this);
  }
  void Start() {
    StartWrite(&out_[0]);
    StartRead(&in_);
    StartCall();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait(lock, [&] { return done_; });
  }
  void OnWriteDone(bool ok) override {
    // The first message has the spec; the others follow in a circle.
    if (ok && ++num_sent_ < num_messages_) {
      StartWrite(&out_[1 + (num_sent_ - 1) % (out_.size() - 1)]);
    } else {
      StartWritesDone();
    }
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    in_.Clear();
    StartRead(&in_);
  }
  void OnDone(const grpc::Status& status) override {
    if (!status.ok()) Fail(status.error_message());
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
    wake_.notify_one();
  }

 private:
  std::vector<ByteBuffer> out_;
  const size_t num_messages_;
  size_t num_sent_ = 0;
  ByteBuffer in_;
  grpc::ClientContext context_;
  grpc::TemplatedGenericStub<ByteBuffer, ByteBuffer> stub_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
};

}  // namespace

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

std::shared_ptr<grpc::Channel> Connect(const ServerProcess& peer) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto channel = grpc::CreateCustomChannel(peer.address, grpc::InsecureChannelCredentials(), arguments);
  // gRPC 1.51 takes ten seconds to end its callback threads with the last channel: so the first one stays.
  [[maybe_unused]] static const auto* const first = new std::shared_ptr<grpc::Channel>(channel);
  return channel;
}

Payload RandomFloats(std::mt19937& random, size_t size_bytes) {
  std::uniform_real_distribution<float> numbers(-1.0F, 1.0F);
  std::string bytes(size_bytes, '\0');
  for (size_t i = 0; i + sizeof(float) <= size_bytes; i += sizeof(float)) {
    const float number = numbers(random);
    std::copy_n(reinterpret_cast<const char*>(&number), sizeof(number), bytes.data() + i);
  }
  return Payload(std::move(bytes));
}

Transfer MeasureStreams(const ServerProcess& peer, const std::string& method, const std::vector<ByteBuffer>& messages,
                        int num_streams, size_t stream_bytes) {
  const size_t num_messages = std::max<size_t>(1, stream_bytes / kChunkBytes);
  std::vector<std::unique_ptr<StreamCall>> calls;
  for (int i = 0; i < num_streams; ++i) {
    calls.push_back(std::make_unique<StreamCall>(peer, method, messages, num_messages));
  }
  const double cpu_before = peer.CpuSeconds();
  const auto start = Clock::now();
  for (auto& call : calls) call->Start();
  for (auto& call : calls) call->Wait();
  const double gb = static_cast<double>(num_messages * kChunkBytes * num_streams) / 1e9;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return {gb / seconds, (peer.CpuSeconds() - cpu_before) / gb};
}

}  // namespace prefixd
