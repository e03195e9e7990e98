// Callers and budgets for the tests of Admission.
#ifndef PREFIXD_TESTS_SERVER_ADMISSION_FIXTURE_H_
#define PREFIXD_TESTS_SERVER_ADMISSION_FIXTURE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/call/admission.h"
#include "tests/server/callers.h"

namespace prefixd {

// One caller may have all.
inline Admission::Limits Whole(uint64_t requests, uint64_t bytes, uint64_t bytes_per_request = 0) {
  return {.requests = requests, .bytes = bytes, .bytes_per_request = bytes_per_request, .share_percent = 100};
}

// As many tickets as the caller is given.
inline std::vector<Admission::Ticket> TakeAll(Admission& admission, const Caller& caller) {
  std::vector<Admission::Ticket> tickets;
  while (true) {
    auto ticket = admission.Admit(caller);
    if (!ticket.ok()) return tickets;
    tickets.push_back(*std::move(ticket));
  }
}

}  // namespace prefixd

#endif  // PREFIXD_TESTS_SERVER_ADMISSION_FIXTURE_H_
