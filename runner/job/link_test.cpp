#include "runner/job/link_test.hpp"

#include "base/record_json.hpp"

namespace mlenv::job {
namespace {

constexpr RecordKind kRequestKind{"mlenv.link-request/1", "a link test", ""};
constexpr RecordKind kAnswerKind{"mlenv.link-answer/1", "a link test's answer", ""};

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

std::string render_link_request(const LinkRequest& request) {
  return render_record(request, kRequestKind);
}
std::string render_link_answer(const LinkAnswer& answer) {
  return render_record(answer, kAnswerKind);
}
LinkRequest parse_link_request(std::string_view text) {
  return parsed<LinkRequest>(text, kRequestKind);
}
LinkAnswer parse_link_answer(std::string_view text) {
  return parsed<LinkAnswer>(text, kAnswerKind);
}

}  // namespace mlenv::job
