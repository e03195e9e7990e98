#include "server/call/admission.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/time/time.h"
#include "base/status.h"

namespace prefixd {
namespace {

constexpr std::string_view kShare = ", its share of what is free (--caller-share-percent)";
constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// percent of `amount`, rounded up, without overflow.
uint64_t PercentOf(uint64_t amount, uint64_t percent) {
  return amount / 100 * percent + (amount % 100 * percent + 99) / 100;
}

uint64_t Minus(uint64_t amount, uint64_t less) { return amount > less ? amount - less : 0; }

// Whether `more` fits beside `use` below `limit`.
bool Fits(uint64_t use, uint64_t more, uint64_t limit) { return use <= limit && more <= limit - use; }

absl::Status Exhausted(std::string_view reason, std::string_view subject, std::string_view message) {
  return WithQuotaSubject(Error(absl::StatusCode::kResourceExhausted, reason, "", message), subject);
}

}  // namespace

// ---- Tickets -------------------------------------------------------------------------------------------------------
Admission::Ticket::Ticket(Ticket&& other) noexcept { *this = std::move(other); }

Admission::Ticket& Admission::Ticket::operator=(Ticket&& other) noexcept {
  std::swap(admission_, other.admission_);
  std::swap(account_, other.account_);
  std::swap(bytes_, other.bytes_);
  std::swap(kind_, other.kind_);
  std::swap(has_place_, other.has_place_);
  std::swap(wait_, other.wait_);
  return *this;
}

Admission::Ticket::~Ticket() {
  if (admission_ == nullptr) return;
  const Granted unused = wait_ != nullptr ? StopWaiting() : nullptr;
  MutexLock lock(admission_->mutex_);
  admission_->Subtract(account_, {.requests = has_place_, .bytes = bytes_ + admission_->limits_.bytes_per_request});
  admission_->Close(account_);
}

void Admission::Ticket::Settle() {
  if (wait_ == nullptr || !wait_->is_granted) return;
  bytes_ += wait_->bytes;
  wait_ = nullptr;
}

absl::Status Admission::Ticket::Charge(uint64_t bytes) {
  MutexLock lock(admission_->mutex_);
  Settle();
  PREFIXD_RETURN_IF_ERROR(admission_->CheckBytes(*SharerOf(account_), {.bytes = bytes, .own_bytes = bytes_}, kind_));
  admission_->Add(account_, {.bytes = bytes});
  bytes_ += bytes;
  return absl::OkStatus();
}

bool Admission::Ticket::ChargeOrWait(uint64_t bytes, Granted granted) {
  MutexLock lock(admission_->mutex_);
  Settle();
  Account* const sharer = SharerOf(account_);
  const Need need = {.bytes = bytes, .own_bytes = bytes_, .first_bytes = sharer->waiting_bytes};
  if (admission_->FitLimit(*sharer, need) && admission_->TooSmall(*sharer, need) == nullptr) {
    admission_->Add(account_, {.bytes = bytes});
    bytes_ += bytes;
    return true;
  }
  wait_ = std::make_shared<Wait>();
  wait_->account = account_;
  wait_->bytes = bytes;
  wait_->own_bytes = bytes_;
  wait_->granted = std::move(granted);
  wait_->place = admission_->waits_.insert(admission_->waits_.end(), wait_);
  sharer->waiting_bytes += bytes;
  return false;
}

Admission::Granted Admission::Ticket::StopWaiting() {
  if (admission_ == nullptr) return nullptr;
  MutexLock lock(admission_->mutex_);
  Settle();
  if (wait_ == nullptr) return nullptr;
  const std::shared_ptr<Wait> wait = std::exchange(wait_, nullptr);
  admission_->Forget(wait.get());
  return std::move(wait->granted);
}

void Admission::Ticket::ShrinkTo(uint64_t kept_bytes) {
  if (admission_ == nullptr) return;
  MutexLock lock(admission_->mutex_);
  Settle();
  GiveBack(kept_bytes);
  if (wait_ == nullptr) return;
  wait_->own_bytes = bytes_;
  SetIdle(wait_.get(), std::min(wait_->idle_bytes, bytes_));
}

void Admission::Ticket::ShrinkWaiting(uint64_t kept_bytes, uint64_t all_bytes, bool is_idle) {
  if (admission_ == nullptr) return;
  MutexLock lock(admission_->mutex_);
  Settle();
  if (wait_ == nullptr) return GiveBack(all_bytes);
  GiveBack(std::min(kept_bytes, all_bytes));
  uint64_t& waiting_bytes = SharerOf(account_)->waiting_bytes;
  waiting_bytes -= wait_->bytes;
  wait_->bytes = Minus(all_bytes, bytes_);
  wait_->own_bytes = bytes_;
  waiting_bytes += wait_->bytes;
  SetIdle(wait_.get(), is_idle ? bytes_ : 0);
  admission_->has_news_ = true;  // It may wait for less, and fit, or be the last of whom all others wait for.
  admission_->news_.NotifyOne();
}

void Admission::Ticket::GiveBack(uint64_t kept_bytes) {
  if (kept_bytes < bytes_) admission_->Subtract(account_, {.bytes = std::exchange(bytes_, kept_bytes) - kept_bytes});
}

void Admission::Ticket::LeavePlace(uint64_t kept_bytes) {
  if (admission_ == nullptr) return;
  MutexLock lock(admission_->mutex_);
  Settle();
  const uint64_t bytes = std::min(kept_bytes, bytes_);
  admission_->Subtract(account_,
                       {.requests = std::exchange(has_place_, false), .bytes = std::exchange(bytes_, bytes) - bytes});
}

// ---- Accounts ------------------------------------------------------------------------------------------------------
Admission::Admission(Limits limits, Clock clock) : limits_(limits), clock_(std::move(clock)) {
  waits_thread_ = std::thread([this] { RunWaits(); });
}

Admission::~Admission() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  news_.NotifyOne();
  waits_thread_.join();
}

