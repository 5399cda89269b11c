#include "runner/job/failure_text.hpp"

#include <fmt/format.h>

#include "base/printable.hpp"
#include "runner/job/mpi.hpp"
#include "runner/record/run_log.hpp"

namespace mlenv::job {
namespace {

constexpr std::size_t kShownLines = 12;

void add_last_lines(std::vector<std::string>& text, const std::vector<std::string>& lines) {
  const std::size_t count = lines.size();
  for (std::size_t i = count > kShownLines ? count - kShownLines : 0; i < count; ++i) {
    if (const auto line = parse_log_line(lines[i])) text.push_back("    " + printable(line->text));
  }
}

}  // namespace

std::vector<std::string> failure_text(const AttemptResult& attempt) {
  if (!attempt.failure) return {};
  const FirstFailure& failure = *attempt.failure;
  const auto first = [](const std::string& what) { return "mlenv: first, " + printable(what); };
  if (failure.what == FirstFailure::What::node) {
    return {first(fmt::format("node {} was lost: {}", failure.node, failure.why))};
  }
  const RankResult& rank = attempt.ranks.at(failure.rank);
  std::vector<std::string> text{
      first(fmt::format("{} {}", called(rank.rank, failure.node), why_it_failed(failure, rank)))};
  // Those of a rank that was alone stand just above.
  if (attempt.ranks.size() > 1) add_last_lines(text, rank.last_lines);
  return text;
}

}  // namespace mlenv::job
