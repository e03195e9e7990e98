#include "server/rpc/reactor.h"

#include <chrono>

namespace prefixd {

void Rpc::Await(CallSource* source) {
  Rpc* const rpc = new Rpc(source);
  rpc->context_.AsyncNotifyWhenDone(&rpc->end_);
  source->service->RequestCall(&rpc->context_, &rpc->stream_, source->queue.get(), source->queue.get(), &rpc->call_);
}

void Rpc::Deliver(void* event, bool ok) {
  const Event& it = *static_cast<Event*>(event);
  (it.rpc->*it.deliver)(ok);
}

void Rpc::Cancel() {
  is_given_up_ = true;
  context_.TryCancel();
}

void Rpc::CountRefused() {
  refused_peer_ = context_.peer();  // Once a call is cancelled, gRPC 1.51 does not know it any more.
  source_.events.on_refused(refused_peer_);
}

void Rpc::OnCall(bool ok) {
  if (!ok) {  // The server shuts down, and no call has come.
    delete this;
    return;
  }
  source_.num_holds.fetch_add(1, std::memory_order_relaxed);
  Await(&source_);
  traffic_ = source_.events.traffic_of(context_.peer());
  if (traffic_ != nullptr) traffic_->CountCall();
  reactor_ = source_.make(this);
  reactor_->OnStart();
  MaybeCancel();
  Release();
}

void Rpc::OnEnd(bool /*ok*/) {
  if (context_.IsCancelled()) {
    const bool is_late = has_message_ && std::chrono::system_clock::now() >= context_.deadline();
    if (!is_given_up_ && !is_late) source_.events.on_cancelled(context_.peer());
    MaybeCancel();
  }
  Release();
}

void Rpc::OnRead(bool ok) {
  if (ok) has_message_ = true;
  if (ok && traffic_ != nullptr) traffic_->CountMessage(read_message_->Length());
  reactor_->OnReadDone(ok);
  Release();
}

void Rpc::OnWrite(bool ok) {
  reactor_->OnWriteDone(ok);
  Release();
}

void Rpc::OnFinish(bool /*ok*/) { Release(); }

void Rpc::MaybeCancel() {
  if (cancel_.fetch_sub(1, std::memory_order_acq_rel) == 1) reactor_->OnCancel();
}

void Rpc::Release() {
  if (holds_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  reactor_->OnDone();
  CallSource& source = source_;
  if (traffic_ != nullptr) traffic_->CountCallDone(context_.IsCancelled() && !is_given_up_ && !has_message_);
  if (!refused_peer_.empty()) source.events.on_refusal_done(refused_peer_);
  delete this;
  source.Release();
}

void Reactor::StartRead(grpc::ByteBuffer* message) {
  rpc_->holds_.fetch_add(1, std::memory_order_relaxed);
  rpc_->read_message_ = message;
  rpc_->stream_.Read(message, &rpc_->read_);
}

void Reactor::StartWrite(const grpc::ByteBuffer* message) {
  rpc_->holds_.fetch_add(1, std::memory_order_relaxed);
  rpc_->stream_.Write(*message, &rpc_->write_);
}

void Reactor::StartWriteAndFinish(const grpc::ByteBuffer* message) {
  rpc_->stream_.WriteAndFinish(*message, grpc::WriteOptions(), grpc::Status::OK, &rpc_->finish_);
}

void Reactor::Finish(const grpc::Status& status) { rpc_->stream_.Finish(status, &rpc_->finish_); }

}  // namespace prefixd
