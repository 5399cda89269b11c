#include "cli/run_job_data.hpp"

#include <nlohmann/json.hpp>

#include "base/printable.hpp"

namespace mlenv::cli {
namespace {

/// What becomes of a node that lacks it.
std::string otherwise(const job::DataSet& one) {
  constexpr double kMega = 1e6;
  if (!one.stage) return "else it cannot take part";
  if (one.list.empty()) return "else it cannot take part, for it is not on this machine";
  return fmt::format("else it is sent {:.1f} MB", static_cast<double>(one.bytes) / kMega);
}

std::string data_text(const job::DataSet& one) {
  return printable(fmt::format("data {} at {}: each node has {} in {} or kept in its store, {}",
                               one.name, one.to, one.digest, one.from, otherwise(one)));
}

}  // namespace

void say_data(const Ui& ui, const std::vector<job::DataSet>& data) {
  for (const job::DataSet& one : data) ui.answer(data_text(one));
}

void note_data(const Ui& ui, const std::vector<job::DataSet>& data) {
  for (const job::DataSet& one : data) ui.say("mlenv: " + data_text(one));
}

nlohmann::json data_json(const std::vector<job::DataSet>& data) {
  nlohmann::json all = nlohmann::json::array();
  for (const job::DataSet& one : data) {
    const bool here = !one.list.empty();
    all.push_back({{"name", one.name},
                   {"digest", one.digest},
                   {"from", one.from},
                   {"to", one.to},
                   {"stage", one.stage},
                   {"bytes", here ? nlohmann::json(one.bytes) : nlohmann::json()}});
  }
  return all;
}

}  // namespace mlenv::cli