Admission::Account* Admission::Open(const Caller& caller) {
  bool is_new = false;
  const auto child = [&is_new](Account* parent, const std::string& key) {
    std::unique_ptr<Account>& account = parent->children[key];
    is_new = account == nullptr;
    if (is_new) {
      account = std::make_unique<Account>();
      account->parent = parent;
      account->key = key;
    }
    return account.get();
  };
  Account* const account = child(&root_, caller.name);
  if (is_new) account->limits = caller_limits_.Of(caller.name);
  Account* const connection = child(account, caller.connection);
  if (is_new) connection->has_share = caller.is_address;  // Whose share it uses stays while anybody counts on it.
  for (Account* at = connection; at != nullptr; at = at->parent) ++at->num_tickets;
  return connection;
}

void Admission::Close(Account* account) {
  while (account != nullptr) {
    Account* const parent = account->parent;
    --account->num_tickets;
    if (parent != nullptr && parent->children.size() > parent->sweep_at) Sweep(parent);
    account = parent;
  }
}

void Admission::Sweep(Account* parent) {
  const RateLimit::Time now = clock_();
  absl::erase_if(parent->children,
                 [&](const auto& child) { return child.second->num_tickets == 0 && child.second->rate.IsFull(now); });
  parent->sweep_at = std::max(kKeptAccounts, 2 * parent->children.size());  // So that it costs little a ticket.
}

Admission::Account* Admission::SharerOf(Account* connection) {
  return connection->has_share ? connection : connection->parent;
}

const Admission::Account* Admission::CallerOf(const Account* account) const {
  return account->parent == &root_ ? account : account->parent;
}

std::string Admission::Subject(const Account& account) const {
  if (account.parent == nullptr) return "server";
  return account.parent == &root_ ? account.key : account.parent->key;
}

std::string Admission::Describe(const Account& account) const {
  if (account.parent == nullptr) return "the server";
  return StrCat(account.parent == &root_ ? "caller " : "a connection of ", Subject(account));
}

Admission::Use Admission::Share(const Account& account, bool for_newcomer) const {
  if (account.parent == nullptr) return {.requests = limits_.requests, .bytes = limits_.bytes};
  const Use around = Share(*account.parent, /*for_newcomer=*/false);
  const Use& all = account.parent->use;
  const CallerLimits& own = CallerOf(&account)->limits;
  const uint64_t percent = own.share_percent.value_or(limits_.share_percent);
  const auto share_of = [&](uint64_t free) {
    const uint64_t share = PercentOf(free, percent);
    return for_newcomer ? share + PercentOf(free - share, percent) : share;
  };
  // What is around a connection is a share of its caller, who may have no more than his limits.
  return {
      .requests = std::min(share_of(Minus(around.requests, all.requests - account.use.requests)),
                           own.requests.value_or(kNoLimit)),
      .bytes = std::min(share_of(Minus(around.bytes, all.bytes - account.use.bytes)), own.bytes.value_or(kNoLimit))};
}

