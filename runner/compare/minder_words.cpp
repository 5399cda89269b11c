#include "runner/compare/minder_words.hpp"

#include <nlohmann/json.hpp>

#include "base/json.hpp"

namespace mlenv::compare::minding {
namespace {

using nlohmann::json;

}  // namespace

std::string_view word_of(Ending ending) { return ending == Ending::kill ? "kill" : "ask"; }

std::string start_request(const Command& command) {
  return cbor_bytes({{"argv", command.argv},
                     {"env", command.env ? json(*command.env) : json()},
                     {"folder", command.folder.string()}});
}

std::string end_request(pid_t pid) { return cbor_bytes({{"end", pid}}); }

Request parse_request(std::string_view bytes) {
  const json value = json::from_cbor(bytes.begin(), bytes.end());
  Request request;
  if (value.contains("end")) {
    request.end = value.at("end").get<pid_t>();
    return request;
  }
  Command& command = request.start.emplace(Purpose{"compare-measured"});
  command.argv = value.at("argv").get<std::vector<std::string>>();
  if (!value.at("env").is_null()) command.env = value.at("env").get<std::vector<std::string>>();
  command.folder = value.at("folder").get<std::string>();
  return request;
}

std::string render_answer(const Answer& answer) {
  return cbor_bytes({{"why", answer.why},
                     {"pid", answer.pid},
                     {"at", answer.at},
                     {"code", answer.exit.code},
                     {"signalled", answer.exit.signalled}});
}

Answer parse_answer(std::string_view bytes) {
  Answer answer;
  if (bytes.empty()) {
    answer.why = "the process that starts it is gone";
    return answer;
  }
  const json value = json::from_cbor(bytes.begin(), bytes.end());
  answer.why = value.at("why").get<std::string>();
  answer.pid = value.at("pid").get<pid_t>();
  answer.at = value.at("at").get<std::int64_t>();
  answer.exit = {value.at("code").get<int>(), value.at("signalled").get<bool>()};
  return answer;
}

}  // namespace mlenv::compare::minding
