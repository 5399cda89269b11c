#include "runner/job/job_json.hpp"

#include <array>

#include <nlohmann/json.hpp>

#include "runner/record/run_log.hpp"

namespace mlenv::job {
namespace {

using nlohmann::json;

constexpr std::string_view kJobEnd = "mlenv.job-end/1";

/// In one line; what is not UTF-8 is replaced.
std::string line_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json end_record(const std::string& id, int exit_code) {
  return {{"schema", kJobEnd},
          {"id", id.empty() ? json() : json(id)},
          {"exit_code", exit_code},
          {"attempts", 0},
          {"failure", nullptr}};
}

json failure_of(const AttemptResult& attempt) {
  if (!attempt.failure) return nullptr;
  const FirstFailure& failure = *attempt.failure;
  const bool of_rank = failure.what == FirstFailure::What::rank;
  std::string why = failure.why;
  if (of_rank) why = why_it_failed(failure, attempt.ranks.at(failure.rank));
  return {{"attempt", attempt.number},
          {"rank", of_rank ? json(failure.rank) : json()},
          {"node", failure.node},
          {"why", why}};
}

}  // namespace

std::string log_line_json(std::optional<std::uint64_t> attempt, std::optional<std::uint64_t> rank,
                          std::string_view line) {
  const std::optional<LogLine> parsed = parse_log_line(line);
  if (!parsed) return {};
  constexpr std::array<const char*, 3> kNames = {"stdout", "stderr", "mlenv"};
  json record = {{"schema", "mlenv.log-line/1"},
                 {"time", parsed->time},
                 {"stream", kNames.at(static_cast<std::size_t>(parsed->stream))},
                 {"text", parsed->text},
                 {"complete", parsed->ends}};
  if (attempt) record["attempt"] = *attempt;
  if (rank) record["rank"] = *rank;
  return line_of(record);
}

std::string job_end_json(const std::string& id, const JobOutcome& outcome) {
  json end = end_record(id, outcome.exit_code);
  end["attempts"] = outcome.attempts_before + outcome.attempts.size();
  if (outcome.exit_code != 0 && !outcome.attempts.empty()) {
    end["failure"] = failure_of(outcome.attempts.back());
  }
  return line_of(end);
}

std::string job_end_json(const std::string& id, std::uint64_t attempts) {
  json end = end_record(id, kOwnFailureStatus);
  end["attempts"] = attempts;
  return line_of(end);
}

std::string job_end_json(const std::string& id, int exit_code, std::string_view told) {
  json end = end_record(id, exit_code);
  const json other = json::parse(told, nullptr, false);
  if (other.is_object()) end.update(other);
  end["exit_code"] = exit_code;
  return line_of(end);
}

bool is_job_end(std::string_view line) {
  if (line.find(kJobEnd) == std::string_view::npos) return false;
  const json value = json::parse(line, nullptr, false);
  return value.is_object() && value.value("schema", json()) == kJobEnd;
}

}  // namespace mlenv::job