absl::Status Admission::CheckRequestLimits(const Account& connection) const {
  const Account& caller = *CallerOf(&connection);
  const CallerLimits& limits = caller.limits;
  if (limits.requests && !Fits(caller.use.requests, 1, *limits.requests)) {
    return Exhausted("CALLER_REQUESTS", caller.key,
                     StrCat("caller ", caller.key, " has ", caller.use.requests,
                            " requests under way, and his limit is ", *limits.requests, ": retry later"));
  }
  if (limits.connections && connection.use.requests == 0 && !Fits(caller.num_busy_children, 1, *limits.connections)) {
    return Exhausted(
        "CALLER_CONNECTIONS", caller.key,
        StrCat("caller ", caller.key, " has requests under way on ", caller.num_busy_children,
               " other connections, and his limit is ", *limits.connections, ": use one of those, or retry later"));
  }
  return absl::OkStatus();
}

absl::Status Admission::TakeFromRate(Account* connection) {
  Account& caller = *connection->parent;
  if (!caller.limits.requests_per_second) return absl::OkStatus();
  const std::chrono::nanoseconds delay = caller.rate.Take(*caller.limits.requests_per_second, clock_());
  if (delay.count() == 0) return absl::OkStatus();
  return WithRetryDelay(
      Exhausted("CALLER_RATE", caller.key,
                StrCat("caller ", caller.key, " may send ", *caller.limits.requests_per_second,
                       " requests a second: retry in ", absl::FormatDuration(absl::FromChrono(delay)))),
      delay);
}

bool Admission::FitLimit(const Account& account, const Need& need) const {
  const Account& caller = *CallerOf(&account);
  return !caller.limits.bytes || Fits(caller.use.bytes + need.first_bytes, need.bytes, *caller.limits.bytes);
}

absl::Status Admission::CheckRequest(const Account& account) const {
  const bool is_newcomer = account.use.requests == 0;
  const Account* full = nullptr;  // The outermost.
  for (const Account* at = &account; at != nullptr; at = at->parent) {
    const bool has_nothing = at != &root_ && at->use.requests == 0;
    if (!has_nothing && !Fits(at->use.requests, 1, Share(*at, is_newcomer).requests)) full = at;
  }
  if (full == nullptr) return absl::OkStatus();
  return Exhausted(
      "REQUEST_BUDGET", Subject(*full),
      StrCat(Describe(*full), " has ", full->use.requests, " requests under way and may have ",
             Share(*full, is_newcomer).requests, full == &root_ ? " (--max-requests)" : kShare, ": retry later"));
}

bool Admission::HasNoBytes(const Account& account, const Need& need) const {
  const uint64_t own_bytes = need.is_idle ? account.idle_bytes : need.own_bytes;
  return account.use.bytes <= account.num_tickets * limits_.bytes_per_request + own_bytes;
}

const Admission::Account* Admission::TooSmall(const Account& account, const Need& need) const {
  const bool is_newcomer = !limits_.has_hard_shares && HasNoBytes(account, need) && need.first_bytes == 0;
  const Account* full = nullptr;
  for (const Account* at = &account; at != nullptr; at = at->parent) {
    const uint64_t first = at == &account ? need.first_bytes : 0;
    const bool has_nothing = !limits_.has_hard_shares && at != &root_ && HasNoBytes(*at, need) && first == 0;
    if (!has_nothing && !Fits(at->use.bytes + first, need.bytes, Share(*at, is_newcomer).bytes)) full = at;
  }
  return full;
}

absl::Status Admission::CheckBytes(const Account& account, Need need, Kind kind) const {
  if (need.bytes == 0) return absl::OkStatus();  // Whoever waits may be full.
  need.first_bytes = account.waiting_bytes;
  if (kind == Kind::kRequest && !FitLimit(account, need)) {
    const Account& caller = *CallerOf(&account);
    return Exhausted("CALLER_BYTES", caller.key,
                     StrCat("the request needs ", need.bytes, " bytes, and caller ", caller.key, " uses ",
                            caller.use.bytes, " of ", *caller.limits.bytes, ", his limit: retry later"));
  }
  const Account* const full = TooSmall(account, need);
  if (full == nullptr) return absl::OkStatus();
  const bool is_root = full == &root_;
  return Exhausted("BYTE_BUDGET", Subject(*full),
                   StrCat("the request needs ", need.bytes, " bytes, and ", Describe(*full), " uses ", full->use.bytes,
                          " of ", Share(*full, HasNoBytes(account, need)).bytes,
                          is_root ? " (--max-request-bytes)" : kShare, ": retry later"));
}

