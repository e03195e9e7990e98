// Budgets of the whole server: how many requests it holds at once, and how many bytes of theirs; and each caller's
// share of both, so that none of them can have all.
//
//                           free to a caller: what no other caller uses
//   share of a caller     = share_percent of that
//   share of a connection = share_percent of what is free to it of its caller's share, where the caller is an address
//
// So with 50 % the first caller gets half of everything, the second half of the rest, and there is always something
// left for the next. Who uses nothing beside the request itself gets what it asks for, even above his share, if it fits
// into what is around it. For him a part of what an address's share leaves is kept as well, or ten connections of a
// greedy program would shut out the eleventh, which is another's.
//
// A request that does not fit is refused at once, with a time after which to try again. A stream that was let in is not
// refused in its middle: it is charged for each message when that comes, and waits until it fits. All bytes that a
// message needs are charged at once, and who waits gives back what he has no use for before that, or streams would wait
// for each other. What they keep between messages, their open groups, they keep while they wait: where a share is full
// of nothing else, the first of them gets what it waits for above the share, if that fits into what is around it, and
// the next one when all of them wait again. Where that does not fit, in a caller's own limit or where the whole server
// is full, or where a stream that keeps a group is not sent its next message, they wait on: the watchdog ends such
// waits.
//
// A caller may have limits of his own beside his share, and gets the least of both. They are hard: also who uses
// nothing yet does not get more. A stream that was let in waits for bytes of his limit too. Questions about the server
// are not asked about limits, so that whoever watches it under a caller's name is answered.
//
// Threads: any. What waits is called on the Admission's own thread.
// Bounds:  a ticket waits for one charge at most, so the number of requests bounds the queue. Of callers who have no
//          ticket some are remembered, and those whose rate is used up, for a second at most after their last request.
// Cost:    a place and its end: about 65 ns where nobody else asks for one, 90 ns with a rate (2 cores, one thread); 53
//          and 63 ns, with a name and without, before there were limits.
#ifndef PREFIXD_SERVER_CALL_ADMISSION_H_
#define PREFIXD_SERVER_CALL_ADMISSION_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/call/caller.h"
#include "server/call/caller_limits.h"
#include "server/call/rate_limit.h"

namespace prefixd {

class Admission {
 private:
  struct Account;
  struct Wait;

 public:
  struct Use {
    uint64_t requests = 0;
    uint64_t bytes = 0;
  };
  struct Limits {
    uint64_t requests = 0;
    uint64_t bytes = 0;
    uint64_t bytes_per_request = 0;  // What a request takes, without its arrays, as long as there is a ticket of it.
    uint64_t share_percent = 50;     // 1 to 100.
    bool has_hard_shares = false;    // Also who uses nothing gets no more bytes than his share.
  };
  using Granted = absl::AnyInvocable<void()>;
  using Clock = std::function<RateLimit::Time()>;

  // Whether a call counts among the requests. Questions about the server don't, and are answered when it is full, and
  // when it drains.
  enum class Kind : uint8_t { kRequest, kQuestion };

  // A place among the requests, and bytes, given back when it is destroyed. Must not outlive its Admission.
  // Threads: one at a time.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept;
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket();

    // Admit gave it.
    bool IsCharged() const { return admission_ != nullptr; }

    // Charges bytes, beside those of every request. Errors: RESOURCE_EXHAUSTED (BYTE_BUDGET, CALLER_BYTES).
    absl::Status Charge(uint64_t bytes);

    // As Charge, but where they don't fit now it returns false, and calls `granted` once they do and are charged.
    bool ChargeOrWait(uint64_t bytes, Granted granted);

    // Waits no more: `granted` will not be called, unless that has begun already. Returns it, so that whoever holds a
    // lock can let go of what is in it later.
    Granted StopWaiting();

    // Gives charged bytes back, all but so many.
    void ShrinkTo(uint64_t kept_bytes);

    // For a ticket that waits: gives back all but kept_bytes, and waits for all that is missing of all_bytes. is_idle:
    // it keeps those until it is granted the rest. Where it has been granted what it waited for, ShrinkTo(all_bytes).
    void ShrinkWaiting(uint64_t kept_bytes, uint64_t all_bytes, bool is_idle);

    // ShrinkTo, and gives the place back. Called before a request is answered: its caller may send the next request
    // before gRPC has let go of this answer, which still takes memory.
    void LeavePlace(uint64_t kept_bytes);

   private:
    friend class Admission;
    Ticket(Admission* admission, Account* account, Kind kind)
        : admission_(admission), account_(account), kind_(kind), has_place_(kind == Kind::kRequest) {}
    void Settle();  // Takes over what was granted. Needs: the admission's lock.
    // All but so many.
    void GiveBack(uint64_t kept_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(admission_->mutex_);
    Admission* admission_ = nullptr;
    Account* account_ = nullptr;  // The connection's.
    uint64_t bytes_ = 0;          // Charged.
    Kind kind_ = Kind::kRequest;
    bool has_place_ = false;
    std::shared_ptr<Wait> wait_;  // Null: it does not wait.
  };

