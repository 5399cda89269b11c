#include "runner/job/link_test.hpp"

#include <fmt/format.h>

#include "runner/job/line_record.hpp"
#include "runner/job/message_rules.hpp"

namespace mlenv::job {
namespace {

constexpr RecordKind kLinkRequestKind{"mlenv.link-request/1", "a link test", ""};
constexpr RecordKind kLinkAnswerKind{"mlenv.link-answer/1", "a link test's answer", ""};

constexpr double kMostTestSeconds = 1e6;
constexpr double kMostBitsPerSecond = 1e15;

/// Of a measurement; what is none would become the measure of others.
void require_figure(const std::optional<double>& figure, double most) {
  if (!figure) return;
  const bool sound = *figure >= 0 && *figure <= most;  // neither holds for what is no number
  if (!sound) throw misunderstood(fmt::format("no link measures {}", *figure));
}

}  // namespace

std::string render_link_request(const LinkRequest& request) {
  return render_record(request, kLinkRequestKind);
}
std::string render_link_answer(const LinkAnswer& answer) {
  return render_record(answer, kLinkAnswerKind);
}
LinkRequest parse_link_request(std::string_view text) {
  return read_line_record<LinkRequest>(text, kLinkRequestKind);
}
LinkAnswer parse_link_answer(std::string_view text) {
  LinkAnswer answer = read_line_record<LinkAnswer>(text, kLinkAnswerKind);
  require_figure(answer.round_trip_seconds, kMostTestSeconds);
  require_figure(answer.bits_per_second, kMostBitsPerSecond);
  for (const double one : answer.ring_seconds) require_figure(one, kMostTestSeconds);
  // A person may come to read them.
  answer.problem = shown_text(answer.problem);
  for (LinkReached& one : answer.reached) {
    one.how = shown_text(one.how);
    one.said = shown_text(one.said);
  }
  return answer;
}

}  // namespace mlenv::job
