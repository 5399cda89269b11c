#include "runner/job/storage_test.hpp"

#include "base/printable.hpp"
#include "base/record_json.hpp"

namespace mlenv::job {
namespace {

constexpr RecordKind kRequestKind{"mlenv.storage-request/1", "a storage test", ""};
constexpr RecordKind kAnswerKind{"mlenv.storage-answer/1", "a storage test's answer", ""};

template <Record T>
T parsed(std::string_view text, const RecordKind& kind) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  try {
    if (text.size() > kMost) throw failure("bad-stream", "it is too large");
    return read_record<T>(text, kind.noun, kind);
  } catch (const Error& error) {
    throw failure("bad-stream", "the two ends of a node's link misunderstood each other")
        .because(error.frames().back());
  }
}

}  // namespace

std::string render_storage_request(const StorageRequest& request) {
  return render_record(request, kRequestKind);
}
std::string render_storage_answer(const StorageAnswer& answer) {
  return render_record(answer, kAnswerKind);
}
StorageRequest parse_storage_request(std::string_view text) {
  return parsed<StorageRequest>(text, kRequestKind);
}
StorageAnswer parse_storage_answer(std::string_view text) {
  StorageAnswer answer = parsed<StorageAnswer>(text, kAnswerKind);
  // A person may come to read them.
  for (StorageSight& one : answer.sights) {
    one.said = printable(one.said);
    one.type = printable(one.type);
  }
  return answer;
}

}  // namespace mlenv::job
