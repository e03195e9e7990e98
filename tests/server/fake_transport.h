// A transport without a wire: it hands scripted messages to a session and keeps the session's replies.
#ifndef PREFIXD_TESTS_SERVER_FAKE_TRANSPORT_H_
#define PREFIXD_TESTS_SERVER_FAKE_TRANSPORT_H_

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/call/session.h"
#include "tests/server/gate.h"

namespace prefixd {

template <class T>
std::string Bytes(const std::vector<T>& items) {
  return std::string(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
}

template <class T>
std::vector<T> Items(const std::string& bytes) {
  std::vector<T> items(bytes.size() / sizeof(T));
  if (!items.empty()) std::memcpy(items.data(), bytes.data(), items.size() * sizeof(T));
  return items;
}

// Makes a message that owns its bytes.
inline Message MakeMessage(std::optional<Spec> spec, std::string values, std::optional<std::string> mask = {}) {
  Message message;
  if (spec) message.operation = OperationOf(*spec);
  message.chunk.values = Payload(std::move(values));
  if (mask) message.chunk.mask = Payload(*std::move(mask));
  message.held_bytes = message.chunk.values.size() + (message.chunk.mask ? message.chunk.mask->size() : 0);
  return message;
}

class FakeTransport final : public Transport {
 public:
  // Where the transport answers the session's calls: on the calling thread, before the call returns, or on another one.
  enum class Answers { kInline, kFromAnotherThread };

  FakeTransport(ServerContext* context, CallInfo call, std::vector<Message> messages,
                Answers answers = Answers::kFromAnotherThread)
      : messages_(std::move(messages)), answers_(answers), session_(Session::Create(context, std::move(call), this)) {}
  ~FakeTransport() override {
    for (std::thread& thread : threads_) thread.join();
  }

  // Called before message number i, or the stream's end, is handed over. The hand-over waits until this returns.
  std::function<void(size_t)> before_read = [](size_t) {};
  // Called inside write number i. The write returns after it.
  std::function<void(size_t)> in_write = [](size_t) {};
  // Called when the request has ended, before the session is told that its caller has the answer.
  std::function<void()> before_done = [] {};
  // Called before the session is told that write number i is done.
  std::function<void(size_t)> before_write_done = [](size_t) {};

  // Runs the request to its end. False if the end does not come within the gate's limit.
  [[nodiscard]] bool Run() {
    session_->Start();
    return done_.WaitFor(1);
  }
  void Start() { session_->Start(); }
  [[nodiscard]] bool Wait() { return done_.WaitFor(1); }
  [[nodiscard]] bool HasEnded() { return done_.arrived() > 0; }

  Session& session() { return *session_; }
  // How the request ended.
  const Result& result() const { return result_; }
  const std::vector<Reply>& replies() const { return replies_; }
  std::string values() const {
    std::string all;
    for (const Reply& reply : replies_) all += reply.values.ToString();
    return all;
  }
  std::string indices() const {
    std::string all;
    for (const Reply& reply : replies_) all += reply.indices.ToString();
    return all;
  }
  size_t num_reads() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return num_reads_;
  }

  // Whether a Write or the Finish came before an earlier Write had returned.
  bool broke_in() const { return broke_in_; }

  void Read() override {
    const size_t i = Count(&num_reads_);
    Answer([this, i] {
      before_read(i);
      if (i < messages_.size()) {
        next_ = i;
        session_->OnArrival(messages_[i].chunk.values.size() +
                            (messages_[i].chunk.mask ? messages_[i].chunk.mask->size() : 0));
      } else {
        session_->OnReadEnd();
      }
    });
  }
  void Decode() override { session_->OnMessage(std::move(messages_[next_])); }
  void Write(Reply reply) override {
    if (inside_write_.exchange(true)) broke_in_ = true;
    replies_.push_back(std::move(reply));
    const size_t i = replies_.size() - 1;
    Answer([this, i] {
      before_write_done(i);
      session_->OnWriteDone(true);
    });
    in_write(i);
    inside_write_ = false;
  }
  void Finish(const Result& result) override {
    if (inside_write_) broke_in_ = true;
    result_ = result;
    before_done();
    session_->OnDone(/*delivered=*/true);
    done_.Arrive();
  }

 private:
  size_t Count(size_t* counter) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return (*counter)++;
  }
  void Answer(std::function<void()> answer) {
    if (answers_ == Answers::kInline) {
      answer();
      return;
    }
    const std::lock_guard<std::mutex> lock(mutex_);  // The session may read while it writes.
    threads_.emplace_back(std::move(answer));
  }

  std::vector<Message> messages_;
  size_t next_ = 0;  // To be decoded.
  const Answers answers_;
  mutable std::mutex mutex_;
  size_t num_reads_ = 0;
  std::vector<Reply> replies_;
  std::atomic<bool> inside_write_{false};
  std::atomic<bool> broke_in_{false};
  std::vector<std::thread> threads_;
  Result result_;
  Gate done_;
  const std::shared_ptr<Session> session_;
};

}  // namespace prefixd

#endif  // PREFIXD_TESTS_SERVER_FAKE_TRANSPORT_H_
