#include "client/prefixctl/arrays_run.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/status.h"
#include "client/prefixctl/transfer.h"

namespace prefixd::cli {
namespace {

// All elements of a file whose length it does not say.
absl::StatusOr<std::vector<std::byte>> ReadAll(ArrayReader& reader) {
  constexpr size_t kItems = size_t{1} << 16;
  const size_t item_bytes = SizeOf(reader.dtype());
  std::vector<std::byte> bytes;
  for (size_t size = 0;; size = bytes.size()) {
    bytes.resize(size + kItems * item_bytes);
    PREFIXD_ASSIGN_OR_RETURN(const size_t count, reader.Read(kItems, bytes.data() + size));
    bytes.resize(size + count * item_bytes);
    if (count < kItems) return bytes;
  }
}

}  // namespace

ArraysRun::ArraysRun(const GlobalFlags& global, const Job& job) : client_(MakeClient(global)), job_(job) {}

absl::StatusOr<std::unique_ptr<ArraysRun>> ArraysRun::Start(const GlobalFlags& global, const Job& job,
                                                            const BesideFiles& files) {
  ArrayReader* const readers[] = {job.reader.get(), files.mask.get(), files.coefficients.get(), files.segments.get(),
                                  files.keys.get()};
  constexpr size_t kNumReaders = std::size(readers);
  std::array<Read, kNumReaders> read;
  for (size_t i = 0; i < kNumReaders; ++i) {
    if (readers[i] == nullptr || readers[i]->num_items()) continue;
    PREFIXD_ASSIGN_OR_RETURN(read[i], ReadAll(*readers[i]));
  }
  std::unique_ptr<ArraysRun> run(new ArraysRun(global, job));
  PREFIXD_ASSIGN_OR_RETURN(const client::ArrayPart values, run->Add(*readers[0], read[0]));
  client::ArrayPlaces& places = run->places_.emplace(client::ArrayPlaces{.values = values});
  std::optional<client::ArrayPart>* const beside[] = {&places.mask, &places.coefficients, &places.segments,
                                                      &places.keys};
  for (size_t i = 1; i < kNumReaders; ++i) {
    if (readers[i] == nullptr) continue;
    PREFIXD_ASSIGN_OR_RETURN(*beside[i - 1], run->Add(*readers[i], read[i]));
  }
  return run;
}

absl::StatusOr<client::ArrayPart> ArraysRun::Add(ArrayReader& reader, const Read& read) {
  const uint64_t num_items = read ? read->size() / SizeOf(reader.dtype()) : *reader.num_items();
  const ArraySpec spec = {.dtype = reader.dtype(), .shape = {num_items}, .lifetime = {.renew_on_use = true}};
  PREFIXD_ASSIGN_OR_RETURN(client::Array array,
                           arrays_.empty() ? client_.CreateArray(spec, {}, Call())
                                           : client::Client::CreateArrayBeside(arrays_.front(), spec, {}, Call()));
  if (read) {
    PREFIXD_RETURN_IF_ERROR(array.WriteBytes(*read, 0, Call()));
  } else {
    PREFIXD_ASSIGN_OR_RETURN(const uint64_t came,
                             Upload(reader, array, 0, *job_.progress, job_.deadline, &interrupt_.cancellation()));
    if (came != num_items) {
      return absl::InvalidArgumentError(StrCat(reader.file().name(), " has ", came, " elements, expected ", num_items));
    }
  }
  arrays_.push_back(std::move(array));
  return client::ArrayPart(arrays_.back());
}

absl::StatusOr<client::ResidentReply> ArraysRun::Run(const Spec& spec, const client::ArrayPlaces& places) {
  const auto no_sink = [](client::Pieces, client::Pieces) { return absl::OkStatus(); };
  return client_.RunOnArrays(spec, places, no_sink, Call());
}

absl::Status ArraysRun::Save(const client::Array& array, ArrayWriter& writer) {
  PREFIXD_RETURN_IF_ERROR(
      Download(array, 0, array.info().num_items, writer, *job_.progress, job_.deadline, &interrupt_.cancellation()));
  return writer.Close();
}

client::CallOptions ArraysRun::Call() {
  return {.timeout = job_.deadline - absl::Now(), .cancellation = &interrupt_.cancellation()};
}

}  // namespace prefixd::cli
