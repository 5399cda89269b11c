#include "runner/job/storage_test.hpp"

#include "runner/job/line_record.hpp"
#include "runner/job/message_rules.hpp"

namespace mlenv::job {
namespace {

constexpr RecordKind kStorageRequestKind{"mlenv.storage-request/1", "a storage test", ""};
constexpr RecordKind kStorageAnswerKind{"mlenv.storage-answer/1", "a storage test's answer", ""};

}  // namespace

std::string render_storage_request(const StorageRequest& request) {
  return render_record(request, kStorageRequestKind);
}
std::string render_storage_answer(const StorageAnswer& answer) {
  return render_record(answer, kStorageAnswerKind);
}
StorageRequest parse_storage_request(std::string_view text) {
  return read_line_record<StorageRequest>(text, kStorageRequestKind);
}
StorageAnswer parse_storage_answer(std::string_view text) {
  StorageAnswer answer = read_line_record<StorageAnswer>(text, kStorageAnswerKind);
  // A person may come to read them.
  for (StorageSight& one : answer.sights) {
    one.said = shown_text(one.said);
    one.type = shown_text(one.type);
  }
  return answer;
}

}  // namespace mlenv::job
