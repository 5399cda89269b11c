#include "runner/job/link_test.hpp"

#include "runner/job/line_record.hpp"

namespace mlenv::job {
namespace {

constexpr RecordKind kRequestKind{"mlenv.link-request/1", "a link test", ""};
constexpr RecordKind kAnswerKind{"mlenv.link-answer/1", "a link test's answer", ""};

}  // namespace

std::string render_link_request(const LinkRequest& request) {
  return render_record(request, kRequestKind);
}
std::string render_link_answer(const LinkAnswer& answer) {
  return render_record(answer, kAnswerKind);
}
LinkRequest parse_link_request(std::string_view text) {
  return read_line_record<LinkRequest>(text, kRequestKind);
}
LinkAnswer parse_link_answer(std::string_view text) {
  return read_line_record<LinkAnswer>(text, kAnswerKind);
}

}  // namespace mlenv::job