  explicit Admission(Limits limits, Clock clock = std::chrono::steady_clock::now);
  ~Admission();  // Needs: no ticket.

  // Errors: RESOURCE_EXHAUSTED (REQUEST_BUDGET, BYTE_BUDGET, or, where it is the caller's own limit, CALLER_REQUESTS,
  // CALLER_BYTES, CALLER_CONNECTIONS, CALLER_RATE): retry later; the status given to Close after it.
  absl::StatusOr<Ticket> Admit(const Caller& caller, Kind kind = Kind::kRequest);

  // From now on. Who has more than he may have now keeps it, and gets no more before he has given it back.
  void SetCallerLimits(CallerLimitsTable limits);

  // Refuses every later request with `status`, which is not OK. Tickets that are out stay valid.
  void Close(absl::Status status);

  // What Close was given; OK before.
  absl::Status closed() const;

  Use in_use() const;
  Limits limits() const { return limits_; }
  uint64_t num_known_callers() const;  // Those with a ticket, and those who are remembered.

 private:
  static constexpr size_t kKeptAccounts = 64;
  // What a caller, or one of his connections, uses; the root: all of them.
  struct Account {
    Account* parent = nullptr;
    std::string key;  // In its parent's children.
    // A part of its parent's share is its own. Else it only counts what a connection of a caller with a name uses.
    bool has_share = true;
    Use use;
    uint64_t num_tickets = 0;
    uint64_t num_busy_children = 0;  // Those with requests.
    uint64_t waiting_bytes = 0;      // That its own tickets wait for, not those of its children that have a share.
    uint64_t idle_bytes = 0;         // That tickets keep until they are granted what they wait for.
    CallerLimits limits;             // A caller's.
    RateLimit rate;
    absl::flat_hash_map<std::string, std::unique_ptr<Account>> children;
    size_t sweep_at = kKeptAccounts;  // When there are more children, those that nobody needs are forgotten.
  };

  // Bytes that a ticket asks for.
  struct Need {
    uint64_t bytes = 0;
    uint64_t own_bytes = 0;    // That the ticket has: who has these alone has nothing that could be waited for.
    uint64_t first_bytes = 0;  // What others of the account wait for, who come first.
    bool is_idle = false;      // It keeps own_bytes until it is granted these, as others may who wait.
  };

  struct Wait {
    Account* account = nullptr;
    uint64_t bytes = 0;
    uint64_t own_bytes = 0;
    uint64_t idle_bytes = 0;  // own_bytes, or 0: they may be given back before it is granted.
    Granted granted;
    bool is_granted = false;
    std::list<std::shared_ptr<Wait>>::iterator place;
  };

  Account* Open(const Caller& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Keeps some accounts that nobody has a ticket of: their callers may be back at once.
  void Close(Account* account) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Sweep(Account* parent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The account whose share a connection uses: its own, or its caller's.
  static Account* SharerOf(Account* connection);
  const Account* CallerOf(const Account* account) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whose it is: a caller's name, or "server".
  std::string Subject(const Account& account) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For messages: "a connection of 10.0.0.1".
  std::string Describe(const Account& account) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What the account may use at most; with what is kept for those in it who use nothing yet.
  Use Share(const Account& account, bool for_newcomer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // None that could be waited for: but those of every request, and the asker's own, or all idle ones if he has such.
  bool HasNoBytes(const Account& account, const Need& need) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // OK, and a request is taken from the rate, if the connection may have one more ticket.
  absl::Status Check(Account* connection, Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // OK if the caller's limits leave room for one more request of this connection.
  absl::Status CheckRequestLimits(const Account& connection) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes one of the caller's requests of a second.
  absl::Status TakeFromRate(Account* connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether so many bytes, and what others of the account wait for, fit into the caller's limit.
  bool FitLimit(const Account& account, const Need& need) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // OK if one more request fits into the account's share and into those around it.
  absl::Status CheckRequest(const Account& account) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The account, or the outermost around it, whose share they don't fit into; null: they fit.
  const Account* TooSmall(const Account& account, const Need& need) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Behind those who wait.
  absl::Status CheckBytes(const Account& account, Need need, Kind kind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(Account* account, Use more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Subtract(Account* account, Use less) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void SetIdle(Wait* wait, uint64_t idle_bytes);
  void Forget(Wait* wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunWaits();

  const Limits limits_;
  const Clock clock_;
  mutable Mutex mutex_;
  Account root_ ABSL_GUARDED_BY(mutex_);
  CallerLimitsTable caller_limits_ ABSL_GUARDED_BY(mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
  std::list<std::shared_ptr<Wait>> waits_ ABSL_GUARDED_BY(mutex_);  // In the order in which they came.
  bool has_news_ ABSL_GUARDED_BY(mutex_) = false;                   // Bytes were given back while somebody waited.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar news_;
  std::thread waits_thread_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_ADMISSION_H_