void Admission::Add(Account* account, Use more) {
  for (; account != nullptr; account = account->parent) {
    if (account->use.requests == 0 && more.requests > 0 && account->parent != nullptr) {
      ++account->parent->num_busy_children;
    }
    account->use.requests += more.requests;
    account->use.bytes += more.bytes;
  }
}

void Admission::Subtract(Account* account, Use less) {
  for (; account != nullptr; account = account->parent) {
    account->use.requests -= less.requests;
    if (account->use.requests == 0 && less.requests > 0 && account->parent != nullptr) {
      --account->parent->num_busy_children;
    }
    account->use.bytes -= less.bytes;
  }
  if (!waits_.empty()) {
    has_news_ = true;
    news_.NotifyOne();
  }
}

// ---- Requests ------------------------------------------------------------------------------------------------------
absl::StatusOr<Admission::Ticket> Admission::Admit(const Caller& caller, Kind kind) {
  const bool is_request = kind == Kind::kRequest;
  MutexLock lock(mutex_);
  if (is_request && !closed_.ok()) return closed_;
  Account* const connection = Open(caller);
  if (absl::Status status = Check(connection, kind); !status.ok()) {
    Close(connection);
    return status;
  }
  Add(connection, {.requests = is_request, .bytes = limits_.bytes_per_request});
  return Ticket(this, connection, kind);
}

absl::Status Admission::Check(Account* connection, Kind kind) {
  const Account& sharer = *SharerOf(connection);
  const bool is_request = kind == Kind::kRequest;
  if (is_request) {
    PREFIXD_RETURN_IF_ERROR(CheckRequestLimits(*connection));
    PREFIXD_RETURN_IF_ERROR(CheckRequest(sharer));
  }
  PREFIXD_RETURN_IF_ERROR(CheckBytes(sharer, {.bytes = limits_.bytes_per_request}, kind));
  return is_request ? TakeFromRate(connection) : absl::OkStatus();  // The last, for who is refused has taken nothing.
}

void Admission::SetCallerLimits(CallerLimitsTable limits) {
  MutexLock lock(mutex_);
  caller_limits_ = std::move(limits);
  for (const auto& [name, caller] : root_.children) caller->limits = caller_limits_.Of(name);
  has_news_ = true;  // Who waits may fit now.
  news_.NotifyOne();
}

void Admission::Close(absl::Status status) {
  MutexLock lock(mutex_);
  closed_ = std::move(status);
}

absl::Status Admission::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

Admission::Use Admission::in_use() const {
  MutexLock lock(mutex_);
  return root_.use;
}

uint64_t Admission::num_known_callers() const {
  MutexLock lock(mutex_);
  return root_.children.size();
}

// ---- Waiting -------------------------------------------------------------------------------------------------------
void Admission::SetIdle(Wait* wait, uint64_t idle_bytes) {
  for (Account* at = wait->account; at != nullptr; at = at->parent) at->idle_bytes += idle_bytes - wait->idle_bytes;
  wait->idle_bytes = idle_bytes;
}

void Admission::Forget(Wait* wait) {
  SetIdle(wait, 0);
  SharerOf(wait->account)->waiting_bytes -= wait->bytes;
  waits_.erase(wait->place);
}

void Admission::RunWaits() {
  while (true) {
    std::vector<Granted> granted;
    {
      MutexLock lock(mutex_);
      while (!has_news_ && !stopping_) news_.Wait(mutex_);
      if (stopping_) return;
      has_news_ = false;
      for (auto it = waits_.begin(); it != waits_.end();) {
        const std::shared_ptr<Wait> wait = *it++;
        const Account& sharer = *SharerOf(wait->account);
        const Need need = {.bytes = wait->bytes, .own_bytes = wait->own_bytes, .is_idle = wait->idle_bytes > 0};
        if (!FitLimit(sharer, need) || TooSmall(sharer, need) != nullptr) continue;
        Forget(wait.get());
        Add(wait->account, {.bytes = wait->bytes});
        wait->is_granted = true;
        granted.push_back(std::move(wait->granted));
      }
    }
    for (Granted& call : granted) call();
  }
}

}  // namespace prefixd
